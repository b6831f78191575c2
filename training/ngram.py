"""An n-gram language model with interpolated modified Kneser-Ney smoothing, in numpy: the baseline of the GPT.

Each n-gram has a dense number; the key of a longer one is (number of its first n - 1 tokens) * vocabulary + its last
token, so that one sorted array per order is the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Order:
    keys: np.ndarray  # sorted keys of the n-grams that occur
    counts: np.ndarray  # raw counts for the highest order, numbers of distinct predecessors below it
    context: np.ndarray  # number of the (n-1)-gram each starts with
    context_total: np.ndarray
    context_left: np.ndarray  # mass taken off by the discounts, per context
    discounts: np.ndarray  # for counts of 1, 2, and 3 or more

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Numbers of the n-grams with these keys, -1 where there is none."""
        at = np.searchsorted(self.keys, keys).clip(0, len(self.keys) - 1)
        return np.where((self.keys[at] == keys) & (keys >= 0), at, -1)


def discounts_of(counts: np.ndarray) -> np.ndarray:
    """Chen and Goodman's three discounts from the numbers of n-grams seen once to four times."""
    ones, twos, threes, fours = (max(1, int((counts == times).sum())) for times in (1, 2, 3, 4))
    ratio = ones / (ones + 2 * twos)
    values = (1 - 2 * ratio * twos / ones, 2 - 3 * ratio * threes / twos, 3 - 4 * ratio * fours / threes)
    return np.array([min(max(value, 0.1), limit) for value, limit in zip(values, (0.9, 1.8, 2.7), strict=True)])


class KneserNey:
    def __init__(self, tokens: np.ndarray, vocabulary: int, order: int = 5) -> None:
        self.vocabulary, self.order = vocabulary, order
        tokens = tokens.astype(np.int64)
        numbers = tokens  # number of the n-gram that starts at each place
        orders: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        keys, first, numbers, counts = np.unique(tokens, return_index=True, return_inverse=True, return_counts=True)
        orders.append((keys, first, numbers, counts))
        for length in range(2, order + 1):
            longer = numbers[:-1] * vocabulary + tokens[length - 1 :]
            keys, first, numbers, counts = np.unique(longer, return_index=True, return_inverse=True, return_counts=True)
            orders.append((keys, first, numbers, counts))
        self.orders: list[Order] = []
        for index, (keys, first, _, counts) in enumerate(orders):
            if index + 1 < order:
                # Below the highest order an n-gram counts by how many different tokens it follows.
                _, longer_first, _, _ = orders[index + 1]
                followed = orders[index][2][longer_first + 1]
                counts = np.maximum(1, np.bincount(followed, minlength=len(keys)))
            context = orders[index - 1][2][first] if index else np.zeros(len(keys), dtype=np.int64)
            size = len(orders[index - 1][0]) if index else 1
            discounts = discounts_of(counts)
            taken = discounts[np.minimum(counts, 3) - 1]
            self.orders.append(
                Order(
                    keys=keys,
                    counts=counts,
                    context=context,
                    context_total=np.bincount(context, weights=counts, minlength=size),
                    context_left=np.bincount(context, weights=taken, minlength=size),
                    discounts=discounts,
                )
            )

    def probabilities(self, tokens: np.ndarray) -> np.ndarray:
        """The probability of each token of a stream after the (order - 1) tokens before it."""
        tokens = tokens.astype(np.int64)
        length = len(tokens)
        # numbers[n][i]: the n-gram that starts at place i, -1 if it was never seen
        numbers: list[np.ndarray] = [self.orders[0].find(tokens)]
        for size in range(2, self.order + 1):
            before = numbers[-1][: length - size + 1]
            keys = np.where(before >= 0, before * self.vocabulary + tokens[size - 1 :], -1)
            numbers.append(self.orders[size - 1].find(keys))
        result = np.full(length, 1.0 / self.vocabulary)
        for size in range(1, self.order + 1):
            table = self.orders[size - 1]
            places = np.arange(size - 1, length)
            starts = places - size + 1
            context = np.zeros(len(places), dtype=np.int64) if size == 1 else numbers[size - 2][starts]
            known = context >= 0
            # A context may end the training text and so have no continuation.
            total = np.where(known, table.context_total[np.where(known, context, 0)], 0.0)
            known &= total > 0
            gram = numbers[size - 1][starts]
            count = np.where(gram >= 0, table.counts[np.where(gram >= 0, gram, 0)], 0)
            taken = np.where(count > 0, table.discounts[np.minimum(np.maximum(count, 1), 3) - 1], 0.0)
            left = np.where(known, table.context_left[np.where(known, context, 0)], 0.0)
            safe = np.where(known, total, 1.0)
            mixed = (count - taken) / safe + left / safe * result[places]
            result[places] = np.where(known, mixed, result[places])
        return result
