"""Activations: norms and ranks known on paper, and the same numbers as a full record gives."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer
from torch import nn

import headscope as hs
from headscope.errors import BudgetError, InputError, NotRecordedError, UnknownTokenError
from headscope.models import Model, logit_lens
from headscope.models.activations import Streams, read_around
from headscope.models.logit_lens import read_lens
from headscope.traces import Tokens

TEXT = "the cat sat on the mat"


def build_model(name: str) -> Model:
    return Model(FAMILIES[name].build(), tiny_tokenizer())


def on_paper(logits: list, *, names: str = "abc") -> SimpleNamespace:
    """A model whose residual stream is its logits already."""
    module = nn.Module()
    module.head = nn.Identity()
    return SimpleNamespace(
        module=module,
        name="paper",
        device=torch.device("cpu"),
        dtype=torch.float32,
        is_encoder_decoder=False,
        layout=SimpleNamespace(lens=("head",), no_lens=""),
        token_text=names.__getitem__,
    )


def test_norms_and_cosines_on_paper():
    residual = torch.tensor([[[3.0, 4.0, 0.0]], [[0.0, 0.0, 2.0]], [[6.0, 8.0, 0.0]]])
    values = torch.tensor([[[2.0, -1.0]], [[0.5, 0.5]]])
    streams = Streams(
        stack="main",
        tokens=Tokens.of(["x"]),
        residual=residual,
        written={"mlp": torch.tensor([[1.0], [2.0]])},
        is_sum=False,
        neurons=torch.tensor([[[7, 2]], [[0, 1]]], dtype=torch.int32),
        values=values,
        squares=torch.tensor([[8.0], [1.0]]),
        n_neurons=9,
    ).read(on_paper([]))  # type: ignore[arg-type]
    assert streams.norms[:, 0].tolist() == [5.0, 2.0, 10.0]
    assert streams.cosines[:, 0].tolist() == pytest.approx([1.0, 0.0, 1.0])
    assert streams.places == ["input", "L0", "L1"]
    assert streams.top_neurons("L0", 0) == [(7, 2.0, 0.5), (2, -1.0, 0.125)]
    with pytest.raises(InputError, match="L0 to L1"):
        streams.top_neurons("L5", 0)


def test_the_lens_on_paper():
    stream = torch.tensor([[[0.0, 1.0, 2.0]], [[1.0, 0.0, 3.0]], [[5.0, 0.0, 1.0]]])
    lens = read_lens(on_paper([]), stream, 2)  # type: ignore[arg-type]
    assert lens.ids[:, 0].tolist() == [[2, 1], [2, 0], [0, 2]]
    assert lens.ranks[:, 0].tolist() == [2, 1, 0]  # of "a", which is first in the end
    expected = stream[:, 0].log_softmax(-1)[:, 0]
    assert lens.answers[:, 0] == pytest.approx(expected.numpy())
    assert lens.names == {0: "a", 1: "b", 2: "c"}


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "opt", "bart"])
def test_the_numbers_are_those_of_a_full_record(name, monkeypatch):
    monkeypatch.setattr(logit_lens, "LOGITS", 300)  # a few rows at a time
    model = build_model(name)
    trace = model.run(TEXT, target="a mat" if name == "bart" else None, record="full")
    activations = model.activations(trace, k=3)
    stack, length = activations.stack, len(activations.tokens)
    for place in range(len(activations.places)):
        stream = trace.residuals[stack][place]
        assert np.allclose(activations.norms[place], stream.norm(dim=-1), atol=1e-4)
    whole = model.lens(trace, 3)
    for place, where in enumerate(activations.places):
        for token in range(length):
            predictions = activations.predictions(token)[where]
            assert [prediction.logprob for prediction in predictions] == pytest.approx(
                [prediction.logprob for prediction in whole[place][token]], abs=1e-4
            )
    for layer in activations.layers:
        neurons = trace.neurons(str(layer))
        for token in range(length):
            index, value, share = activations.top_neurons(layer, token)[0]
            assert abs(value) == pytest.approx(np.abs(neurons[token]).max(), rel=1e-4)
            assert share == pytest.approx(neurons[token, index] ** 2 / (neurons[token] ** 2).sum(), rel=1e-3)


@pytest.mark.parametrize(("name", "is_sum"), [("gpt2", True), ("llama", True), ("bert", False), ("gemma2", False)])
def test_what_was_written_is_the_change_where_nothing_is_normalised_between(name, is_sum):
    model = build_model(name)
    trace = model.run(TEXT, record="full")
    activations = model.activations(trace)
    assert activations.is_sum is is_sum and set(activations.written) == {"attention", "mlp"}
    change = np.linalg.norm(np.diff(trace.residuals["main"].float().numpy(), axis=0), axis=-1)
    if is_sum:
        assert (change <= activations.written["attention"] + activations.written["mlp"] + 1e-4).all()


def test_what_a_head_wrote():
    model = build_model("gpt2")
    trace = model.run(TEXT)
    activations = model.activations(trace)
    weight = model.module.transformer.h[1].attn.c_proj.weight  # [head · dim, model]
    size = weight.shape[0] // 4
    for head in range(4):
        wrote = trace.mixed(f"L1H{head}") @ weight[head * size : (head + 1) * size].detach().numpy()
        site = next(layer for layer in activations.heads if str(layer) == "L1")
        assert np.allclose(activations.heads[site][head], np.linalg.norm(wrote, axis=-1), atol=1e-4)


@pytest.mark.parametrize(("name", "reason"), [("gemma2", "follows the language-model head"), ("t5", "is not a module")])
def test_what_cannot_be_had_is_said(name, reason):
    model = build_model(name)
    activations = model.activations(model.run(TEXT, target="a mat" if name == "t5" else None))
    assert activations.lens is None and reason in activations.no_lens
    with pytest.raises(NotRecordedError, match="no logit lens"):
        activations.predictions(0)


def test_experts_have_no_one_row_of_neurons():
    activations = build_model("mixtral").activations(TEXT)
    assert activations.neurons is None and "experts" in activations.no_neurons and activations.lens is not None
    with pytest.raises(NotRecordedError, match="experts"):
        activations.top_neurons("L0", 0)


def test_edits_are_followed_and_asked_for():
    model = build_model("gpt2")
    edits = [hs.silence("L0H1")]
    trace = model.run(TEXT, edits, record="full")
    with pytest.raises(InputError, match="interventions="):
        model.activations(trace)
    activations = model.activations(trace, edits)
    assert np.allclose(activations.norms, trace.residuals["main"].norm(dim=-1), atol=1e-4)
    assert not np.allclose(activations.norms, model.activations(TEXT).norms, atol=1e-3)


def test_some_tokens_alone():
    model = build_model("gpt2")
    whole, part = model.activations(TEXT), model.activations(TEXT, tokens=range(2, 4))
    assert part.norms.shape == whole.norms.shape and part.count == 2
    assert part.ranks(3) == whole.ranks(3)
    for place, predictions in part.predictions(2).items():
        assert [prediction.text for prediction in predictions] == [
            prediction.text for prediction in whole.predictions(2)[place]
        ]
    with pytest.raises(UnknownTokenError, match="2 to 3"):
        part.predictions(0)
    for wrong in (range(0, 99), range(3, 3), range(0, 4, 2)):
        with pytest.raises(InputError, match="range"):
            model.activations(TEXT, tokens=wrong)
    with pytest.raises(InputError, match="no stack 'encoder'"):
        model.activations(TEXT, stack="encoder")
    with pytest.raises(BudgetError, match="shorten"):
        model.activations(TEXT, budget=100)


def test_of_a_long_input_the_tokens_around_one_are_read():
    assert read_around(None, 500) == range(500)
    assert read_around(3, 500) == range(500)
    assert read_around(None, 1000) == range(744, 1000)
    assert read_around(600, 1000) == range(344, 856)
    assert read_around(-1, 1000) == range(488, 1000)
    assert read_around(7, 1000) == range(512)
    assert read_around(range(4, 6), 1000) == range(4, 6)


def test_nothing_stays_behind_in_the_model():
    model = build_model("gpt2")
    before = sum(len(module._forward_hooks) for module in model.module.modules())
    model.activations(TEXT)
    with pytest.raises(BudgetError):
        model.activations(TEXT, budget=100)
    assert sum(len(module._forward_hooks) for module in model.module.modules()) == before
