"""The published use cases of looking at attention (Vig, 2019), each with evidence: baselines, intervals, controls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.analysis import antecedents, between_sentences, bias, decay
from headscope.analysis.usecases.applicability import check_fits
from headscope.analysis.usecases.bias import BiasReport
from headscope.analysis.usecases.bias import SilencingEffect as BiasEffect
from headscope.analysis.usecases.coreference_files import Sentences, sentences_of
from headscope.analysis.usecases.distance_decay import Scaled, built_in_texts
from headscope.analysis.usecases.sentence_pairs import built_in_pairs
from headscope.errors import HeadscopeError
from headscope.models import Model
from headscope.progress import Cancel, OnProgress
from headscope.reports.evidence import Cell, Column, Evidence, EvidenceTable, format_cell
from headscope.scores import Scores
from headscope.sites import Head

N_HEADS = 12

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
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
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
    measured = bias(model, sentences, **going)
    p_values, differences = measured.p_values, measured.differences
    ranked = sorted(differences, key=lambda head: (p_values[head] > 0.05, -abs(differences[head])))
    top = ranked[0]
    low, high = differences.intervals[top]
    findings = [
        f"{len(measured.significant())} of {len(ranked)} heads look at the occupation differently from she than from "
        f"he (p ≤ 0.05, corrected for looking at all of them; {measured.n_pairs} pairs of sentences).",
        f"The largest of them is {top}: she − he = {format_cell(differences[top])}, "
        f"95 % interval {format_cell(low)} to {format_cell(high)}.",
        _silencing_finding(measured.effects),
    ]
    tables = [_bias_heads(measured, ranked[:N_HEADS]), _occupations(measured, top)]
    if measured.effects:
        tables.append(_silencing(measured.effects))
    if measured.continuations:
        tables.append(
            EvidenceTable(
                "What the model writes",
                "After the same sentence up to the pronoun, with she and with he.",
                (Column("given", "text"), Column("written", "text")),
                list(measured.continuations),
            )
        )
    example = {"text": sentences[0].text("she")}
    return _evidence("bias", model, findings, tables, differences, "bias = hs.bias(model)", example)


def _bias_heads(measured: BiasReport, ranked: list[Head]) -> EvidenceTable:
    differences, p_values = measured.differences, measured.p_values
    return EvidenceTable(
        "Heads, by she − he",
        "Attention from the pronoun to the occupation, she less he, over pairs that differ in the pronoun alone.",
        (HEAD, Column("she − he"), Column("low"), Column("high"), Column("p, corrected")),
        [(str(head), differences[head], *differences.intervals[head], p_values[head]) for head in ranked],
    )


def _occupations(measured: BiasReport, head: Head) -> EvidenceTable:
    return EvidenceTable(
        "Occupations",
        f"Attention to each in {head}; and how much likelier the model finds she than he there (log-odds).",
        (
            Column("occupation", "text"),
            Column("from she"),
            Column("from he"),
            Column("she − he"),
            Column("log-odds of she"),
        ),
        [
            (
                occupation.name,
                occupation.from_she,
                occupation.from_he,
                occupation.from_she - occupation.from_he,
                _number_or_none(occupation.log_odds),
            )
            for occupation in measured.occupations
        ],
    )


def _silencing_finding(effects: Sequence[BiasEffect]) -> str:
    if not effects:
        return "The model predicts no words, so there is no expectation to change: attention alone is shown."
    nothing, strongest, *random = effects
    return (
        f"Silencing the {len(strongest.heads)} heads that differ most takes the spread of log-odds over occupations "
        f"from {format_cell(nothing.spread)} to {format_cell(strongest.spread)} and perplexity from "
        f"{format_cell(nothing.perplexity)} to {format_cell(strongest.perplexity)}; as many heads drawn at random: "
        f"spread {_range([effect.spread for effect in random])}, "
        f"perplexity {_range([effect.perplexity for effect in random])}."
    )


def _silencing(effects: Sequence[BiasEffect]) -> EvidenceTable:
    return EvidenceTable(
        "What silencing does",
        "Spread and mean size of the log-odds of she over occupations, and perplexity (lower is better).",
        (SAYS, Column("heads", "heads"), Column("spread"), Column("size"), Column("perplexity")),
        [
            (effect.what, ", ".join(map(str, effect.heads)), effect.spread, effect.size, effect.perplexity)
            for effect in effects
        ],
    )


def _antecedents(model: Model, data: Sentences | None, **going: Any) -> Evidence:
    sentences = sentences_of(data)
    measured = antecedents(model, sentences, **going)
    scores = measured.scores
    head, best = measured.best()
    low, high = scores.intervals.get(head, (float("nan"), float("nan")))
    nearest = scores.baseline or 0.0
    verdict = "above" if low > nearest else "not clearly above" if best > nearest else "below"
    findings = [
        f"The best of {len(scores)} heads is {head} in layer {head.layer}: in {format_cell(best)} of "
        f"{scores.n_samples} sentences the pronoun looks more at the person it means than at the other "
        f"(95 % interval {format_cell(low)} to {format_cell(high)}).",
        f"The person named last is right in {format_cell(nearest)}: {head} is {verdict} that. "
        "It was chosen as the best of all, so its own figure flatters it.",
    ]
    if measured.n_skipped:
        findings.append(f"{measured.n_skipped} sentences were left out: the pronoun cannot see both people there.")
    layers = measured.by_layer()
    by_site = {str(best.site): best for best, value in scores.top(len(scores))[::-1] if value == layers[str(best.site)]}
    tables = [
        EvidenceTable(
            "Heads, by accuracy",
            "How often the pronoun looks more at the person it means; the nearest noun is the baseline.",
            (HEAD, Column("accuracy"), Column("low"), Column("high"), Column("nearest noun")),
            [
                (str(ranked), value, *scores.intervals.get(ranked, (None, None)), scores.baselines.get(ranked))
                for ranked, value in scores.top(N_HEADS)
            ],
        ),
        EvidenceTable(
            "Layers",
            "The best head of each layer.",
            (Column("layer", "text"), HEAD, Column("accuracy")),
            [(site, str(by_site[site]), value) for site, value in layers.items()],
        ),
    ]
    code = "antecedents = hs.analysis.antecedents(model)\nantecedents.scores.top(5)"
    return _evidence("antecedents", model, findings, tables, scores, code, {"text": sentences[0].text("she")})


def _between(model: Model, data: Sequence[tuple[str, str]] | None, **going: Any) -> Evidence:
    measured = between_sentences(model, data, **going)
    significant = measured.significant()
    findings = [
        f"{len(significant)} of {len(measured.scores)} heads cross between the sentences more when these belong "
        f"together (p ≤ 0.05, corrected; {measured.scores.n_samples} pairs, each beside one whose second sentence is "
        "of another pair and about as long)."
    ]
    ranked = measured.scores.above(len(measured.scores))
    if significant:
        head, share, shuffled = significant[0]
        findings.append(
            f"The strongest is {head}: {format_cell(share)} of its attention crosses, {format_cell(shuffled)} shuffled."
        )
    most, _ = measured.scores.top(1)[0]
    findings.append(f"Without the control, {most} would come first: it crosses most, in whichever pair.")
    rows: list[tuple[Cell, ...]] = []
    for head, share, shuffled in ranked[:N_HEADS]:
        low, high = measured.differences.intervals[head]
        rows.append((str(head), share, shuffled, measured.differences[head], low, high, measured.p_values[head]))
    columns = ("real pairs", "shuffled", "difference", "low", "high", "p, corrected")
    table = EvidenceTable(
        "Heads, by how much more they cross in real pairs",
        "The share of attention from A to B and from B to A; the interval is that of the difference.",
        (HEAD, *map(Column, columns)),
        rows,
    )
    first, second = (built_in_pairs() if data is None else data)[0]
    code = "pairs = hs.analysis.between_sentences(model)\npairs.significant()"
    return _evidence("between", model, findings, [table], measured.differences, code, {"text": first, "pair": second})


def _decay(model: Model, data: Sequence[str] | None, **going: Any) -> Evidence:
    measured = decay(model, data, **going)
    head, rates, constancy = measured.head, measured.rates, measured.constancy
    findings = [
        f"{head} depends most on distance: distance alone explains {format_cell(measured.shares[head])} of the "
        f"variance of its scores within a query, and they fall by {format_cell(rates[head])} a token.",
        f"{format_cell(constancy)} of the square of its queries does not depend on the token: "
        + ("they say little else than where." if constancy > 0.5 else "they say much else."),
    ]
    tables = [
        EvidenceTable(
            "Heads, by how much distance explains",
            "The share of the variance of scores that distance explains, where they fall with it; and the decay rate.",
            (HEAD, Column("share"), Column("rate a token")),
            [(str(ranked), share, rates[ranked]) for ranked, share in measured.shares.top(N_HEADS)],
        ),
        EvidenceTable(
            f"Neurons of {head}",
            "Each neuron's part of the slope of q · k over distance (the parts sum to the whole), "
            "and how much of its query is the same for all tokens.",
            (Column("neuron", "text"), Column("part of the slope"), Column("constancy")),
            [(str(neuron.index), neuron.slope, neuron.constancy) for neuron in measured.neurons[:N_HEADS]],
        ),
    ]
    if measured.effects:
        findings.append(_scaling_finding(measured.effects))
        tables.append(_scaling(measured.effects, writes=model.is_causal))
    text = (built_in_texts() if data is None else data)[0]
    code = "decay = hs.analysis.decay(model)\ndecay.head, decay.rates[decay.head], decay.effects"
    return _evidence("decay", model, findings, tables, measured.shares, code, {"text": text})


def _scaling_finding(effects: Sequence[Scaled]) -> str:
    nothing, strongest, *random = effects
    return (
        f"Setting its {len(strongest.neurons)} neurons that decay most to zero takes its decay rate from "
        f"{format_cell(nothing.rate)} to {format_cell(strongest.rate)} and perplexity from "
        f"{format_cell(nothing.perplexity)} to {format_cell(strongest.perplexity)}; as many neurons drawn at random: "
        f"rate {_range([effect.rate for effect in random])}, "
        f"perplexity {_range([effect.perplexity for effect in random])}."
    )


def _scaling(effects: Sequence[Scaled], *, writes: bool) -> EvidenceTable:
    texts = [Column("continuation", "text")] if writes else []
    return EvidenceTable(
        "What scaling them does",
        "The decay rate of the head, perplexity, and what the model writes, with these neurons at zero.",
        (SAYS, Column("neurons", "text"), Column("decay rate"), Column("perplexity"), *texts),
        [
            (effect.what, ", ".join(map(str, effect.neurons)), effect.rate, effect.perplexity)
            + ((effect.continuation,) if writes else ())
            for effect in effects
        ],
    )


# Adding a use case is adding its function and a line here.
USE_CASES: dict[str, UseCase] = {
    use.name: use
    for use in (
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
    findings: list[str],
    tables: list[EvidenceTable],
    scores: Scores,
    code: str,
    example: dict[str, str],
) -> Evidence:
    python = f"import headscope as hs\n\nmodel = hs.load({model.name!r})\n{code}\n"
    findings = [*model.warnings, *findings]  # a capture that may be wrong is the first thing to know
    return Evidence(name, USE_CASES[name].title, model.name, findings, tables, scores, python, example)


def _range(values: list[float]) -> str:
    """The least and the most, in words."""
    if not values:
        return "–"
    return f"{format_cell(min(values))} to {format_cell(max(values))}"


def _number_or_none(value: float) -> float | None:
    return value if value == value else None
