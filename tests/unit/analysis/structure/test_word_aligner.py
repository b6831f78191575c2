"""The statistical aligner on languages made up so that every link is known."""

import threading

import numpy as np
import pytest

from headscope.analysis.structure.word_aligner import align_pairs, grow_links
from headscope.errors import Cancelled, InputError
from headscope.progress import Progress


def pairs_in_order(reorder, n_pairs: int = 250, n_words: int = 40):
    """Sentences of random words and their word-for-word translations, put in another order; and the true links."""
    rng, pairs, truth = np.random.default_rng(0), [], []
    for _ in range(n_pairs):
        words = rng.choice(n_words, int(rng.integers(3, 9)), replace=False)
        order = reorder(len(words), rng)
        pairs.append(([f"a{word}" for word in words], [f"b{words[place]}" for place in order]))
        truth.append(np.array(order)[:, None] == np.arange(len(words)))
    return pairs, truth


def error_rate(links, truth) -> float:
    agreed = sum(
        (link.possible & true).sum() + (link.sure & true).sum() for link, true in zip(links, truth, strict=True)
    )
    return 1 - agreed / sum(link.possible.sum() + true.sum() for link, true in zip(links, truth, strict=True))


@pytest.mark.parametrize(
    "reorder",
    [
        lambda n, rng: list(range(n)),
        lambda n, rng: list(reversed(range(n))),
        lambda n, rng: rng.permutation(n).tolist(),
    ],
    ids=["same order", "backwards", "any order"],
)
def test_a_planted_order_is_found(reorder):
    pairs, truth = pairs_in_order(reorder)
    links_by_pair = align_pairs(pairs)
    links = [(link.sure, true) for link, true in zip(links_by_pair, truth, strict=True)]
    assert not any((sure & ~true).any() for sure, true in links)
    # Where order means nothing, a word that two long jumps would lead to may be left without: 2 % in each direction.
    assert sum(sure.sum() for sure, _ in links) > 0.95 * sum(true.sum() for _, true in links)
    assert error_rate(links_by_pair, truth) < 0.03


def test_a_word_that_comes_from_none_is_not_linked():
    pairs, truth = pairs_in_order(lambda n, rng: list(range(n)))
    pairs = [(source, [*other[:2], "particle", *other[2:]]) for source, other in pairs]
    links_by_pair = align_pairs(pairs)
    linked = np.mean([link.sure[2].any() for link in links_by_pair])
    assert linked < 0.05
    shares = [
        np.array_equal(np.delete(link.sure, 2, axis=0), true) for link, true in zip(links_by_pair, truth, strict=True)
    ]
    assert np.mean(shares) > 0.9


def test_the_order_of_words_decides_between_words_that_always_meet():
    # "x y" always comes as "u v": words alone cannot tell; the jumps of all other pairs say that order is kept.
    pairs, _ = pairs_in_order(lambda n, rng: list(range(n)))
    last_pair = align_pairs([*pairs, *[(["a1", "x", "y", "a2"], ["b1", "u", "v", "b2"])] * 5])[-1]
    np.testing.assert_array_equal(last_pair.forward, np.eye(4, dtype=bool))


def test_both_directions_are_grown_along_the_diagonal():
    first = np.array([[1, 0, 0], [1, 0, 0], [0, 0, 1]], dtype=bool)
    other = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]], dtype=bool)
    # Both: (0, 0). (1, 0) and (1, 1) neighbour it, and word 1 is free; then (2, 2) neighbours (1, 1).
    np.testing.assert_array_equal(grow_links(first, other), [[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    far = np.array([[0, 0, 0], [0, 0, 0], [1, 0, 0]], dtype=bool)
    np.testing.assert_array_equal(grow_links(first & other, far | (first & other)), first & other)


def test_sure_links_are_possible_ones_and_case_does_not_matter():
    pairs, _ = pairs_in_order(lambda n, rng: list(range(n)), n_pairs=80)
    alignment = align_pairs([([word.upper() for word in source], other) for source, other in pairs])
    again = align_pairs(pairs)
    for link, other in zip(alignment, again, strict=True):
        assert (link.possible | ~link.sure).all()
        np.testing.assert_array_equal(link.sure, other.sure)


def test_it_says_how_far_it_is_and_can_be_stopped():
    pairs, _ = pairs_in_order(lambda n, rng: list(range(n)), n_pairs=5)
    done = []
    align_pairs(pairs, n_iterations=2, progress=done.append)
    assert done == [Progress("aligning words", place, 8) for place in range(8)]
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        align_pairs(pairs, cancel=stop)
    with pytest.raises(InputError, match="words in both"):
        align_pairs([(["a"], [])])
