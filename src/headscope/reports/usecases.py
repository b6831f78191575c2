"""The published use cases of looking at attention (Vig, 2019), each with evidence: baselines, intervals, controls."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.analysis import antecedents, between_sentences, bias, decay
from headscope.analysis.progress import Progress
from headscope.analysis.usecases.applicability import check_fits
from headscope.analysis.usecases.distance_decay import built_in_texts
from headscope.analysis.usecases.pronoun_sentences import Sentences, sentences_of
from headscope.analysis.usecases.sentence_pairs import built_in_pairs
from headscope.errors import HeadscopeError
from headscope.models import Model
from headscope.reports.evidence import Cell, Column, Evidence, EvidenceTable, written
from headscope.scores import Scores

HEADS_TOLD = 12

HEAD = Column("head", "heads")
SAYS = Column("", "text")


@dataclass(frozen=True)
class UseCase:
    """A question, what it needs of a model, and the work that answers it."""

    name: str
    title: str
    about: str
    needs_pairs: bool
    work: Callable[..., Evidence]


def use_case(
    name: str,
    model: Model,
    data: Any = None,
    *,
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> Evidence:
    """Run a use case on a model: "bias", "antecedents", "between" or "decay".

    `data` are sentences of one's own: schemas (or Winogender's file) for the first two, pairs of texts for the third,
    texts for the last.
    """
    known = USE_CASES.get(name)
    if known is None:
        raise HeadscopeError(f"there is no use case {name!r}: there are {', '.join(USE_CASES)}.")
    check_fits(known.title, model, needs_pairs=known.needs_pairs)
    return known.work(model, data, progress=progress, cancel=cancel)


def _bias(model: Model, data: Sentences | None, **going: Any) -> Evidence:
    sentences = sentences_of(data)
    found = bias(model, sentences, **going)
    significant = found.significant()
    ranked = sorted(found.differences, key=lambda head: (found.p_values[head] > 0.05, -abs(found.differences[head])))
    top = ranked[0]
    low, high = found.differences.intervals[top]
    said = [
        f"{len(significant)} of {len(ranked)} heads look at the occupation differently from she than from he "
        f"(p ≤ 0.05, corrected for looking at all of them; {found.n_pairs} pairs of sentences).",
        f"The largest of them is {top}: she − he = {written(found.differences[top])}, "
        f"95 % interval {written(low)} to {written(high)}.",
    ]
    tables = [
        EvidenceTable(
            "Heads, by she − he",
            "Attention from the pronoun to the occupation, she less he, over pairs that differ in the pronoun alone.",
            (HEAD, Column("she − he"), Column("low"), Column("high"), Column("p, corrected")),
            [
                (str(head), found.differences[head], *found.differences.intervals[head], found.p_values[head])
                for head in ranked[:HEADS_TOLD]
            ],
        ),
        EvidenceTable(
            "Occupations",
            f"Attention to each in {top}; and how much likelier the model finds she than he there (log-odds).",
            (
                Column("occupation", "text"),
                Column("from she"),
                Column("from he"),
                Column("she − he"),
                Column("log-odds of she"),
            ),
            [
                (one.name, one.from_she, one.from_he, one.from_she - one.from_he, _known(one.log_odds))
                for one in found.occupations
            ],
        ),
    ]
    if found.effects:
        nothing, chosen, *others = found.effects
        said.append(
            f"Silencing the {len(chosen.heads)} heads that differ most takes the spread of log-odds over occupations "
            f"from {written(nothing.spread)} to {written(chosen.spread)} and perplexity from "
            f"{written(nothing.perplexity)} to {written(chosen.perplexity)}; as many heads drawn at random: spread "
            f"{_range([one.spread for one in others])}, perplexity {_range([one.perplexity for one in others])}."
        )
        tables.append(
            EvidenceTable(
                "What silencing does",
                "Spread and mean size of the log-odds of she over occupations, and perplexity (lower is better).",
                (SAYS, Column("heads", "heads"), Column("spread"), Column("size"), Column("perplexity")),
                [
                    (one.what, ", ".join(map(str, one.heads)), one.spread, one.size, one.perplexity)
                    for one in found.effects
                ],
            )
        )
    else:
        said.append("The model predicts no words, so there is no expectation to change: attention alone is shown.")
    if found.continuations:
        tables.append(
            EvidenceTable(
                "What the model writes",
                "After the same sentence up to the pronoun, with she and with he.",
                (Column("given", "text"), Column("written", "text")),
                list(found.continuations),
            )
        )
    example = {"text": sentences[0].text("she")}
    return _evidence("bias", model, said, tables, found.differences, "found = hs.bias(model)", example)


def _antecedents(model: Model, data: Sentences | None, **going: Any) -> Evidence:
    sentences = sentences_of(data)
    found = antecedents(model, sentences, **going)
    scores = found.scores
    head, best = found.best()
    low, high = scores.intervals.get(head, (float("nan"), float("nan")))
    nearest = scores.baseline or 0.0
    verdict = "above" if low > nearest else "not clearly above" if best > nearest else "below"
    said = [
        f"The best of {len(scores)} heads is {head} in layer {head.layer}: in {written(best)} of {scores.n_samples} "
        f"sentences the pronoun looks more at the person it means than at the other "
        f"(95 % interval {written(low)} to {written(high)}).",
        f"The person named last is right in {written(nearest)}: {head} is {verdict} that. "
        "It was chosen as the best of all, so its own figure flatters it.",
    ]
    if found.n_skipped:
        said.append(f"{found.n_skipped} sentences were left out: the pronoun cannot see both people there.")
    layers = found.by_layer()
    by_site = {str(one.site): one for one, value in scores.top(len(scores))[::-1] if value == layers[str(one.site)]}
    tables = [
        EvidenceTable(
            "Heads, by accuracy",
            "How often the pronoun looks more at the person it means; the nearest noun is the baseline.",
            (HEAD, Column("accuracy"), Column("low"), Column("high"), Column("nearest noun")),
            [
                (str(one), value, *scores.intervals.get(one, (None, None)), scores.baselines.get(one))
                for one, value in scores.top(HEADS_TOLD)
            ],
        ),
        EvidenceTable(
            "Layers",
            "The best head of each layer.",
            (Column("layer", "text"), HEAD, Column("accuracy")),
            [(site, str(by_site[site]), value) for site, value in layers.items()],
        ),
    ]
    code = "found = hs.analysis.antecedents(model)\nfound.scores.top(5)"
    return _evidence("antecedents", model, said, tables, scores, code, {"text": sentences[0].text("she")})


def _between(model: Model, data: Sequence[tuple[str, str]] | None, **going: Any) -> Evidence:
    found = between_sentences(model, data, **going)
    significant = found.significant()
    said = [
        f"{len(significant)} of {len(found.scores)} heads cross between the sentences more when these belong together "
        f"(p ≤ 0.05, corrected; {found.scores.n_samples} pairs, each beside one whose second sentence is of another "
        "pair and about as long)."
    ]
    ranked = found.scores.above(len(found.scores))
    if significant:
        head, share, shuffled = significant[0]
        said.append(
            f"The strongest is {head}: {written(share)} of its attention crosses, {written(shuffled)} shuffled."
        )
    most, _ = found.scores.top(1)[0]
    said.append(f"Without the control, {most} would come first: it crosses most, in whichever pair.")
    rows: list[tuple[Cell, ...]] = []
    for head, share, shuffled in ranked[:HEADS_TOLD]:
        low, high = found.differences.intervals[head]
        rows.append((str(head), share, shuffled, found.differences[head], low, high, found.p_values[head]))
    columns = ("real pairs", "shuffled", "difference", "low", "high", "p, corrected")
    table = EvidenceTable(
        "Heads, by how much more they cross in real pairs",
        "The share of attention from A to B and from B to A; the interval is that of the difference.",
        (HEAD, *map(Column, columns)),
        rows,
    )
    first, second = (built_in_pairs() if data is None else data)[0]
    code = "found = hs.analysis.between_sentences(model)\nfound.significant()"
    return _evidence("between", model, said, [table], found.differences, code, {"text": first, "pair": second})


def _decay(model: Model, data: Sequence[str] | None, **going: Any) -> Evidence:
    found = decay(model, data, **going)
    share, rate = found.shares[found.head], found.rates[found.head]
    said = [
        f"{found.head} depends most on distance: distance alone explains {written(share)} of the variance of its "
        f"scores within a query, and they fall by {written(rate)} a token.",
        f"{written(found.constancy)} of the square of its queries does not depend on the token: "
        + ("they say little else than where." if found.constancy > 0.5 else "they say much else."),
    ]
    tables = [
        EvidenceTable(
            "Heads, by how much distance explains",
            "The share of the variance of scores that distance explains, where they fall with it; and the decay rate.",
            (HEAD, Column("share"), Column("rate a token")),
            [(str(head), value, found.rates[head]) for head, value in found.shares.top(HEADS_TOLD)],
        ),
        EvidenceTable(
            f"Neurons of {found.head}",
            "Each neuron's part of the slope of q · k over distance (the parts sum to the whole), "
            "and how much of its query is the same for all tokens.",
            (Column("neuron", "text"), Column("part of the slope"), Column("constancy")),
            [(str(one.index), one.slope, one.constancy) for one in found.neurons[:HEADS_TOLD]],
        ),
    ]
    if found.effects:
        nothing, chosen, *others = found.effects
        said.append(
            f"Setting its {len(chosen.neurons)} neurons that decay most to zero takes its decay rate from "
            f"{written(nothing.rate)} to {written(chosen.rate)} and perplexity from {written(nothing.perplexity)} to "
            f"{written(chosen.perplexity)}; as many neurons drawn at random: rate "
            f"{_range([one.rate for one in others])}, perplexity {_range([one.perplexity for one in others])}."
        )
        texts = [Column("continuation", "text")] if model.is_causal else []
        tables.append(
            EvidenceTable(
                "What scaling them does",
                "The decay rate of the head, perplexity, and what the model writes, with these neurons at zero.",
                (SAYS, Column("neurons", "text"), Column("decay rate"), Column("perplexity"), *texts),
                [
                    (one.what, ", ".join(map(str, one.neurons)), one.rate, one.perplexity)
                    + ((one.continuation,) if model.is_causal else ())
                    for one in found.effects
                ],
            )
        )
    text = (built_in_texts() if data is None else data)[0]
    code = "found = hs.analysis.decay(model)\nfound.head, found.rates[found.head], found.effects"
    return _evidence("decay", model, said, tables, found.shares, code, {"text": text})


# Adding a use case is adding its function and a line here.
USE_CASES: dict[str, UseCase] = {
    one.name: one
    for one in (
        UseCase("bias", "Bias", "Do heads look at occupations differently from she and from he?", False, _bias),
        UseCase(
            "antecedents",
            "Pronouns and antecedents",
            "Which heads lead from a pronoun to the person it means?",
            False,
            _antecedents,
        ),
        UseCase("between", "Locating heads", "Which heads link two sentences that belong together?", True, _between),
        UseCase(
            "decay", "Linking neurons", "Which head decays with distance, and which neurons make it so?", False, _decay
        ),
    )
}


def _evidence(
    name: str,
    model: Model,
    said: list[str],
    tables: list[EvidenceTable],
    scores: Scores,
    code: str,
    example: dict[str, str],
) -> Evidence:
    python = f"import headscope as hs\n\nmodel = hs.load({model.name!r})\n{code}\n"
    return Evidence(name, USE_CASES[name].title, model.name, said, tables, scores, python, example)


def _range(values: list[float]) -> str:
    """The least and the most, in words."""
    if not values:
        return "–"
    return f"{written(min(values))} to {written(max(values))}"


def _known(value: float) -> float | None:
    return value if value == value else None
