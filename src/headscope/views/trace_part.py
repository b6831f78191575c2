"""One run for the page: what was read, which layers there are, what the model answered."""

import re

from headscope.errors import NotRecordedError
from headscope.traces import Difference, LayerRecord, Tokens, Trace
from headscope.traces.patch_grids import grid_of
from headscope.traces.tokens import Box
from headscope.views.contract import (
    AnswerProps,
    CandidateProps,
    DifferenceProps,
    OtherLayerProps,
    SiteProps,
    StackProps,
    TraceProps,
)
from headscope.views.edited import edited_heads, edited_layers, edited_weights, replaced_tokens
from headscope.views.experts import n_experts_of
from headscope.views.layers import plain_texts
from headscope.views.media import looks_like, picture_of, shares_of
from headscope.views.neurons import no_neurons
from headscope.views.weights import no_contributions, no_scores, no_weights
from headscope.views.wire import Part

N_CANDIDATES = 10
_IN_WINDOWS = "this layer attends within windows of the image, where single tokens cannot be chosen"


def trace_part(trace: Trace, id: str = "") -> Part:
    """`trace`: everything but the numbers."""
    inputs, answers = trace.inputs, _answers(trace)
    return Part(
        "trace",
        TraceProps(
            id=id,
            model=_plain(trace.model),
            record=trace.record,
            input_kind="patterns" if inputs is None else inputs.kind,
            text=None if inputs is None else _plain_or_none(inputs.text),
            pair=None if inputs is None else _plain_or_none(inputs.pair),
            target=None if inputs is None else _plain_or_none(inputs.target),
            edits=[_plain(edit) for edit in trace.edits],
            warnings=[_plain(warning) for warning in trace.warnings],
            stacks=[_stack(trace, name, tokens) for name, tokens in trace.tokens.items()],
            layers=[_site(trace, layer) for layer in trace.layers.values()],
            answers=answers,
            no_answers="" if answers else _no_answers(trace),
            steps=None if trace.steps is None else list(trace.steps),
            difference=_difference(trace),
            other_layers=[OtherLayerProps(site.stack, site.layer, mixer) for site, mixer in trace.other_layers.items()],
            edited_heads=edited_heads(trace),
            edited_weights=edited_weights(trace),
            edited_layers=edited_layers(trace),
            pruned_heads=[str(head) for head in trace.pruned_heads],
        ),
    )


def short_name(model: str) -> str:
    """A model's name for those who do not have its files: of a folder the last part, others as they are."""
    if " − " in model:  # a difference
        return " − ".join(map(short_name, model.split(" − ")))
    looks_like_path = model.startswith((".", "/", "~")) or model.count("/") > 1 or "\\" in model
    if model.startswith("builtin:") or not looks_like_path:
        return model
    return re.split(r"[/\\]+", model.rstrip("/\\"))[-1] or model


def _difference(trace: Trace) -> DifferenceProps | None:
    if not isinstance(trace, Difference) or trace.comparison is None:
        return None
    first, second = trace.comparison.a, trace.comparison.b
    return DifferenceProps(_plain(run_name(first)), _plain(run_name(second)), _plain(trace.comparison.line))


def run_name(trace: Trace) -> str:
    """A run in a few words: its model, its edits, the beginning of its text."""
    text = "" if trace.inputs is None else " ".join((trace.inputs.text or "").split())
    text = f": {text[:39].rstrip()}…" if len(text) > 40 else f": {text}" if text else ""
    edits = f", {len(trace.edits)} edit{'s' if len(trace.edits) > 1 else ''}" if trace.edits else ""
    return f"{short_name(trace.model)}{edits}{text}"


def _stack(trace: Trace, name: str, tokens: Tokens) -> StackProps:
    return StackProps(
        name=name,
        kind=tokens.kind,
        grid=tokens.grid,
        texts=plain_texts(tokens),
        ids=[token.id for token in tokens],
        special=[place for place, token in enumerate(tokens) if token.special],
        words=_group_numbers(tokens, "word"),
        sentences=_group_numbers(tokens, "sentence"),
        segments=[token.segment for token in tokens],
        spaces=_spaces(tokens),
        looks=looks_like(trace, name),
        replaced=replaced_tokens(trace, name),
        boxes=_boxes(trace, name, tokens),
        answer=_answer_span(trace, name),
    )


def _boxes(trace: Trace, name: str, tokens: Tokens) -> list[Box | None]:
    """Where the image tokens of a text lie in the picture that is drawn."""
    if looks_like(trace, name) != "image" or all(token.patch is None for token in tokens):
        return []
    picture = picture_of(trace, name)
    return [None if token.patch is None else shares_of(token.patch.drawn, picture) for token in tokens]


def _answer_span(trace: Trace, stack: str) -> tuple[int, int] | None:
    """The span of a stack's tokens that the model answers with, where it marks one."""
    answers = trace.answers
    return trace.span.span if answers is not None and answers.are_spans and answers.stack == stack else None


def _group_numbers(tokens: Tokens, what: str) -> list[int | None]:
    """Words (or sentences) by numbers that no two of them share, in whichever segment they stand."""
    numbers: dict[tuple[str, int], int] = {}
    ids: list[int | None] = []
    for token in tokens:
        id_in_segment: int | None = None if token.special else getattr(token, what)
        ids.append(None if id_in_segment is None else numbers.setdefault((token.segment, id_in_segment), len(numbers)))
    return ids


def _spaces(tokens: Tokens) -> list[int]:
    """The positions before which the text has white space: where a token does not begin where the last one ended."""
    places, ends = [], {}
    for place, token in enumerate(tokens):
        end = ends.get(token.segment)
        if token.start is not None and end is not None and token.start > end:
            places.append(place)
        if token.end is not None:
            ends[token.segment] = token.end
    return places


def _site(trace: Trace, layer: LayerRecord) -> SiteProps:
    return SiteProps(
        site=str(layer.site),
        stack=layer.site.stack,
        kind="cross" if layer.site.kind == "cross" else "self",
        layer=layer.site.layer,
        n_heads=layer.n_heads,
        n_queries=layer.n_queries,
        n_keys=layer.n_keys,
        key_stack=layer.key_stack,
        is_causal=layer.is_causal,
        no_weights=no_weights(layer),
        no_scores=no_scores(layer),
        no_contributions=no_contributions(layer),
        no_neurons=no_neurons(layer),
        window=layer.window or 0,
        global_tokens=list(layer.global_tokens),
        n_experts=n_experts_of(trace, layer),
        no_token_edits="" if layer.places is None else _IN_WINDOWS,
        grid=grid_of(trace.tokens[layer.key_stack], layer),
        places=[] if layer.places is None else layer.places.tolist(),
    )


def _answers(trace: Trace) -> list[AnswerProps]:
    if trace.answers is None:
        return []
    answers = []
    for place in range(len(trace.answers.ids)):
        top = [
            prediction for prediction in trace.answers.top(N_CANDIDATES, place) if prediction.logprob > float("-inf")
        ]
        position = trace.answers.positions[place] if trace.answers.positions else -1
        candidates = [CandidateProps(_plain(prediction.text), prediction.logprob, prediction.id) for prediction in top]
        answers.append(AnswerProps(trace.answers.stack, position, candidates))
    return answers


def _no_answers(trace: Trace) -> str:
    try:
        trace.predictions()
    except NotRecordedError as reason:
        return str(reason)
    return ""


def _plain(text: str) -> str:
    """Nothing that UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _plain_or_none(text: str | None) -> str | None:
    return None if text is None else _plain(text)
