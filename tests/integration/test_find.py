"""Finding heads by example: do made-up examples lead to the heads that the cards of the built-in models name?"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import headscope as hs
from headscope.models.loading import BUILTIN
from headscope.scores import Scores
from headscope.traces import Trace

PAIRS = [
    line.split()
    for line in [
        "red stone",
        "blue river",
        "green hill",
        "old gate",
        "dark forest",
        "white horse",
        "young king",
        "cold wind",
        "black ship",
        "golden ring",
        "silver cup",
        "broken chair",
        "little girl",
        "long road",
        "heavy door",
        "small boat",
        "wild garden",
        "great hall",
        "warm fire",
        "poor man",
        "quiet street",
        "high wall",
        "deep well",
        "strange house",
    ]
]
Find = Callable[[Scores], hs.Head]


def above(scores: Scores) -> hs.Head:
    """The head that is furthest above its own baseline at that distance."""
    return scores.above(1)[0][0]


def heaviest(scores: Scores) -> hs.Head:
    """The head that puts most weight there."""
    return scores.top(1)[0][0]


def known_heads(model: str, measure: str) -> set[str]:
    card = json.loads((Path(BUILTIN) / model / "known_heads.json").read_text())
    return set(card[measure]["heads"])


def places(trace: Trace, word: str) -> list[int]:
    return [place for place, token in enumerate(trace.tokens["main"]) if token.text.strip() == word]


def hits(traces: list[Trace], examples: list[tuple[int, int]], find: Find, heads: set[str]) -> int:
    top_heads = [find(hs.find_heads(trace, example=example)) for trace, example in zip(traces, examples, strict=True)]
    return sum(str(head) in heads for head in top_heads)


@pytest.fixture(scope="module")
def told_twice() -> list[Trace]:
    """A pair of words, some others, and the first of the pair again."""
    gpt = hs.load("builtin:gpt")
    frame = "There was a {0} {1} near the village, and nobody knew why. One day a traveller asked about the {0}"
    return [gpt.run(frame.format(*pair)) for pair in PAIRS]


def test_what_followed_last_time_leads_to_the_induction_heads(told_twice):
    examples = [
        (places(trace, first)[-1], places(trace, other)[0])
        for trace, (first, other) in zip(told_twice, PAIRS, strict=True)
    ]
    assert hits(told_twice, examples, above, known_heads("gpt", "induction")) >= 22  # 23 of 24 when this was written
    assert str(above(hs.find_heads(told_twice, example=examples))) == "L4H0"


def test_the_token_before_leads_to_the_previous_token_head_by_its_weight(told_twice):
    examples = [(len(trace.tokens["main"]) // 2, len(trace.tokens["main"]) // 2 - 1) for trace in told_twice]
    assert hits(told_twice, examples, heaviest, {"L3H2"}) == 24
    # It always looks there, so it is not above what it does anyway: that is what the baseline is for.
    assert hits(told_twice, examples, above, {"L3H2"}) == 0


def test_the_same_word_in_the_other_sentence_leads_to_its_head():
    bert = hs.load("builtin:bert")
    traces = [
        bert.run(f"The {noun} was {adjective}.", pair=f"Nobody in the village had ever seen such a {noun} before.")
        for adjective, noun in PAIRS
    ]
    examples = []
    for trace, (_, noun) in zip(traces, PAIRS, strict=True):
        first, second = places(trace, noun)
        examples.append((first, second))
    assert hits(traces, examples, above, {"L2H3"}) >= 23  # 24 of 24 when this was written
    assert "L2H3" in known_heads("bert", "same_word_across")
