"""Voita et al. (2019): which heads have a function, how sure they are, and how much they matter."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headscope.analysis import rank_correlation
from headscope.analysis.measures.roles import roles
from headscope.reports.studies.checks import NOT_QUOTED, Check

if TYPE_CHECKING:
    from headscope.reports.studies.run_study import Measured

MEASURES = (
    "confidence_plain",
    "confidence",
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
_RATE, _RATES = "{:.0f}/{:.0f}", "best head / baseline, %"
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


def checks(found: "Measured") -> Iterator[Check]:
    """Every check that the scores allow."""
    scores = found.scores
    confidence, positional = scores["confidence_plain"], scores["positional"]
    heads = [head for head in positional if positional[head] >= 0.9]
    part = "Positional heads and confidence"
    sure = [head for head, value in confidence.items() if value > 0.8]
    yield Check(part, "heads with confidence above 0.8", "a few", f"{len(sure)} of {len(confidence)}: {_named(sure)}")
    offsets = positional.settings["offsets"]
    told = ", ".join(f"{head} {_offset(offsets[str(head)])}" for head in heads)
    yield Check(
        part,
        "positional heads (90 % at one offset)",
        "in practice at −1 or +1",
        f"{len(heads)}: {told or 'none'}",
    )
    both = [head for head in heads if head in sure]
    yield Check(part, "positional heads with confidence above 0.8", "every one", f"{len(both)} of {len(heads)}")

    part = f"Syntactic heads ({_RATES})"
    for key, what, wmt, subtitles in TABLE:
        one = scores.get(f"syntactic/{key}")
        if one is not None:
            head, value, base = one.above(1)[0]
            yield Check(
                part, what, f"{wmt} WMT, {subtitles} OpenSubtitles", f"{100 * value:.0f}/{100 * base:.0f}, {head}"
            )
    verdicts = roles({name: one for name, one in scores.items() if name.startswith("syntactic/")})
    n = sum(bool(one.findings) for one in verdicts.values())
    yield Check(part, "heads ten points over the baseline, any relation", NOT_QUOTED, f"{n} of {len(verdicts)}")

    if "rare_word" in scores:
        part, one, two = "Rare words", scores["rare_word"], scores["two_rare_words"]
        head, value, base = one.above(1)[0]
        yield Check(
            part,
            "largest weight on the rarest token",
            "66 % (OpenSubtitles), first layer",
            f"{100 * value:.0f} % ({head}), chance {100 * base:.0f} %",
        )
        head, value, base = two.above(1)[0]
        yield Check(
            part,
            "on one of the two rarest",
            "83 % (OpenSubtitles), above 50 % (WMT)",
            f"{100 * value:.0f} % ({head}), chance {100 * base:.0f} %",
        )

    part = "Relevance"
    if "relevance" in scores:
        relevance = scores["relevance"]
        agree, within = (
            rank_correlation(confidence.values_by_head, relevance.values_by_head, within_layers=one)
            for one in (False, True)
        )
        yield Check(
            part,
            "does confidence agree with relevance?",
            "yes, but for the rare-word head of the first layer",
            f"rank correlation {agree:.2f}, within layers {within:.2f}",
        )
        by_layer: dict = {}
        for head, value in relevance.items():
            by_layer.setdefault(head.site, []).append((value, head))
        leaders = [max(several, key=lambda one: one[0])[1] for several in by_layer.values()]
        lead = [head for head in leaders if (verdicts.get(head) and verdicts[head].findings) or head in heads]
        yield Check(
            part,
            "the most relevant head of a layer is positional or syntactic",
            NOT_QUOTED,
            f"{len(lead)} of {len(leaders)} layers",
        )


def _named(heads) -> str:
    return ", ".join(map(str, heads)) or "none"


def _offset(offset: int) -> str:
    return f"{offset:+d}".replace("-", "−") if offset else "itself"
