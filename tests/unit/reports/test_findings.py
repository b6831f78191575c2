"""Questions answered from scores made by hand."""

from headscope.analysis.measures.roles import roles
from headscope.reports.findings import layer_means, outcome, stacks
from headscope.scores import Scores
from headscope.sites import Head

HEADS = [Head("main", layer, index) for layer in range(4) for index in range(2)]


def by_layer(*values: float, **more) -> Scores:
    return Scores("made by hand", {head: values[head.layer] for head in HEADS}, **more)


def answers(scores) -> dict[str, str]:
    return {finding.question: finding.answer for finding in outcome(scores, roles(scores))}


def test_distance_that_grows_is_said_to_grow() -> None:
    question = "Does distance grow with depth?"
    assert answers({"distance": by_layer(1, 2, 3, 4)})[question].startswith("yes (1.0 2.0 3.0 4.0")
    assert answers({"distance": by_layer(4, 3, 2, 1)})[question].startswith("no, it shrinks")
    assert answers({"distance": by_layer(2, 1, 2, 1.5)})[question].startswith("not clearly")


def test_alignment_peaks_where_its_layer_mean_does() -> None:
    question = "Does dependency alignment peak in the middle?"
    assert "peaks in the middle, L2" in answers({"dependency_alignment": by_layer(0.1, 0.2, 0.4, 0.3)})[question]
    assert "in the first layer, L0" in answers({"dependency_alignment": by_layer(0.5, 0.2, 0.4, 0.3)})[question]


def test_a_relation_that_no_head_finds_is_said_so() -> None:
    scores = {
        "syntactic/nsubj→head": by_layer(0.1, 0.2, 0.3, 0.5, baseline=0.35),
        "syntactic/obj→head": by_layer(0.1, 0.1, 0.1, 0.1, baseline=0.35),
    }
    answer = answers(scores)["Syntactic heads"]
    assert "2 of 8 heads are ten points over" in answer and "nsubj→head L3H0 50 % (baseline 35 %)" in answer
    assert "No head is above the baseline for obj→head" in answer


def test_tags_are_ordered_by_the_depth_of_the_heads_that_prefer_them() -> None:
    scores = {
        "tags/to NOUN": by_layer(0.1, 0.1, 0.2, 0.9, baseline=0.1, settings={"queries": 5000}),
        "tags/to DET": by_layer(0.9, 0.5, 0.1, 0.1, baseline=0.1, settings={"queries": 5000}),
        "tags/to INTJ": by_layer(0.9, 0.1, 0.1, 0.1, baseline=0.001, settings={"queries": 5000}),
    }
    answer = answers(scores)["At which depth do tags peak?"]
    assert answer.index("DET") < answer.index("NOUN") and "INTJ" not in answer


def test_nothing_measured_is_nothing_said() -> None:
    assert outcome({}, {}) == []


def test_heads_are_grouped_by_stack_and_layers_by_mean() -> None:
    cross = Head("decoder", 0, 0, "cross")
    assert list(stacks([cross, Head("encoder", 0, 0)])) == ["encoder", "cross"]
    assert layer_means({HEADS[0]: 1.0, HEADS[1]: float("nan"), HEADS[2]: 3.0}) == {
        HEADS[0].site: 1.0,
        HEADS[2].site: 3.0,
    }


def test_ties_among_the_rarest_tokens_are_said() -> None:
    scores = {"rare_word": by_layer(0.2, 0.3, 0.6, 0.9, baseline=0.1, n_samples=100, settings={"once": 420})}
    answer = answers(scores)["Rare words"]
    assert "L3H0 90 % (chance 10 %)" in answer
    assert "a sentence has 4.2 tokens on average that occur once in this corpus" in answer
    few = {"rare_word": by_layer(0.2, 0.3, 0.6, 0.9, baseline=0.1, n_samples=100, settings={"once": 90})}
    assert "Ties" not in answers(few)["Rare words"]
