"""Voita et al. (2019): which heads have a function, how sure they are, and how much they matter."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from headscope.analysis import rank_correlation
from headscope.analysis.measures.roles import Verdict, roles
from headscope.reports.studies.checks import NOT_QUOTED, Check
from headscope.scores import Scores
from headscope.sites import Head, Site

if TYPE_CHECKING:
    from headscope.reports.studies.run_study import Measured

MEASURES = (
    "confidence",
    "peak_weight",
    "positional",
    "rare_word",
    "two_rare_words",
    "syntactic",
    "dependency_alignment",
)
NOTES = (
    "Confidence leaves special tokens out as keys (the paper: the end of the sentence), and the first of a "
    "causal model.",
    "Sub-words: attention to a word is the sum over its pieces, from it the mean (Clark et al., 2019); the paper "
    "has no rule.",
    "Relevance is by CP-LRP, signed and as a share of its layer; the paper's rules are α = β, and positive.",
    "dobj is obj in Universal Dependencies.",
)
_RATES = "best head / baseline, %"
# Table 1 of the paper: relation, direction, WMT and OpenSubtitles as best head / baseline.
TABLE = (
    ("nsubj→dependent", "nsubj, verb to subject", "45/35", "77/45"),
    ("nsubj→head", "nsubj, subject to verb", "52/35", "70/45"),
    ("obj→dependent", "dobj, verb to object", "78/41", "61/46"),
    ("obj→head", "dobj, object to verb", "73/41", "84/46"),
    ("amod→dependent", "amod, noun to adjective", "74/72", "81/80"),
    ("amod→head", "amod, adjective to noun", "82/72", "81/80"),
    ("advmod→dependent", "advmod, verb to adverb", "48/46", "38/33"),
    ("advmod→head", "advmod, adverb to verb", "52/46", "42/33"),
)


def checks(measured: "Measured") -> Iterator[Check]:
    """Every check that the scores allow."""
    scores = measured.scores
    confidence, positional = scores["confidence"], scores["positional"]
    positional_heads = [head for head in positional if positional[head] >= 0.9]
    verdicts = roles({name: measure for name, measure in scores.items() if name.startswith("syntactic/")})
    yield from _positional(confidence, positional, positional_heads)
    yield from _syntactic(scores, verdicts)
    if "rare_word" in scores:
        yield from _rare_words(scores)
    if "relevance" in scores:
        syntactic_heads = [head for head, verdict in verdicts.items() if verdict.findings]
        yield from _relevance(confidence, scores["relevance"], {*positional_heads, *syntactic_heads})


def _positional(confidence: Scores, positional: Scores, heads: list[Head]) -> Iterator[Check]:
    part = "Positional heads and confidence"
    sure = [head for head, value in confidence.items() if value > 0.8]
    yield Check(
        part, "heads with confidence above 0.8", "a few", f"{len(sure)} of {len(confidence)}: {_head_list(sure)}"
    )
    offsets = positional.settings["offsets"]
    offset_list = ", ".join(f"{head} {_offset(offsets[str(head)])}" for head in heads)
    yield Check(
        part,
        "positional heads (90 % at one offset)",
        "in practice at −1 or +1",
        f"{len(heads)}: {offset_list or 'none'}",
    )
    both = [head for head in heads if head in sure]
    yield Check(part, "positional heads with confidence above 0.8", "every one", f"{len(both)} of {len(heads)}")


def _syntactic(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> Iterator[Check]:
    part = f"Syntactic heads ({_RATES})"
    for key, what, wmt, subtitles in TABLE:
        relation = scores.get(f"syntactic/{key}")
        if relation is not None:
            head, value, base = relation.above(1)[0]
            yield Check(
                part, what, f"{wmt} WMT, {subtitles} OpenSubtitles", f"{100 * value:.0f}/{100 * base:.0f}, {head}"
            )
    n = sum(bool(verdict.findings) for verdict in verdicts.values())
    yield Check(part, "heads ten points over the baseline, any relation", NOT_QUOTED, f"{n} of {len(verdicts)}")


def _rare_words(scores: Mapping[str, Scores]) -> Iterator[Check]:
    for name, what, published in (
        ("rare_word", "largest weight on the rarest token", "66 % (OpenSubtitles), first layer"),
        ("two_rare_words", "on one of the two rarest", "83 % (OpenSubtitles), above 50 % (WMT)"),
    ):
        head, value, base = scores[name].above(1)[0]
        yield Check("Rare words", what, published, f"{100 * value:.0f} % ({head}), chance {100 * base:.0f} %")


def _relevance(confidence: Scores, relevance: Scores, heads_with_role: set[Head]) -> Iterator[Check]:
    part = "Relevance"
    overall, within_layers = (
        rank_correlation(confidence.values_by_head, relevance.values_by_head, within_layers=within)
        for within in (False, True)
    )
    yield Check(
        part,
        "does confidence agree with relevance?",
        "yes, but for the rare-word head of the first layer",
        f"rank correlation {overall:.2f}, within layers {within_layers:.2f}",
    )
    heads_by_layer: dict[Site, list[Head]] = {}
    for head in relevance:
        heads_by_layer.setdefault(head.site, []).append(head)
    leaders = [max(heads, key=lambda head: relevance[head]) for heads in heads_by_layer.values()]
    n_with_role = sum(head in heads_with_role for head in leaders)
    yield Check(
        part,
        "the most relevant head of a layer is positional or syntactic",
        NOT_QUOTED,
        f"{n_with_role} of {len(leaders)} layers",
    )


def _head_list(heads: list[Head]) -> str:
    return ", ".join(map(str, heads)) or "none"


def _offset(offset: int) -> str:
    return f"{offset:+d}".replace("-", "−") if offset else "itself"
