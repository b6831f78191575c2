"""Pronouns and antecedents: which heads lead from a pronoun to the person it means (Vig, 2019, section 4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headscope.analysis.measures.measure import scores_of
from headscope.analysis.usecases.applicability import check_fits
from headscope.analysis.usecases.coreference_files import Sentences, sentences_of
from headscope.errors import InputError
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps
from headscope.runs.measure import Sample
from headscope.scores import Scores
from headscope.sites import Head, Site
from headscope.traces import Tokens, Trace
from headscope.traces.token_attention import weight_between


@dataclass(frozen=True, eq=False)
class Antecedents:
    """Per head, the share of sentences in which the pronoun looks more at the person it means than at the other.

    `scores.baseline` is the share that "the person named last" gets right. `n_skipped` sentences had a pronoun that
    cannot see both people.
    """

    scores: Scores
    n_skipped: int

    def best(self) -> tuple[Head, float]:
        """The most accurate head."""
        return self.scores.top(1)[0]

    def by_layer(self) -> dict[str, float]:
        """The best accuracy in each layer."""
        best_by_layer: dict[str, float] = {}
        for head, value in self.scores.items():
            best_by_layer[str(head.site)] = max(value, best_by_layer.get(str(head.site), 0.0))
        return best_by_layer


def antecedents(
    model: Model,
    sentences: Sentences | None = None,
    *,
    pronouns: Sequence[str] = ("she", "he"),
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Antecedents:
    """Rank heads by how often they lead from pronouns to the right person, in sentences as `bias` takes them."""
    check_fits("antecedents", model)
    samples_by_head: dict[Head, list[Sample]] = {}
    n_skipped = n_used = 0
    chosen = sentences_of(sentences)
    steps = Steps("antecedents", len(chosen), progress, cancel)
    for schema in chosen:
        steps.next()
        for pronoun in pronouns:
            trace = model.run(schema.text(pronoun), record="heads", cancel=cancel)
            places = {who: positions(trace, schema.span(pronoun, who)) for who in ("pronoun", *PEOPLE)}
            is_hidden = model.is_causal and min(places["pronoun"]) < max(max(places[who]) for who in PEOPLE)
            if is_hidden:
                n_skipped += 1
                continue
            n_used += 1
            right = schema.answer
            wrong = PEOPLE[1 - PEOPLE.index(right)]
            nearest = float(max(places[right]) > max(places[wrong]))
            for head, to_right, to_wrong in _looks(trace, places, right, wrong):
                samples_by_head.setdefault(head, []).append(Sample(float(to_right > to_wrong), 1.0, nearest))
    if not samples_by_head:
        raise InputError("in none of the sentences can the pronoun see both people.")
    return Antecedents(scores_of("antecedent", samples_by_head, n_used, {"pronouns": list(pronouns)}), n_skipped)


PEOPLE = ("occupation", "participant")


def positions(trace: Trace, span: tuple[int, int], stack: str = "main") -> list[int]:
    """The tokens that a stretch of the text falls on."""
    tokens = trace.tokens[stack]
    places = list(_overlapping(tokens, *span))
    if not places:
        raise InputError(f"no token covers characters {span[0]} to {span[1]}: the tokens are {tokens.texts}.")
    return places


def self_sites(trace: Trace) -> list[Site]:
    """The layers in which a text attends to itself."""
    return [site for site in trace.layers if site.kind == "self" and site.stack == "main"]


def _overlapping(tokens: Tokens, start: int, end: int) -> Iterator[int]:
    for place, token in enumerate(tokens):
        if token.start is not None and token.end is not None and token.start < end and token.end > start:
            yield place


def _looks(trace: Trace, places: dict[str, list[int]], right: str, wrong: str) -> Iterator[tuple[Head, float, float]]:
    for site in self_sites(trace):
        patterns = trace.patterns(site)
        to_right = weight_between(patterns, places["pronoun"], places[right])
        to_wrong = weight_between(patterns, places["pronoun"], places[wrong])
        for index in range(len(patterns)):
            yield site.head(index), float(to_right[index]), float(to_wrong[index])
