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


def build_model(family: str = "gpt2", **options) -> Model:
    torch.manual_seed(0)
    return Model(FAMILIES[family].build(), tiny_tokenizer(), **options)


def test_the_lens_of_two_runs_on_paper():
    first = torch.tensor([[[0.0, 1.0, 2.0]], [[5.0, 0.0, 1.0]]])
    other = torch.tensor([[[0.0, 1.0, 2.0]], [[0.0, 0.0, 4.0]]])
    paper = on_paper([])
    lens = read_lenses((paper, paper), (first, other), 2)  # type: ignore[arg-type]
    # At the first place nothing differs, and each candidate is there once.
    assert lens.ids[0, 0].tolist() == [2, 1, -1, -1]
    assert lens.a[0, 0, :2].tolist() == lens.b[0, 0, :2].tolist()
    # At the last, "a" went from the first's answer to nothing; then "c"; "b" is likely in neither's first two.
    assert lens.ids[1, 0].tolist()[:2] == [0, 2]
    expected = first[1, 0].log_softmax(-1)[0], other[1, 0].log_softmax(-1)[0]
    assert (lens.a[1, 0, 0], lens.b[1, 0, 0]) == pytest.approx((float(expected[0]), float(expected[1])))
    # The answers: "a" of the first run, "c" of the second, through the places of both.
    assert lens.answers[:, 0].tolist() == [0, 2]
    assert lens.answer_ranks[:, :, :, 0].tolist() == [[[2, 0], [2, 1]], [[0, 1], [0, 0]]]
    assert lens.answer_logprobs[1, 0, 1, 0] == pytest.approx(float(first[1, 0].log_softmax(-1)[2]))
    assert lens.names == {0: "a", 1: "b", 2: "c"}


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "mixtral"])
def test_a_run_minus_itself_is_nothing_to_the_last_bit(name):
    model = build_model(name)
    trace = model.run(TEXT)
    difference = model.activations_difference(hs.compare(trace, trace))
    for values in (difference.norms, difference.cosines, *difference.written.values(), *difference.heads.values()):
        assert not values.any()
    if difference.lens is not None:
        assert (np.nan_to_num(difference.lens.a) == np.nan_to_num(difference.lens.b)).all()
        assert (difference.lens.answer_logprobs[:, 0] == difference.lens.answer_logprobs[:, 1]).all()
        assert (difference.lens.answers[0] == difference.lens.answers[1]).all()
    if name == "mixtral":
        assert "experts" in difference.no_neurons
        with pytest.raises(NotRecordedError, match="experts"):
            difference.top_neurons("L0", 0)
    else:
        assert all(value == other for _, value, other in difference.top_neurons("L0", 0))


@pytest.mark.parametrize("rows", [2**24, 300])
def test_the_numbers_are_those_of_two_full_records(rows, monkeypatch):
    monkeypatch.setattr(logit_lens, "LOGITS", rows)  # all at once, or a few rows at a time
    model = build_model()
    edits = [hs.silence("L0H1")]
    edited, other = model.run(TEXT, edits, record="full"), model.run(TEXT, record="full")
    difference = model.activations_difference(hs.compare(edited, other), k=3)
    streams = [trace.residuals["main"] for trace in (edited, other)]
    norms = [stream.norm(dim=-1).numpy() for stream in streams]
    assert difference.norms == pytest.approx(norms[0] - norms[1], abs=1e-4)
    assert not difference.norms[0].any() and difference.norms[1:].any()  # the input is before the edit
    assert (
        not difference.heads[difference.layers[0]][[0, 2, 3]].any()
        and difference.heads[difference.layers[0]][1].max() < 0
    )
    for layer in difference.layers:
        neurons = [trace.neurons(str(layer)) for trace in (edited, other)]
        for token in range(len(difference.tokens)):
            change = np.abs(neurons[0][token] - neurons[1][token])
            index, first, second = difference.top_neurons(layer, token)[0]
            assert abs(first - second) == pytest.approx(change.max(), abs=1e-5)
            assert (first, second) == pytest.approx((neurons[0][token, index], neurons[1][token, index]), abs=1e-5)
    # Each run's probability of what either finds likely, at the last place: the model's own.
    logprobs = [trace.logits.float().log_softmax(-1).numpy() for trace in (edited, other)]  # type: ignore[union-attr]
    for token in range(len(difference.tokens)):
        predictions = difference.predictions(token)[difference.places[-1]]
        for change in predictions:
            assert (change.a, change.b) == pytest.approx([side[token, change.id] for side in logprobs], abs=1e-4)
        moved = [abs(np.exp(change.a) - np.exp(change.b)) for change in predictions]
        assert moved == sorted(moved, reverse=True)
        tops = {int(id) for side in logprobs for id in np.argsort(-side[token])[:3]}
        assert {change.id for change in predictions} == tops


def test_only_tokens_that_both_have_are_there():
    model = build_model()
    first, other = model.run("the cat sat on the mat"), model.run("the cat ran and sat on the mat")
    both = hs.compare(first, other)
    difference = model.activations_difference(both)
    alone = model.activations(first), model.activations(other)
    pairs = both.alignment["main"]
    places = [[group[0] for group in side] for side in (pairs.ones, pairs.others)]
    assert len(difference.tokens) == len(pairs) < len(other.tokens["main"])
    assert difference.norms == pytest.approx(alone[0].norms[:, places[0]] - alone[1].norms[:, places[1]], abs=1e-5)
    part = model.activations_difference(both, tokens=range(2, 4))
    assert (part.first, part.count, part.norms.shape) == (2, 2, difference.norms.shape)
    assert part.top_neurons("L1", 3) == difference.top_neurons("L1", 3)
    assert {prediction.id for prediction in part.predictions(2)["L1"]} == {
        prediction.id for prediction in difference.predictions(2)["L1"]
    }
    with pytest.raises(UnknownTokenError, match="2 to 3"):
        part.predictions(0)
    with pytest.raises(InputError, match="tokens of both runs"):
        model.activations_difference(both, tokens=range(0, 99))


def test_what_cannot_be_subtracted_is_said():
    model = build_model()
    trace = model.run(TEXT)
    with pytest.raises(InputError, match="no stack 'moon'"):
        model.activations_difference(hs.compare(trace, trace), stack="moon")
    with pytest.raises(InputError, match="not by words"):
        model.activations_difference(hs.compare(trace, model.run("a cat sat on the mat"), by="words"))
    with pytest.raises(BudgetError, match="shorten"):
        model.activations_difference(hs.compare(trace, trace), budget=100)
    checkpoint = build_model(name="step 2")
    both = hs.compare(build_model(name="step 1").run(TEXT), checkpoint.run(TEXT))
    with pytest.raises(InputError, match="give both models"):
        model.activations_difference(both)
    assert not model.activations_difference(both, checkpoint).norms.any()  # the same weights


def test_edits_are_read_from_the_trace_where_they_can_be():
    model = build_model()
    plain = model.run(TEXT)
    patched = model.run(TEXT, [hs.patch("L1H0", model.run("the dog ran on the mat"))])
    with pytest.raises(InputError, match="interventions="):
        model.activations_difference(hs.compare(patched, plain))
    edits = [hs.patch("L1H0", model.run("the dog ran on the mat"))]
    difference = model.activations_difference(hs.compare(patched, plain), interventions=(edits, []))
    assert difference.norms[-1].any() and not difference.norms[1].any()


def test_models_of_other_widths_say_what_cannot_be_compared():
    from transformers import GPT2Config, GPT2LMHeadModel

    def tiny(n_inner: int, vocabulary: int, name: str) -> Model:
        torch.manual_seed(0)
        config = GPT2Config(vocab_size=vocabulary, n_positions=64, n_embd=32, n_layer=2, n_head=4, n_inner=n_inner)
        return Model(GPT2LMHeadModel(config).eval(), tiny_tokenizer(), name=name)

    vocabulary = len(tiny_tokenizer())
    small, other = tiny(64, vocabulary, "one"), tiny(96, vocabulary + 8, "other")
    difference = small.activations_difference(hs.compare(small.run(TEXT), other.run(TEXT)), other)
    assert difference.lens is None and "choose among" in difference.no_lens
    assert "64 neurons in one model and 96 in the other" in difference.no_neurons
    assert difference.norms.shape == (3, len(difference.tokens))
    with pytest.raises(NotRecordedError, match="choose among"):
        difference.predictions(0)
