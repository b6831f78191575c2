"""A statistical word aligner: IBM model 1 (Brown et al., 1993), then an HMM over jumps (Vogel, Ney & Tillmann, 1996).

Each word of the second language comes from one word of the first, or from none. Trained in both directions and joined
as Och & Ney (2003) do: links that both make are sure; grown by neighbours on the diagonal, they are possible.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headscope.errors import InputError
from headscope.progress import Cancel, OnProgress, Steps

Words = Sequence[str]
# The chance of a word that comes from none, and jumps beyond which all are alike; Och & Ney (2003), section 2.
_NULL, _MAX_JUMP = 0.2, 8
_TINY = 1e-12
# No jump is out of the question.
_FLOOR = 1e-3


class Links(NamedTuple):
    """Links of one pair as [second word, first word]: sure ones, possible ones, and those of the first direction."""

    sure: np.ndarray
    possible: np.ndarray
    forward: np.ndarray


def align_pairs(
    pairs: Sequence[tuple[Words, Words]],
    *,
    n_iterations: int = 5,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> list[Links]:
    """Align the words of many pairs, from the pairs alone. `progress` hears of passes over them."""
    if not pairs or any(not first_words or not second_words for first_words, second_words in pairs):
        raise InputError("an aligner needs pairs of sentences with words in both.")
    steps = Steps("aligning words", 4 * n_iterations, progress, cancel)
    forward = _Direction.of(pairs).fit(n_iterations, steps.next).links()
    turned = [(second_words, first_words) for first_words, second_words in pairs]
    backward = _Direction.of(turned).fit(n_iterations, steps.next).links()
    links = []
    for there, back in zip(forward, backward, strict=True):
        links.append(Links(there & back.T, grow_links(there, back.T), there))
    return links


def grow_links(forward: np.ndarray, backward: np.ndarray) -> np.ndarray:
    """grow-diag (Koehn, Och & Marcu, 2003): what both have, and neighbours of it that one has, while a word is free."""
    links, union = forward & backward, forward | backward
    has_grown = True
    while has_grown:
        has_grown = False
        for row, column in zip(*np.nonzero(links), strict=True):
            for down in (-1, 0, 1):
                for right in (-1, 0, 1):
                    at = (row + down, column + right)
                    if not (0 <= at[0] < links.shape[0] and 0 <= at[1] < links.shape[1]):
                        continue
                    is_free = not links[at[0]].any() or not links[:, at[1]].any()
                    if union[at] and not links[at] and is_free:
                        links[at] = has_grown = True
    return links


class _Group(NamedTuple):
    """Pairs of the same two lengths: their places, and for [pair, second word, first word or none] an entry."""

    places: list[int]
    entries: np.ndarray


@dataclass
class _Direction:
    """Second words from first words: `lexicon` [entry] is p(second | first), `jumps` weigh steps of −8 … 8, `starts`
    the place that the first word comes from, from either end.
    """

    groups: list[_Group]
    owners: np.ndarray  # of each entry the first word, 0 for none
    lexicon: np.ndarray
    jumps: np.ndarray
    starts: np.ndarray
    n_pairs: int

    @classmethod
    def of(cls, pairs: Sequence[tuple[Words, Words]]) -> "_Direction":
        first: dict[str, int] = {}
        second: dict[str, int] = {}
        shaped: dict[tuple[int, int], list[int]] = defaultdict(list)
        coded = []
        for place, (first_words, second_words) in enumerate(pairs):
            codes = [first.setdefault(word.lower(), len(first) + 1) for word in first_words] + [0]
            coded.append((codes, [second.setdefault(word.lower(), len(second)) for word in second_words]))
            shaped[len(second_words), len(first_words)].append(place)
        keys = []
        for places in shaped.values():
            codes = np.array([coded[place][0] for place in places]), np.array([coded[place][1] for place in places])
            keys.append(codes[0][:, None, :].astype(np.int64) * len(second) + codes[1][:, :, None])
        known, entries = np.unique(np.concatenate([pair_keys.ravel() for pair_keys in keys]), return_inverse=True)
        groups, at = [], 0
        for places, pair_keys in zip(shaped.values(), keys, strict=True):
            groups.append(_Group(places, entries[at : at + pair_keys.size].reshape(pair_keys.shape)))
            at += pair_keys.size
        flat = np.ones(2 * _MAX_JUMP + 1)
        return cls(groups, known // len(second), np.ones(len(known)), flat, flat, len(pairs))

    def fit(self, n_iterations: int, step: Callable[[], None]) -> "_Direction":
        """Model 1, then the HMM, by expectation-maximisation."""
        for _ in range(n_iterations):
            step()
            counts = np.zeros_like(self.lexicon)
            for group in self.groups:
                shares = self.lexicon[group.entries]
                shares = shares / shares.sum(-1, keepdims=True)
                counts += np.bincount(group.entries.ravel(), shares.ravel(), len(counts))
            self._renew(counts)
        for _ in range(n_iterations):
            step()
            counts, jumps, starts = np.zeros_like(self.lexicon), np.zeros_like(self.jumps), np.zeros_like(self.starts)
            for group in self.groups:
                shares, moved = self._expect(group)
                counts += np.bincount(group.entries.ravel(), shares.ravel(), len(counts))
                jumps += np.bincount(_widths(moved.shape[0]).ravel(), moved.ravel(), len(jumps))
                begun = shares[:, 0, :-1].sum(0)
                starts += np.bincount(_ends(len(begun)), begun, len(starts))
            self._renew(counts)
            self.jumps, self.starts = (weights / weights.sum() + _FLOOR for weights in (jumps, starts))
        return self

    def links(self) -> list[np.ndarray]:
        """Each second word's most probable first word, if that is more probable than none [second word, first word]."""
        links: list[np.ndarray] = [np.zeros(0)] * self.n_pairs
        for group in self.groups:
            shares, _ = self._expect(group)
            best = shares.argmax(-1)
            for row, place in enumerate(group.places):
                links[place] = best[row][:, None] == np.arange(shares.shape[-1] - 1)
        return links

    def _renew(self, counts: np.ndarray) -> None:
        self.lexicon = counts / np.bincount(self.owners, counts)[self.owners] + _TINY

    def _expect(self, group: _Group) -> tuple[np.ndarray, np.ndarray]:
        """Forward-backward: shares [pair, second word, first word or none], and how often [from, to] was moved.

        A word from none leaves the place as it was, so each place has two states: written from, and passed by.
        """
        emitted = self.lexicon[group.entries]
        written, nothing = emitted[..., :-1] * (1 - _NULL), emitted[..., -1:] * _NULL
        n_pairs, n_steps, n_places = written.shape
        widths = self.jumps[_widths(n_places)]
        moves = widths / widths.sum(-1, keepdims=True)
        start = self.starts[_ends(n_places)]
        arrived = np.broadcast_to(start / start.sum(), (n_pairs, n_places))
        stayed, alphas = arrived, []
        for step in range(n_steps):
            alpha = np.stack([arrived * written[:, step], stayed * nothing[:, step]])  # [state, pair, place]
            alphas.append(alpha / alpha.sum((0, 2), keepdims=True))
            stayed = alphas[-1].sum(0)
            arrived = stayed @ moves
        shares, moved = np.empty_like(emitted), np.zeros((n_places, n_places))
        beta = np.ones((n_pairs, n_places))
        for step in reversed(range(n_steps)):
            states = alphas[step] * beta
            whole = states.sum((0, 2))[:, None]
            shares[:, step, :-1], shares[:, step, -1:] = states[0] / whole, states[1].sum(-1, keepdims=True) / whole
            if step:
                before, to = alphas[step - 1].sum(0), written[:, step] * beta
                next_beta = to @ moves.T + nothing[:, step] * beta
                scale = (before * next_beta).sum(-1, keepdims=True)
                moved += moves * (before.T @ (to / scale))
                beta = next_beta / next_beta.max(-1, keepdims=True)
        return shares, moved


def _ends(n_places: int) -> np.ndarray:
    """Places counted from the nearer end: 0, 1, … from the left, 16, 15, … from the right."""
    places = np.arange(n_places)
    from_left, from_right = np.minimum(places, _MAX_JUMP), np.minimum(places[::-1], _MAX_JUMP)
    return np.where(from_left <= from_right, from_left, 2 * _MAX_JUMP - from_right)


def _widths(n_places: int) -> np.ndarray:
    """The number of the jump from one place to another [from, to]."""
    places = np.arange(n_places)
    return np.clip(places[None, :] - places[:, None], -_MAX_JUMP, _MAX_JUMP) + _MAX_JUMP
