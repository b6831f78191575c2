"""BertViz's neuron view, on any model: `from headscope.compat.bertviz.neuron_view import show, get_attention`.

BertViz runs three families, in copies of their code from 2019; here the model is whatever transformers, or a module of
one's own, gives. `model_type` is taken as it is: what the model is, it says itself.
"""

from typing import Any

import torch

from headscope.compat.bertviz.util import format_special_chars
from headscope.compat.bertviz.views import Html, finish
from headscope.errors import InputError
from headscope.models import Model
from headscope.traces import LayerRecord, Trace
from headscope.views import View, neuron_view
from headscope.views.neurons import no_neurons


def show(
    model: Any,
    model_type: str,
    tokenizer: Any,
    sentence_a: str,
    sentence_b: str | None = None,
    display_mode: str = "dark",
    layer: int | None = None,
    head: int | None = None,
    html_action: str = "view",
) -> View | Html | None:
    """BertViz's `show`: queries, keys and what they make of each other, of one head; the first unless said."""
    if display_mode not in ("dark", "light"):
        raise InputError(f"display_mode={display_mode!r} is not known: choose 'dark' or 'light'.")
    trace = _trace(model, model_type, tokenizer, sentence_a, sentence_b)
    site = trace.heads[0].site if layer is None else _site(trace, layer)
    count = trace.layers[site].n_heads
    if head is not None and not 0 <= head < count:
        raise InputError(f"head={head} goes beyond the {count} heads of {site}, 0 to {count - 1}.")
    view = neuron_view(trace, site.head(head or 0), theme=display_mode)  # type: ignore[arg-type]
    return finish(view, html_action)


def get_attention(
    model: Any,
    model_type: str,
    tokenizer: Any,
    sentence_a: str,
    sentence_b: str | None = None,
    include_queries_and_keys: bool = False,
) -> dict[str, dict[str, Any]]:
    """Patterns, and queries and keys where asked for, as BertViz lists them.

    `all`, and of a pair `aa`, `ab`, `ba` and `bb`, each with `attn` [layer][head][query][key], `left_text` and
    `right_text`, and `queries` and `keys` [layer][head][token][dim], as used: after rotary positions. Heads that share
    keys each have them.
    """
    trace = _trace(model, model_type, tokenizer, sentence_a, sentence_b)
    if len(trace.tokens) > 1:
        raise InputError(
            f"get_attention describes one stack of tokens, and this model has {', '.join(trace.tokens)}: "
            "read hs.Model(model, tokenizer).run(text) instead, which has them all."
        )
    texts = _spell(trace, tokenizer)
    spans = {"all": (slice(None), slice(None))}
    if sentence_b:
        second = _second(trace)
        parts = {"a": slice(0, second), "b": slice(second, len(texts))}
        spans |= {left + right: (parts[left], parts[right]) for left in "ab" for right in "ab"}
    attention_by_span: dict[str, dict[str, Any]] = {}
    for name, (rows, columns) in spans.items():
        attention_by_span[name] = {"attn": [], "left_text": texts[rows], "right_text": texts[columns]}
        if include_queries_and_keys:
            attention_by_span[name] |= {"queries": [], "keys": []}
    for layer in trace.layers.values():
        patterns = layer.patterns()
        queries, keys = _vectors(layer) if include_queries_and_keys else (None, None)
        for name, (rows, columns) in spans.items():
            attention_by_span[name]["attn"].append(patterns[:, rows, columns].tolist())
            if queries is not None and keys is not None:
                attention_by_span[name]["queries"].append(queries[:, rows].tolist())
                attention_by_span[name]["keys"].append(keys[:, columns].tolist())
    return attention_by_span


def _trace(model: Any, model_type: str, tokenizer: Any, first: str, second: str | None) -> Trace:
    if not isinstance(model_type, str):
        raise InputError(f"model_type is a name such as 'bert', not {model_type!r}.")
    if not first:
        raise InputError("Sentence A is required")
    ours = model if isinstance(model, Model) else Model(model, tokenizer)
    if second and getattr(getattr(ours.module, "config", None), "is_encoder_decoder", False):
        return ours.run(first, target=second, record="heads")
    return ours.run(first, pair=second or None, record="heads")


def _site(trace: Trace, layer: int):
    numbers = sorted({site.layer for site in trace.layers})
    if layer not in numbers:
        raise InputError(f"layer={layer} is not there: this model has layers 0 to {numbers[-1]}.")
    return next(site for site in trace.layers if site.layer == layer)


def _vectors(layer: LayerRecord) -> tuple[torch.Tensor, torch.Tensor]:
    if reason := no_neurons(layer):
        raise InputError(f"there are no queries and keys of {layer.site}: {reason}.")
    heads = range(layer.n_heads)
    queries, keys = (torch.stack([layer.tensor(name, head).float() for head in heads]) for name in ("query", "key"))
    return queries, keys


def _spell(trace: Trace, tokenizer: Any) -> list[str]:
    """Tokens as BertViz writes them: as the tokenizer spells them, with spaces for marks."""
    (tokens,) = trace.tokens.values()
    if tokenizer is None or any(token.id is None for token in tokens):
        return tokens.texts
    texts = format_special_chars(tokenizer.convert_ids_to_tokens([token.id for token in tokens]))
    known = {getattr(tokenizer, "sep_token", None): "[SEP]", getattr(tokenizer, "cls_token", None): "[CLS]"}
    return [known.get(text, text) for text in texts]


def _second(trace: Trace) -> int:
    """Where the second sentence begins; of two separators before it (RoBERTa), one is its own."""
    (tokens,) = trace.tokens.values()
    place = next(place for place, token in enumerate(tokens) if token.segment == "B")
    return place - 1 if place > 1 and tokens[place - 1].special and tokens[place - 2].special else place
