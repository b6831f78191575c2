"""What came out: the questions of the papers, answered in sentences from scores and roles."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headscope.analysis import rank_correlation
from headscope.analysis.measures.rare_words import MANY_TIED, n_tied
from headscope.analysis.measures.roles import Verdict, reading_order
from headscope.scores import Scores
from headscope.sites import Head, Site

# The relations of Voita et al. (2019), by their names in Universal Dependencies.
RELATIONS = ("nsubj", "obj", "amod", "advmod")
_MOST_LISTED = 8
_FEWEST = 100


@dataclass(frozen=True)
class Answer:
    """A question and what the numbers say."""

    question: str
    answer: str


def outcome(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> list[Answer]:
    """Every question that these scores can answer."""
    answers = (
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
    return [answer for answer in answers if answer is not None]


def stacks(heads) -> dict[str, list[Head]]:
    """Heads by stack and kind, in order: "", "encoder", "decoder", "cross"."""
    heads_by_stack: dict[str, list[Head]] = {}
    for head in sorted(heads, key=reading_order):
        heads_by_stack.setdefault(str(head).rpartition(".")[0], []).append(head)
    return heads_by_stack


def layer_means(scores: Mapping[Head, float]) -> dict[Site, float]:
    """The mean over the heads of each layer; NaN is left out."""
    values_by_site: dict[Site, list[float]] = {}
    for head, value in scores.items():
        if value == value:
            values_by_site.setdefault(head.site, []).append(value)
    return {site: float(np.mean(values)) for site, values in sorted(values_by_site.items())}


# One question each


def _roles(verdicts: Mapping[Head, Verdict], kind: str, question: str) -> Answer | None:
    findings = [
        (head, finding) for head, verdict in verdicts.items() for finding in verdict.findings if finding.kind == kind
    ]
    phrases = [f"{head} {finding.role} ({finding.score:.2f})" for head, finding in findings]
    return (
        Answer(question, _head_list(phrases) if phrases else "None: no head meets the criterion of 90 %.")
        if verdicts
        else None
    )


def _syntactic(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> Answer | None:
    known = {name: relation_scores for name, relation_scores in scores.items() if name.startswith("syntactic/")}
    if not known:
        return None
    heads = {
        head for head, verdict in verdicts.items() if any(finding.kind == "syntactic" for finding in verdict.findings)
    }
    above, below = [], []
    for relation in RELATIONS:
        for way in ("→head", "→dependent"):
            relation_scores = known.get(f"syntactic/{relation}{way}")
            if relation_scores is not None:
                head, value, base = relation_scores.above(1)[0]
                line = f"{relation}{way} {head} {100 * value:.0f} % (baseline {100 * base:.0f} %)"
                (above if value > base else below).append(line)
    more = f" No head is above the baseline for {', '.join(line.partition(' ')[0] for line in below)}." if below else ""
    best = f" Best: {'; '.join(above)}." if above else ""
    return Answer(
        "Syntactic heads",
        f"{len(heads)} of {len(verdicts)} heads are ten points over the most frequent offset for some relation."
        f"{best}{more}",
    )


def _copying(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> Answer | None:
    induction = scores.get("repeated_induction") or scores.get("induction")
    if induction is None:
        return None
    where = "random tokens given twice" if "repeated_induction" in scores else "the corpus"
    top = [f"{head} {value:.2f}" for head, value in induction.top(3)]
    n = sum(any(finding.kind == "induction" for finding in verdict.findings) for verdict in verdicts.values())
    return Answer(
        "Induction", f"{n} heads. Strongest on {where}: {', '.join(top)} (chance {induction.baseline or 0:.2f})."
    )


def _rare(scores: Mapping[str, Scores]) -> Answer | None:
    rare = scores.get("rare_word")
    if rare is None:
        return None
    two, phrases = scores.get("two_rare_words"), []
    for head, value, base in rare.above(2):
        more = "" if two is None else f", one of the two rarest {100 * two[head]:.0f} %"
        phrases.append(f"{head} {100 * value:.0f} %{more} (chance {100 * base:.0f} %)")
    ties = ""
    if (tied := n_tied(rare)) > MANY_TIED:
        ties = (
            f" Ties: a sentence has {tied:.1f} tokens on average that occur once in this corpus. All of them count as "
            "the rarest, in chance too, so this says less than in a large corpus."
        )
    return Answer("Rare words", f"How often the rarest token is looked at most: {'; '.join(phrases)}.{ties}")


def _across(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> Answer | None:
    same_word = scores.get("same_word_across")
    if same_word is None:
        return None
    top = [f"{head} {value:.2f} (chance {base:.2f})" for head, value, base in same_word.above(3)]
    return Answer("The same word in the other sentence", f"Of the attention that crosses: {', '.join(top)}.")


def _rest(scores: Mapping[str, Scores]) -> Answer | None:
    phrases = []
    for name, what in (("first_token", "the first token"), ("special_tokens", "special tokens")):
        measure = scores.get(name)
        if measure is not None and any(value == value for value in measure.values()):
            head, most = measure.top(1)[0]
            phrases.append(
                f"{100 * np.nanmean(list(measure.values())):.0f} % on {what} (most: {head} {100 * most:.0f} %)"
            )
    sink = scores.get("sink")
    if sink is not None and "sink_rate" in sink.settings:
        rate, criterion = sink.settings["sink_rate"], sink.settings["criterion"]
        phrases.append(f"{100 * rate:.0f} % of heads give the first token more than {criterion} (the sink rate)")
    return Answer("How much attention rests?", f"Over all heads {', '.join(phrases)}.") if phrases else None


def _depth(scores: Mapping[str, Scores]) -> Answer | None:
    name = next(
        (candidate for candidate in ("distance", "patch_distance", "distance_all_keys") if candidate in scores), None
    )
    if name is None:
        return None
    phrases = []
    for stack, heads in stacks(scores[name]).items():
        means = layer_means({head: scores[name][head] for head in heads})
        if len(means) < 3:
            continue
        values = list(means.values())
        grows = rank_correlation({head: float(head.layer) for head in heads}, scores[name])
        path = " ".join(f"{value:.1f}" for value in values)
        phrases.append(
            f"{stack + ': ' if stack else ''}{_trend(grows)} ({path} by layer; rank correlation {grows:.2f})".replace(
                " -", " −"
            )
        )
    unit = "patches" if name == "patch_distance" else "tokens"
    return Answer("Does distance grow with depth?", f"{'; '.join(phrases)}, in {unit}.") if phrases else None


def _trend(correlation: float) -> str:
    if correlation != correlation or abs(correlation) < 0.3:
        return "not clearly"
    return "yes" if correlation > 0 else "no, it shrinks"


def _alignment(scores: Mapping[str, Scores]) -> Answer | None:
    alignment = scores.get("dependency_alignment")
    if alignment is None:
        return None
    means = layer_means(alignment)
    peak = max(means, key=lambda site: means[site])
    place = list(means).index(peak)
    where = (
        "in the middle" if 0 < place < len(means) - 1 else "in the first layer" if not place else "in the last layer"
    )
    head, most, base = alignment.above(1)[0]
    path = " ".join(f"{value:.2f}" for value in means.values())
    return Answer(
        "Does dependency alignment peak in the middle?",
        f"It peaks {where}, {peak} ({path} by layer). Best head {head} {most:.2f} (chance {base:.2f}).",
    )


def _tags(scores: Mapping[str, Scores]) -> Answer | None:
    """At which depth the five heads lie that prefer a tag most; only tags that are frequent enough."""
    depths = {}
    for name, measure in scores.items():
        if name.startswith("tags/to ") and measure.settings.get("queries", 0) * (measure.baseline or 0) >= _FEWEST:
            depths[name.removeprefix("tags/to ")] = float(np.mean([head.layer for head, *_ in measure.above(5)]))
    if not depths:
        return None
    order = sorted(depths, key=lambda tag: (depths[tag], tag))
    tag_depths = ", ".join(f"{tag} {depths[tag]:.1f}" for tag in order)
    return Answer(
        "At which depth do tags peak?", f"Mean layer of the five heads that prefer each tag most: {tag_depths}."
    )


def _patches(scores: Mapping[str, Scores], verdicts: Mapping[Head, Verdict]) -> Answer | None:
    phrases = []
    for name, what in (
        ("patch_neighbour", "the eight around"), ("patch_row", "the row"), ("patch_column", "the column"),
        ("like_hue", "alike in hue"), ("like_brightness", "alike in brightness"),
    ):  # fmt: skip
        if name in scores:
            head, value, base = scores[name].above(1)[0]
            phrases.append(f"{what} {head} {value:.2f} (chance {base:.2f})")
    return Answer("What do heads of patches look at?", f"{'; '.join(phrases)}.") if phrases else None


def _agreement(scores: Mapping[str, Scores]) -> Answer | None:
    pairs = (
        ("confidence", "relevance", "confidence and relevance"),
        ("relevance", "gate_importance", "relevance and gate gradient"),
        ("relevance", "ablation", "relevance and ablation"),
        ("distance", "entropy", "distance and entropy"),
        ("distance", "dependency_alignment", "distance and dependency alignment"),
    )
    correlations = [
        f"{what} {rank_correlation(scores[measure].values_by_head, scores[other].values_by_head):.2f}"
        for measure, other, what in pairs
        if measure in scores and other in scores
    ]
    return (
        Answer("Which measures agree?", f"Rank correlations over heads: {', '.join(correlations)}.".replace(" -", " −"))
        if correlations
        else None
    )


def _head_list(phrases: list[str]) -> str:
    more = f" and {len(phrases) - _MOST_LISTED} more" if len(phrases) > _MOST_LISTED else ""
    return f"{len(phrases)} head{'' if len(phrases) == 1 else 's'}: {', '.join(phrases[:_MOST_LISTED])}{more}."
