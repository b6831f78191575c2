"""One head of two runs, neuron by neuron: what numpy subtracts, on the tokens that both have."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.attention import Bias, Formula
from headscope.attention.masks import Mask
from headscope.errors import NotRecordedError, UnknownTokenError
from headscope.traces import Tokens, Trace, compare
from headscope.views.neurons import Terms
from headscope.views.parts import part
from headscope.views.wire import decode
from tests.made_traces import random_layer, trace_of_layers


def seeded_trace(seed: int, texts: str = "a b c d e f g", scaling: float = 0.7) -> Trace:
    torch.manual_seed(seed)
    words = texts.split()
    length = len(words)
    formula = Formula(
        scaling, mask=Mask.causal(length, length), bias=Bias("key", torch.randn(1, 4, length), length, length)
    )
    trace = trace_of_layers(*(random_layer(formula, length) for _ in range(2)))
    return replace(trace, tokens={"main": Tokens.of(words)})


def difference_part(key: str, first: Trace, other: Trace):
    """A part, as the page gets it."""
    full_key = f"{key}{'&' if '?' in key else '?'}minus=other"
    return decode(part(first, full_key, id="one", find={"other": other}.__getitem__).encode())


def test_every_term_is_the_difference_of_the_terms():
    left, other = seeded_trace(1), seeded_trace(2, scaling=0.5)
    head = left.heads[-1]
    first, second = (Terms(trace, head, 0, 7) for trace in (left, other))
    page_part = difference_part(f"neuron/{head}", left, other)
    for name in ("query", "mixed", "dots", "bias", "weights", "lengths"):
        expected = (getattr(first, name) - getattr(second, name)).numpy()
        assert page_part.arrays[name] == pytest.approx(expected, abs=1e-5), name
    # Products follow from what comes along, not from differences.
    keys = [
        np.asarray(difference_part(f"vectors/{head}?of=key", left, other).arrays[name]) for name in ("vectors", "other")
    ]
    assert keys[0] == pytest.approx((first.key - second.key).numpy(), abs=1e-6)
    queries = [np.asarray(page_part.arrays[f"{side}:query"])[4] for side in ("a", "b")]
    products = queries[0] * (keys[0] + keys[1]) - queries[1] * keys[1]
    assert products == pytest.approx((first.products - second.products)[4].numpy(), abs=1e-5)
    assert products.sum(1) == pytest.approx(np.asarray(page_part.arrays["dots"])[4], abs=1e-5)
    assert any("0.5" in note for note in page_part.props["notes"])
    alone = difference_part(f"neuron/{head}?query=4", left, other)
    assert alone.arrays["dots"] == pytest.approx(np.asarray(page_part.arrays["dots"])[4:5], abs=1e-6)


def test_only_tokens_that_both_have_are_there():
    left, other = seeded_trace(1), seeded_trace(2, "a b x y c d f g")  # x, y inserted; e left out
    ours, theirs = [0, 1, 2, 3, 5, 6], [0, 1, 4, 5, 6, 7]
    first, second = (Terms(trace, trace.heads[3], 0, n) for trace, n in ((left, 7), (other, 8)))
    page_part = difference_part("neuron/L0H3", left, other)
    expected = first.weights[ours][:, ours] - second.weights[theirs][:, theirs]
    assert page_part.arrays["weights"] == pytest.approx(expected.numpy(), abs=1e-6)
    assert page_part.arrays["query"] == pytest.approx((first.query[ours] - second.query[theirs]).numpy(), abs=1e-6)
    with pytest.raises(UnknownTokenError, match="there is no query 6"):
        difference_part("neuron/L0H3?query=6", left, other)


def test_a_run_minus_itself_is_nothing():
    trace = seeded_trace(1)
    page_part = difference_part("neuron/L1H0", trace, trace)
    for name in ("query", "mixed", "dots", "bias", "weights", "lengths", "importance", "norms"):
        assert not np.asarray(page_part.arrays[name]).any(), name
    assert not np.asarray(difference_part("vectors/L1H0?of=value", trace, trace).arrays["vectors"]).any()


def test_rounding_stays_pale():
    trace = seeded_trace(1)
    layers = {site: replace(layer, key=layer.key * (1 + 1e-7)) for site, layer in trace.layers.items()}  # type: ignore[operator]
    page_part = difference_part("vectors/L1H0?of=key", trace, replace(trace, layers=layers))
    assert page_part.props["largest"] > 5 * np.abs(np.asarray(page_part.arrays["vectors"])).max()


def test_what_cannot_be_subtracted_is_said():
    first = seeded_trace(1)
    layers = {site: replace(layer, value=layer.value[..., :2]) for site, layer in first.layers.items()}  # type: ignore[index]
    with pytest.raises(NotRecordedError, match=r"a value has \d+ neurons in one run and 2 in the other"):
        difference_part("neuron/L0H0", first, replace(first, layers=layers))
    words = Tokens(tuple(replace(token, word=min(place, 2)) for place, token in enumerate(first.tokens["main"])))
    both = compare(*(replace(trace, tokens={"main": words}) for trace in (first, seeded_trace(2))), by="words")
    with pytest.raises(NotRecordedError, match="compare by tokens"):
        hs.neuron_view(both, "L0H0")


def test_views_of_a_comparison_are_files_like_others(tmp_path):
    view = hs.neuron_view(compare(seeded_trace(1), seeded_trace(2)), "L1H2", token=4, sort="contribution")
    columns = view.table().columns
    weights = (seeded_trace(1).pattern("L1H2") - seeded_trace(2).pattern("L1H2"))[4]
    assert columns["weight"] == pytest.approx(weights[columns["key position"].astype(int)], abs=1e-6)
    assert (np.diff(np.abs(columns["weight"])) <= 0).all()
    view.save(tmp_path / "difference.svg")
    view.save(tmp_path / "difference.html")
    assert "neuron/L1H2" in (tmp_path / "difference.html").read_text()
