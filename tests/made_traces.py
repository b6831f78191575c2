"""Traces made without a model: random queries and keys under a formula, at every level of recording."""

from dataclasses import replace

import torch

from headscope.attention import Formula, Summary, expand_heads, log_denominator, scores, softmax, summarise
from headscope.choices import Record
from headscope.sites import Site
from headscope.traces import LayerRecord, Predictions, Tokens, Trace

N_HEADS, DIM = 4, 6


def random_layer(
    formula: Formula,
    n_queries: int = 12,
    n_keys: int | None = None,
    *,
    site: Site | None = None,
    key_stack: str = "main",
    groups: int = 2,
    dtype: torch.dtype = torch.float32,
    record: Record = "heads",
) -> LayerRecord:
    """One layer of four heads over two groups of keys; the next random numbers are its queries, keys and values."""
    n_keys = n_keys or n_queries
    query = torch.randn(N_HEADS, n_queries, DIM).to(dtype)
    key, value = torch.randn(groups, n_keys, DIM).to(dtype), torch.randn(groups, n_keys, DIM).to(dtype)
    wide = torch.promote_types(dtype, torch.float32)
    raw_scores = scores(query[None].to(wide), expand_heads(key[None], N_HEADS).to(wide), formula)
    pattern = softmax(raw_scores, formula.sinks)
    lse = None if formula.sinks is None else log_denominator(raw_scores, formula.sinks)[0].float()
    summary = summarise(pattern[0].float(), raw_scores[0].float(), lse=lse, rows_only=record == "rows")
    about = (site or Site("main", 0), N_HEADS, n_queries, n_keys, key_stack, "routed", summary)
    is_causal = n_queries == n_keys and formula.mask is not None and formula.mask.is_causal
    if record in ("rows", "summary"):
        return LayerRecord(*about, is_causal=is_causal)
    each = expand_heads(value[None], N_HEADS)[0]
    vectors = {"query": query, "key": key, "value": value, "mixed": (pattern[0].to(dtype) @ each)}
    norms = each.float().norm(dim=-1)
    return LayerRecord(*about, formula=formula, **vectors, value_norms=norms, is_causal=is_causal)


def trace_of_layers(*layers: LayerRecord, record: Record = "heads", **more) -> Trace:
    """A trace of these layers, numbered in order, with an answer and, at `full`, everything else."""
    numbered = [replace(layer, site=replace(layer.site, layer=index)) for index, layer in enumerate(layers)]
    tokens = {}
    for layer in numbered:
        for stack, length in ((layer.site.stack, layer.n_queries), (layer.key_stack, layer.n_keys)):
            tokens[stack] = Tokens.of([f"{stack[0]}{index}" for index in range(length)])
    answers = Predictions.of(torch.randn(1, 60), stack="main", positions=(3,), names=str)
    if record == "full":
        length = numbered[0].n_queries
        more["residuals"] = {"main": torch.randn(len(layers) + 1, length, 8)}
        more["activations"] = {Site("main", index, "neurons"): torch.randn(length, 16) for index in range(len(layers))}
        more["logits"] = torch.randn(length, 60)
    return Trace("made", record, {layer.site: layer for layer in numbered}, tokens, answers=answers, **more)


def assert_equal(first: Trace, second: Trace) -> None:
    """The same to the last bit, NaN included."""
    assert (first.model, first.record, first.tokens, first.inputs) == (
        second.model,
        second.record,
        second.tokens,
        second.inputs,
    )
    assert (first.edits, first.steps, first.warnings) == (second.edits, second.steps, second.warnings)
    assert list(first.layers) == list(second.layers)
    for site, layer in first.layers.items():
        _assert_equal_layers(layer, second.layers[site])
    _assert_equal_tensors(first.residuals, second.residuals)
    _assert_equal_tensors(first.activations, second.activations)
    _assert_equal_tensors({"logits": first.logits}, {"logits": second.logits})
    assert (first.answers is None) == (second.answers is None)
    if first.answers is not None and second.answers is not None:
        _assert_equal_tensors(_plain(first.answers), _plain(second.answers))


def _assert_equal_layers(first: LayerRecord, second: LayerRecord) -> None:
    assert first.summary.tensors().keys() == second.summary.tensors().keys()
    _assert_equal_tensors(_plain(first), _plain(second))


def _plain(record) -> dict:
    """The fields, one level down where they have fields of their own."""
    plain = {}
    for name, value in vars(record).items():
        if isinstance(value, Summary | Formula) or type(value).__name__ in ("Mask", "Bias"):
            plain |= {f"{name}.{inner}": inner_value for inner, inner_value in _plain(value).items()}
        elif isinstance(value, dict):
            plain |= {f"{name}.{inner}": inner_value for inner, inner_value in value.items()}
        else:
            plain[name] = value
    return plain


def _assert_equal_tensors(first: dict, second: dict) -> None:
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        other = second[name]
        if not isinstance(tensor, torch.Tensor):
            assert tensor == other, name
            continue
        assert tensor.dtype == other.dtype and tensor.shape == other.shape, name
        assert tensor.contiguous().view(torch.uint8).equal(other.contiguous().view(torch.uint8)), name
