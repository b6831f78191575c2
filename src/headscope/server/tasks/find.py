"""Finding heads for the page: by an example, by a pattern (named or painted), by what silencing them does."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from headscope.analysis import MEASURES, ablation, find_heads, repeated_tokens
from headscope.analysis.search.find_heads import example_problem
from headscope.analysis.search.pattern_needs import needs_of
from headscope.analysis.usecases.pronoun_sentences import schemas
from headscope.analysis.usecases.sentence_pairs import built_in_pairs
from headscope.choices import Ablation
from headscope.errors import InputError, UnknownTokenError
from headscope.models.inputs.accepted import Intake
from headscope.progress import Steps
from headscope.reports.evidence import format_cell
from headscope.scores import Scores
from headscope.server.catalogue import kinds_of
from headscope.server.messages import PatternOffer
from headscope.server.tasks.task import Desk, Task
from headscope.traces import Inputs, LayerRecord, Tokens, Trace
from headscope.views.contract import FoundProps, MethodProps
from headscope.views.wire import Part

MOST_LINES = 200
MOST_CHARACTERS = 50_000
MOST_CELLS = 50_000
N_SAMPLE = 24
BETWEEN = "|||"
"""Between the two texts of a pair, or source and target, in one line."""


@dataclass(frozen=True)
class FindOptions:
    """What is looked for, and in which inputs.

    `source` and `target` are words of the text, or positions. `cells` are painted: a query, the first key and the one
    past the last, of layers like `site`. `token` is the prediction whose log-probability counts, at `position`.
    """

    by: Literal["example", "pattern", "painted", "effect"]
    source: str | list[int] = ""
    target: str | list[int] = ""
    pattern: str = ""
    cells: list[tuple[int, int, int]] = field(default_factory=list)
    site: str = ""
    token: str = ""
    position: int | None = None
    ablate: Ablation = "zero"
    over: Literal["run", "lines", "sample", "repeated"] = "run"
    lines: list[str] = field(default_factory=list)


def patterns() -> list[PatternOffer]:
    """The patterns that have a name, as the page offers them."""
    return [
        PatternOffer(
            measure.name,
            measure.term.meaning,
            measure.needs,
            needs_of(measure.name).text,
            needs_of(measure.name).pair,
            list(needs_of(measure.name).kinds),
            needs_of(measure.name).looks_ahead,
        )
        for measure in MEASURES.values()
        if measure.target is not None
    ]


def _find(desk: Desk, options: FindOptions) -> Part:
    assert desk.run is not None
    work = {"example": _example, "pattern": _pattern, "painted": _by_matrix, "effect": _effect}[options.by]
    return work(desk, desk.run.trace, options)


def _example(desk: Desk, trace: Trace, options: FindOptions) -> Part:
    example = options.source, options.target
    if options.over != "run" and not all(isinstance(word, str) for word in example):
        raise InputError("positions belong to one input: type the words to look for them in several.")
    traces, calls = _traces(desk, trace, options)
    problems = [example_problem(trace, example) for trace in traces]
    traces_with_words = [trace for trace, problem in zip(traces, problems, strict=True) if problem is None]
    code = _traces_code(options, [call for call, problem in zip(calls, problems, strict=True) if problem is None])
    if not traces_with_words:
        first = next(problem for problem in problems if problem is not None)
        raise first if len(traces) == 1 else UnknownTokenError(f"in none of {len(traces)} inputs: {first}")
    notes = []
    if len(traces_with_words) < len(traces):
        notes.append(f"{len(traces) - len(traces_with_words)} of {len(traces)} inputs lack the words and were left out")
    scores = find_heads(traces_with_words, example=example)
    record = _layer(trace, options.site)
    if options.site and not isinstance(options.source, str):
        scores = _alike(scores, record)
    names = [
        _name(tokens, words)
        for tokens, words in zip((trace.query_tokens(record.site), trace.key_tokens(record.site)), example, strict=True)
    ]
    about = f"attention from {names[0]} to {names[1]}, against the head's own at that distance"
    code += f"scores = hs.find_heads({_subject(options)}, example={_literal(example)})\nscores.above(10)\n"
    return _part(trace, scores, f"{names[0]} → {names[1]}", about, notes, code, len(traces_with_words))


def _pattern(desk: Desk, trace: Trace, options: FindOptions) -> Part:
    traces, calls = _traces(desk, trace, options)
    code = _traces_code(options, calls)
    scores = find_heads(traces, pattern=options.pattern)
    about = MEASURES[options.pattern].term.meaning
    name = options.pattern if options.over == "run" else f"{options.pattern} over {_over(options, len(traces))}"
    code += f"scores = hs.find_heads({_subject(options)}, pattern={options.pattern!r})\nscores.above(10)\n"
    return _part(trace, scores, name, about, [], code, len(traces))


def _by_matrix(desk: Desk, trace: Trace, options: FindOptions) -> Part:
    record = _layer(trace, options.site)
    if not options.cells or len(options.cells) > MOST_CELLS:
        raise InputError(f"paint at least one cell of the matrix, and at most {MOST_CELLS:,} stretches of them.")
    array = np.zeros((record.n_queries, record.n_keys), dtype=bool)
    for query, first, last in options.cells:
        if not (0 <= query < record.n_queries and 0 <= first < last <= record.n_keys):
            raise InputError(f"cells {first} to {last} of row {query} are not in {record.n_queries} × {record.n_keys}.")
        array[query, first:last] = True
    scores = _alike(find_heads(trace, pattern=array), record)
    n_cells = int(array.sum())
    lines = [f"pattern[{query}, {first}:{last}] = 1" for query, first, last in options.cells]
    code = "\n".join(["import numpy as np", "", f"pattern = np.zeros({array.shape})", *lines, ""])
    code += "scores = hs.find_heads(trace, pattern=pattern)\nscores.above(10)\n"
    about = f"attention to the {n_cells} painted cells, of the queries that have any"
    return _part(trace, scores, f"painted, {n_cells} cells", about, [], code, 1)


def _effect(desk: Desk, trace: Trace, options: FindOptions) -> Part:
    if not options.token:
        raise InputError("say which prediction counts: a token such as ' was', or a class.")
    if options.over == "repeated":
        raise InputError("random tokens predict nothing in particular: choose this input, or lines of your own.")
    inputs: list[Inputs] = []
    if options.over == "run":
        assert trace.inputs is not None
        inputs.append(trace.inputs)
    else:
        inputs += [_read(desk, pair) for pair in _texts(desk, options)]
    is_edited = bool(trace.edits) and options.over == "run"
    scores = ablation(
        desk.model,
        inputs,
        by=options.ablate,
        target=options.token,
        position=options.position if options.over == "run" else None,
        interventions=desk.run.interventions if desk.run and is_edited else (),
        progress=desk.progress,
        cancel=desk.cancel,
    )
    done = "silenced" if options.ablate == "zero" else "set to its mean"
    about = (
        f"how much the log-probability of {_quote(options.token)} falls when the head is {done}; below zero it rises"
    )
    notes = [f"with all heads it is {format_cell(-scores.settings['loss'])}"]
    at = f", position={options.position}" if options.position is not None and options.over == "run" else ""
    at += f", interventions=[{', '.join(trace.edits)}]" if is_edited else ""
    source, code = "trace.inputs", ""
    if options.over != "run":
        source = "inputs"
        code = f"inputs = [{', '.join(_call(desk, 'read', pair) for pair in _texts(desk, options))}]\n"
    code += f"scores = hs.analysis.ablation(model, {source}, by={options.ablate!r}, target={options.token!r}{at})\n"
    code += "sorted(scores.items(), key=lambda score: -abs(score[1]))[:10]\n"
    return _part(trace, scores, f"effect on {_quote(options.token)}", about, notes, code, len(inputs), "size")


TextPair = tuple[str, str | None]


def _traces(desk: Desk, trace: Trace, options: FindOptions) -> tuple[list[Trace], list[str]]:
    """The traces to look in, and the Python that makes each of them where it is a text."""
    if options.over == "run":
        return [trace], [""]
    if options.over == "repeated":
        inputs = repeated_tokens(desk.model)
        steps = Steps("inputs", len(inputs), desk.progress, desk.cancel)
        traces = [_next(steps) or desk.model.run(repeated, record="heads", cancel=desk.cancel) for repeated in inputs]
        return traces, [""] * len(traces)
    texts = _texts(desk, options)
    steps = Steps("inputs", len(texts), desk.progress, desk.cancel)
    traces, size = [], 0
    for pair in texts:
        steps.next()
        keeping = {"record": "heads", "budget": desk.cache.limit, "cancel": desk.cancel}
        traces.append(desk.model.run(_read(desk, pair), **keeping))
        size += traces[-1].nbytes()
        if size > desk.cache.limit:
            most = f"{desk.cache.limit / 1e6:,.0f} MB, a quarter of what this server may use (--max-memory)"
            raise InputError(f"these inputs are too long together: after {len(traces)} their traces take {most}.")
    return traces, [_call(desk, "run", pair) for pair in texts]


def _traces_code(options: FindOptions, calls: list[str]) -> str:
    """The line of Python that makes the traces; none for the run on screen, which is there."""
    if options.over == "repeated":
        return "traces = model.run(hs.analysis.repeated_tokens(model))\n"
    return "" if options.over == "run" else f"traces = [{', '.join(calls)}]\n"


def _next(steps: Steps) -> None:
    steps.next()


def _texts(desk: Desk, options: FindOptions) -> list[TextPair]:
    """Inputs other than the run on screen: lines of the user's, or sentences that are built in."""
    takes = kinds_of(Intake.of(desk.model.processor, desk.model.module, desk.model.stacks))
    if not {"text", "source-target"} & set(takes):
        raise InputError(f"{desk.model.name} reads no text: look in the run on screen.")
    if options.over == "sample":
        if "pair" in takes:
            pairs = built_in_pairs()
            return [(text, other) for text, other in pairs[:: len(pairs) // N_SAMPLE][:N_SAMPLE]]
        sentences = schemas()
        chosen = sentences[:: len(sentences) // N_SAMPLE][:N_SAMPLE]
        return [(sentence.text("she" if place % 2 else "he"), None) for place, sentence in enumerate(chosen)]
    lines = [line.strip() for line in options.lines if line.strip()]
    if not lines:
        raise InputError("no input was given: write one a line.")
    if len(lines) > MOST_LINES or sum(map(len, lines)) > MOST_CHARACTERS:
        raise InputError(f"that is too much at once: up to {MOST_LINES} lines and {MOST_CHARACTERS:,} characters.")
    texts: list[TextPair] = []
    for line in lines:
        text, is_two, other = line.partition(BETWEEN)
        if is_two and not {"pair", "source-target"} & set(takes):
            raise InputError(f"{BETWEEN} stands between two texts, and {desk.model.name} reads one: {line[:60]!r}.")
        texts.append((text.strip(), other.strip() if is_two else None))
    return texts


def _read(desk: Desk, pair: TextPair) -> Inputs:
    text, other = pair
    if other is None:
        return desk.model.read(text)
    return desk.model.read(text, target=other) if desk.model.is_encoder_decoder else desk.model.read(text, pair=other)


def _call(desk: Desk, what: str, pair: TextPair) -> str:
    text, other = pair
    second = "target" if desk.model.is_encoder_decoder else "pair"
    return f"model.{what}({text!r})" if other is None else f"model.{what}({text!r}, {second}={other!r})"


def _over(options: FindOptions, count: int) -> str:
    return {"lines": f"{count} lines", "sample": f"{count} sentences", "repeated": "repeated random tokens"}[
        options.over
    ]


def _subject(options: FindOptions) -> str:
    return "trace" if options.over == "run" else "traces"


def _layer(trace: Trace, site: str) -> LayerRecord:
    """The layer that something was pointed at in; the first where none is named."""
    record = next((layer for layer in trace.layers.values() if str(layer.site) == site or not site), None)
    if record is None:
        raise InputError(f"there is no layer {site[:40]!r}: there are {', '.join(map(str, trace.layers))}.")
    return record


def _alike(scores: Scores, record: LayerRecord) -> Scores:
    """Only heads between the same stacks: positions mean other tokens elsewhere."""
    place = record.site.stack, record.site.kind
    return replace(scores, values_by_head={h: value for h, value in scores.items() if (h.stack, h.kind) == place})


def _name(tokens: Tokens, words: str | list[int]) -> str:
    """A word, or the tokens at some positions, for people."""
    if isinstance(words, str):
        return words.strip()
    return " ".join(tokens[place].text.strip() for place in words if 0 <= place < len(tokens)) or str(words)


def _quote(token: str) -> str:
    return f"“{token.strip() or token}”"


def _literal(value: Any) -> str:
    return repr(tuple(value))


def _part(
    trace: Trace,
    scores: Scores,
    name: str,
    about: str,
    notes: list[str],
    code: str,
    n_inputs: int,
    order: Literal["above", "size"] = "above",
) -> Part:
    heads = trace.heads
    missing = math.nan if scores.baseline is None else scores.baseline
    columns = {
        "values": [scores.values_by_head.get(head, math.nan) for head in heads],
        "baselines": [scores.baselines.get(head, missing) for head in heads],
        "low": [scores.intervals.get(head, (math.nan, math.nan))[0] for head in heads],
        "high": [scores.intervals.get(head, (math.nan, math.nan))[1] for head in heads],
    }
    arrays = {key: np.array(values, np.float32) for key, values in columns.items()}
    # Where every head has a baseline of its own, heads are told apart by what is above it; else by the value itself.
    is_own = scores.method == "example"
    arrays["measure"] = arrays["values"] - arrays["baselines"] if is_own else arrays["values"]
    known = arrays["measure"][~np.isnan(arrays["measure"])]
    low = 0.0 if order == "above" else float(known.min(initial=0.0))
    high = max(float(known.max(initial=0.0)), low + 1e-6)
    method = MethodProps(name, about, None if is_own else scores.baseline, low, high)
    props = FoundProps([str(head) for head in heads], method, order, n_inputs, notes, code)
    return Part("found", props, arrays)


FIND = Task("find", FindOptions, _find)
