"""What came out: the questions of the papers, answered in sentences from scores and roles."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headscope.analysis import rank_correlation
from headscope.analysis.measures.roles import Verdict, reading_order
from headscope.scores import Scores
from headscope.sites import Head, Site

# The relations of Voita et al. (2019), by their names in Universal Dependencies.
RELATIONS = ("nsubj", "obj", "amod", "advmod")
_LISTED = 8
_FEWEST = 100


@dataclass(frozen=True)
class Answer:
    """A question and what the numbers say."""

    question: str
    answer: str


def outcome(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> list[Answer]:
    """Every question that these scores can answer."""
    asked = (
        _roles(verdicts, "positional", "Positional heads") if "positional" in scores else None,
        _syntactic(scores, verdicts),
        _copying(scores, verdicts),
        _rare(scores),
        _across(scores, verdicts),
        _rest(scores),
        _depth(scores),
        _alignment(scores),
        _tags(scores),
        _patches(scores, verdicts),
        _agreement(scores),
    )
    return [one for one in asked if one is not None]


def stacks(heads) -> dict[str, list[Head]]:
    """Heads by stack and kind, in order: "", "encoder", "decoder", "cross"."""
    found: dict[str, list[Head]] = {}
    for head in sorted(heads, key=reading_order):
        found.setdefault(str(head).rpartition(".")[0], []).append(head)
    return found


def layer_means(scores: Mapping[Head, float]) -> dict[Site, float]:
    """The mean over the heads of each layer; NaN is left out."""
    held: dict[Site, list[float]] = {}
    for head, value in scores.items():
        if value == value:
            held.setdefault(head.site, []).append(value)
    return {site: float(np.mean(values)) for site, values in sorted(held.items())}


# One question each


def _roles(verdicts: Mapping[Head, Verdict], kind: str, question: str) -> Answer | None:
    found = [(head, one) for head, verdict in verdicts.items() for one in verdict.findings if one.kind == kind]
    told = [f"{head} {one.role} ({one.score:.2f})" for head, one in found]
    return (
        Answer(question, _listed(told) if told else "None: no head meets the criterion of 90 %.") if verdicts else None
    )


def _syntactic(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> Answer | None:
    known = {name: one for name, one in scores.items() if name.startswith("syntactic/")}
    if not known:
        return None
    heads = {head for head, one in verdicts.items() if any(found.kind == "syntactic" for found in one.findings)}
    told, below = [], []
    for relation in RELATIONS:
        for way in ("→head", "→dependent"):
            one = known.get(f"syntactic/{relation}{way}")
            if one is not None:
                head, value, base = one.above(1)[0]
                line = f"{relation}{way} {head} {100 * value:.0f} % (baseline {100 * base:.0f} %)"
                (told if value > base else below).append(line)
    more = f" No head is above the baseline for {', '.join(one.partition(' ')[0] for one in below)}." if below else ""
    best = f" Best: {'; '.join(told)}." if told else ""
    return Answer(
        "Syntactic heads",
        f"{len(heads)} of {len(verdicts)} heads are ten points over the most frequent offset for some relation."
        f"{best}{more}",
    )


def _copying(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> Answer | None:
    one = scores.get("repeated_induction") or scores.get("induction")
    if one is None:
        return None
    where = "random tokens given twice" if "repeated_induction" in scores else "the corpus"
    top = [f"{head} {value:.2f}" for head, value in one.top(3)]
    n = sum(any(found.kind == "induction" for found in verdict.findings) for verdict in verdicts.values())
    return Answer("Induction", f"{n} heads. Strongest on {where}: {', '.join(top)} (chance {one.baseline or 0:.2f}).")


def _rare(scores: Mapping[str, Scores]) -> Answer | None:
    one = scores.get("rare_word")
    if one is None:
        return None
    two, told = scores.get("two_rare_words"), []
    for head, value, base in one.above(2):
        more = "" if two is None else f", one of the two rarest {100 * two[head]:.0f} %"
        told.append(f"{head} {100 * value:.0f} %{more} (chance {100 * base:.0f} %)")
    return Answer("Rare words", f"How often the rarest token is looked at most: {'; '.join(told)}.")


def _across(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> Answer | None:
    one = scores.get("same_word_across")
    if one is None:
        return None
    top = [f"{head} {value:.2f} (chance {base:.2f})" for head, value, base in one.above(3)]
    return Answer("The same word in the other sentence", f"Of the attention that crosses: {', '.join(top)}.")


def _rest(scores: Mapping[str, Scores]) -> Answer | None:
    told = []
    for name, what in (("first_token", "the first token"), ("special_tokens", "special tokens")):
        one = scores.get(name)
        if one is not None and any(value == value for value in one.values()):
            head, most = one.top(1)[0]
            told.append(f"{100 * np.nanmean(list(one.values())):.0f} % on {what} (most: {head} {100 * most:.0f} %)")
    return Answer("How much attention rests?", f"Over all heads {', '.join(told)}.") if told else None


def _depth(scores: Mapping[str, Scores]) -> Answer | None:
    name = next((one for one in ("distance_plain", "patch_distance", "distance") if one in scores), None)
    if name is None:
        return None
    told = []
    for stack, heads in stacks(scores[name]).items():
        means = layer_means({head: scores[name][head] for head in heads})
        if len(means) < 3:
            continue
        values = list(means.values())
        grows = rank_correlation({head: float(head.layer) for head in heads}, scores[name])
        path = " ".join(f"{value:.1f}" for value in values)
        told.append(
            f"{stack + ': ' if stack else ''}{_said(grows)} ({path} by layer; rank correlation {grows:.2f})".replace(
                " -", " −"
            )
        )
    unit = "patches" if name == "patch_distance" else "tokens"
    return Answer("Does distance grow with depth?", f"{'; '.join(told)}, in {unit}.") if told else None


def _said(correlation: float) -> str:
    if correlation != correlation or abs(correlation) < 0.3:
        return "not clearly"
    return "yes" if correlation > 0 else "no, it shrinks"


def _alignment(scores: Mapping[str, Scores]) -> Answer | None:
    one = scores.get("dependency_alignment")
    if one is None:
        return None
    means = layer_means(one)
    peak = max(means, key=lambda site: means[site])
    place = list(means).index(peak)
    where = (
        "in the middle" if 0 < place < len(means) - 1 else "in the first layer" if not place else "in the last layer"
    )
    head, most, base = one.above(1)[0]
    path = " ".join(f"{value:.2f}" for value in means.values())
    return Answer(
        "Does dependency alignment peak in the middle?",
        f"It peaks {where}, {peak} ({path} by layer). Best head {head} {most:.2f} (chance {base:.2f}).",
    )


def _tags(scores: Mapping[str, Scores]) -> Answer | None:
    """At which depth the five heads lie that prefer a tag most; only tags that are frequent enough."""
    depths = {}
    for name, one in scores.items():
        if name.startswith("tags/to ") and one.settings.get("queries", 0) * (one.baseline or 0) >= _FEWEST:
            depths[name.removeprefix("tags/to ")] = float(np.mean([head.layer for head, *_ in one.above(5)]))
    if not depths:
        return None
    order = sorted(depths, key=lambda tag: (depths[tag], tag))
    told = ", ".join(f"{tag} {depths[tag]:.1f}" for tag in order)
    return Answer("At which depth do tags peak?", f"Mean layer of the five heads that prefer each tag most: {told}.")


def _patches(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> Answer | None:
    told = []
    for name, what in (
        ("patch_neighbour", "the eight around"), ("patch_row", "the row"), ("patch_column", "the column"),
        ("like_hue", "alike in hue"), ("like_brightness", "alike in brightness"),
    ):  # fmt: skip
        if name in scores:
            head, value, base = scores[name].above(1)[0]
            told.append(f"{what} {head} {value:.2f} (chance {base:.2f})")
    return Answer("What do heads of patches look at?", f"{'; '.join(told)}.") if told else None


def _agreement(scores: Mapping[str, Scores]) -> Answer | None:
    pairs = (
        ("confidence_plain", "relevance", "confidence and relevance"),
        ("relevance", "gate_importance", "relevance and gate gradient"),
        ("relevance", "ablation", "relevance and ablation"),
        ("distance_plain", "entropy", "distance and entropy"),
        ("distance_plain", "dependency_alignment", "distance and dependency alignment"),
    )
    told = [
        f"{what} {rank_correlation(scores[one].values_by_head, scores[other].values_by_head):.2f}"
        for one, other, what in pairs
        if one in scores and other in scores
    ]
    return (
        Answer("Which measures agree?", f"Rank correlations over heads: {', '.join(told)}.".replace(" -", " −"))
        if told
        else None
    )


def _listed(told: list[str]) -> str:
    more = f" and {len(told) - _LISTED} more" if len(told) > _LISTED else ""
    return f"{len(told)} head{'' if len(told) == 1 else 's'}: {', '.join(told[:_LISTED])}{more}."
