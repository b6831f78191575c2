"""Activations of two runs: known on paper, and what full records give when numpy subtracts them."""

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.errors import BudgetError, InputError, NotRecordedError, UnknownTokenError
from headscope.models import Model, logit_lens
from headscope.models.logit_lens import read_lenses
from tests.unit.models.test_activations import on_paper

TEXT = "the cat sat on the mat"


def made(family: str = "gpt2", **options) -> Model:
    torch.manual_seed(0)
    return Model(FAMILIES[family].build(), tiny_tokenizer(), **options)


def test_the_lens_of_two_runs_on_paper():
    one = torch.tensor([[[0.0, 1.0, 2.0]], [[5.0, 0.0, 1.0]]])
    other = torch.tensor([[[0.0, 1.0, 2.0]], [[0.0, 0.0, 4.0]]])
    paper = on_paper([])
    found = read_lenses((paper, paper), (one, other), 2)  # type: ignore[arg-type]
    # At the first place nothing differs, and each candidate is there once.
    assert found.ids[0, 0].tolist() == [2, 1, -1, -1]
    assert found.one[0, 0, :2].tolist() == found.other[0, 0, :2].tolist()
    # At the last, "a" went from the first's answer to nothing; then "c"; "b" is likely in neither's first two.
    assert found.ids[1, 0].tolist()[:2] == [0, 2]
    expected = one[1, 0].log_softmax(-1)[0], other[1, 0].log_softmax(-1)[0]
    assert (found.one[1, 0, 0], found.other[1, 0, 0]) == pytest.approx((float(expected[0]), float(expected[1])))
    # The answers: "a" of the first run, "c" of the second, through the places of both.
    assert found.answers[:, 0].tolist() == [0, 2]
    assert found.answer_ranks[:, :, :, 0].tolist() == [[[2, 0], [2, 1]], [[0, 1], [0, 0]]]
    assert found.answer_logprobs[1, 0, 1, 0] == pytest.approx(float(one[1, 0].log_softmax(-1)[2]))
    assert found.names == {0: "a", 1: "b", 2: "c"}


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "mixtral"])
def test_a_run_minus_itself_is_nothing_to_the_last_bit(name):
    model = made(name)
    trace = model.run(TEXT)
    found = model.activations_difference(hs.compare(trace, trace))
    for values in (found.norms, found.cosines, *found.written.values(), *found.heads.values()):
        assert not values.any()
    if found.lens is not None:
        assert (np.nan_to_num(found.lens.one) == np.nan_to_num(found.lens.other)).all()
        assert (found.lens.answer_logprobs[:, 0] == found.lens.answer_logprobs[:, 1]).all()
        assert (found.lens.answers[0] == found.lens.answers[1]).all()
    if name == "mixtral":
        assert "experts" in found.no_neurons
        with pytest.raises(NotRecordedError, match="experts"):
            found.top_neurons("L0", 0)
    else:
        assert all(one == other for _, one, other in found.top_neurons("L0", 0))


@pytest.mark.parametrize("rows", [2**24, 300])
def test_the_numbers_are_those_of_two_full_records(rows, monkeypatch):
    monkeypatch.setattr(logit_lens, "LOGITS", rows)  # all at once, or a few rows at a time
    model = made()
    edits = [hs.silence("L0H1")]
    one, other = model.run(TEXT, edits, record="full"), model.run(TEXT, record="full")
    found = model.activations_difference(hs.compare(one, other), k=3)
    streams = [trace.residuals["main"] for trace in (one, other)]
    norms = [stream.norm(dim=-1).numpy() for stream in streams]
    assert found.norms == pytest.approx(norms[0] - norms[1], abs=1e-4)
    assert not found.norms[0].any() and found.norms[1:].any()  # the input is before the edit
    assert not found.heads[found.layers[0]][[0, 2, 3]].any() and found.heads[found.layers[0]][1].max() < 0
    for layer in found.layers:
        neurons = [trace.neurons(str(layer)) for trace in (one, other)]
        for token in range(len(found.tokens)):
            change = np.abs(neurons[0][token] - neurons[1][token])
            index, first, second = found.top_neurons(layer, token)[0]
            assert abs(first - second) == pytest.approx(change.max(), abs=1e-5)
            assert (first, second) == pytest.approx((neurons[0][token, index], neurons[1][token, index]), abs=1e-5)
    # Each run's probability of what either finds likely, at the last place: the model's own.
    logprobs = [trace.logits.float().log_softmax(-1).numpy() for trace in (one, other)]  # type: ignore[union-attr]
    for token in range(len(found.tokens)):
        told = found.predictions(token)[found.places[-1]]
        for change in told:
            assert (change.one, change.other) == pytest.approx([side[token, change.id] for side in logprobs], abs=1e-4)
        moved = [abs(np.exp(change.one) - np.exp(change.other)) for change in told]
        assert moved == sorted(moved, reverse=True)
        tops = {int(id) for side in logprobs for id in np.argsort(-side[token])[:3]}
        assert {change.id for change in told} == tops


def test_only_tokens_that_both_have_are_there():
    model = made()
    one, other = model.run("the cat sat on the mat"), model.run("the cat ran and sat on the mat")
    both = hs.compare(one, other)
    found = model.activations_difference(both)
    alone = model.activations(one), model.activations(other)
    pairs = both.alignment["main"]
    places = [[group[0] for group in side] for side in (pairs.ones, pairs.others)]
    assert len(found.tokens) == len(pairs) < len(other.tokens["main"])
    assert found.norms == pytest.approx(alone[0].norms[:, places[0]] - alone[1].norms[:, places[1]], abs=1e-5)
    part = model.activations_difference(both, tokens=range(2, 4))
    assert (part.first, part.count, part.norms.shape) == (2, 2, found.norms.shape)
    assert part.top_neurons("L1", 3) == found.top_neurons("L1", 3)
    assert {one.id for one in part.predictions(2)["L1"]} == {one.id for one in found.predictions(2)["L1"]}
    with pytest.raises(UnknownTokenError, match="2 to 3"):
        part.predictions(0)
    with pytest.raises(InputError, match="tokens of both runs"):
        model.activations_difference(both, tokens=range(0, 99))


def test_what_cannot_be_subtracted_is_said():
    model = made()
    trace = model.run(TEXT)
    with pytest.raises(InputError, match="no stack 'moon'"):
        model.activations_difference(hs.compare(trace, trace), stack="moon")
    with pytest.raises(InputError, match="not by words"):
        model.activations_difference(hs.compare(trace, model.run("a cat sat on the mat"), by="words"))
    with pytest.raises(BudgetError, match="shorten"):
        model.activations_difference(hs.compare(trace, trace), budget=100)
    checkpoint = made(name="step 2")
    both = hs.compare(made(name="step 1").run(TEXT), checkpoint.run(TEXT))
    with pytest.raises(InputError, match="give both models"):
        model.activations_difference(both)
    assert not model.activations_difference(both, checkpoint).norms.any()  # the same weights


def test_edits_are_read_from_the_trace_where_they_can_be():
    model = made()
    plain = model.run(TEXT)
    patched = model.run(TEXT, [hs.patch("L1H0", model.run("the dog ran on the mat"))])
    with pytest.raises(InputError, match="interventions="):
        model.activations_difference(hs.compare(patched, plain))
    edits = [hs.patch("L1H0", model.run("the dog ran on the mat"))]
    found = model.activations_difference(hs.compare(patched, plain), interventions=(edits, []))
    assert found.norms[-1].any() and not found.norms[1].any()


def test_models_of_other_widths_say_what_cannot_be_compared():
    from transformers import GPT2Config, GPT2LMHeadModel

    def tiny(n_inner: int, vocabulary: int, name: str) -> Model:
        torch.manual_seed(0)
        config = GPT2Config(vocab_size=vocabulary, n_positions=64, n_embd=32, n_layer=2, n_head=4, n_inner=n_inner)
        return Model(GPT2LMHeadModel(config).eval(), tiny_tokenizer(), name=name)

    vocabulary = len(tiny_tokenizer())
    one, other = tiny(64, vocabulary, "one"), tiny(96, vocabulary + 8, "other")
    found = one.activations_difference(hs.compare(one.run(TEXT), other.run(TEXT)), other)
    assert found.lens is None and "choose among" in found.no_lens
    assert "64 neurons in one model and 96 in the other" in found.no_neurons
    assert found.norms.shape == (3, len(found.tokens))
    with pytest.raises(NotRecordedError, match="choose among"):
        found.predictions(0)
