"""Sentence pairs for the encoder: paraphrases, and hard negatives that share almost all their words.

Positives: Tatoeba paraphrase pairs, English sentences with one common Russian translation, and Wikipedia
sentences beside their split versions. Negatives: sentences one or two words away that no link makes paraphrases.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

from corpora import normalised_key, read_table, split_of, wiki_rows


@dataclass(frozen=True)
class SentencePair:
    split: str
    first: str
    second: str
    same_meaning: bool
    kind: str


class Clusters:
    """Union-find over sentences: all that are linked as paraphrases share a root, and so a split."""

    def __init__(self) -> None:
        self.parent: dict[str, str] = {}

    def root(self, node: str) -> str:
        self.parent.setdefault(node, node)
        while self.parent[node] != node:
            self.parent[node] = self.parent[self.parent[node]]
            node = self.parent[node]
        return node

    def join(self, sentence: str, other: str) -> None:
        first, second = sorted((self.root(sentence), self.root(other)))
        self.parent[second] = first


def words_of(sentence: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[\w']+", sentence.lower().replace("’", "'")))


def overlap(first: str, second: str) -> float:
    """Jaccard overlap of the two sets of words: the baseline that needs no model."""
    first_words, second_words = set(words_of(first)), set(words_of(second))
    return len(first_words & second_words) / max(1, len(first_words | second_words))


def tatoeba_sentences(data: Path) -> tuple[dict[str, str], Clusters, list[tuple[str, str, str]]]:
    """Every English Tatoeba sentence with its split, the clusters, and the positive pairs (a, b, kind)."""
    clusters = Clusters()
    sentences: dict[str, str] = {}  # key -> sentence as first written
    positives: list[tuple[str, str, str]] = []
    for first, second, *_ in read_table(data / "paraphrase_tatoeba_en" / "pairs.tsv.xz"):
        clusters.join(normalised_key(first), normalised_key(second))
        sentences.setdefault(normalised_key(first), first)
        sentences.setdefault(normalised_key(second), second)
        if words_of(first) != words_of(second):
            positives.append((first, second, "tatoeba"))
    by_russian: dict[str, list[str]] = defaultdict(list)
    for english, russian, *_ in read_table(data / "en_ru" / "tatoeba_direct.tsv.xz"):
        sentences.setdefault(normalised_key(english), english)
        by_russian[normalised_key(russian)].append(english)
    for english, *_ in read_table(data / "en_ru" / "tatoeba_pivot.tsv.xz"):
        sentences.setdefault(normalised_key(english), english)
    for group in by_russian.values():
        for first, second in pairwise(group):
            clusters.join(normalised_key(first), normalised_key(second))
            if words_of(first) != words_of(second):
                positives.append((first, second, "same Russian"))
    splits = {
        sentence: split_of(clusters.root(key), valid_per_mille=20, test_per_mille=80)
        for key, sentence in sentences.items()
    }
    return splits, clusters, positives


def substitutions(first: tuple[str, ...], second: tuple[str, ...]) -> frozenset[str]:
    """The words that only one of the two has: what a pair of near-equal sentences disagrees about."""
    return frozenset(set(first) ^ set(second))


def near_neighbours(sentences: list[str], maximum_bucket: int = 12) -> dict[str, list[str]]:
    """Sentences of the same length that differ in one word, or in two where no such neighbour exists."""
    neighbours: dict[str, list[str]] = defaultdict(list)
    for removed in (1, 2):
        buckets: dict[tuple, list[str]] = defaultdict(list)
        for sentence in sentences:
            words = words_of(sentence)
            if not 3 <= len(words) <= 14 or (removed == 2 and neighbours.get(sentence)):
                continue
            for gaps in combinations(range(len(words)), removed):
                pattern = tuple("_" if at in gaps else word for at, word in enumerate(words))
                buckets[pattern].append(sentence)
        for bucket in buckets.values():
            if len(bucket) < 2:
                continue
            for at, sentence in enumerate(bucket):
                others = [bucket[(at + step) % len(bucket)] for step in range(1, min(len(bucket), maximum_bucket))]
                neighbours[sentence].extend(others)
    return neighbours


def overlap_bin(first: str, second: str) -> int:
    return int(10 * overlap(first, second))


def matched_to(positives: list[SentencePair], candidates: list[SentencePair], wanted: int) -> list[SentencePair]:
    """Negatives whose word overlap is distributed as that of the positives, so that overlap alone tells little.

    Where a bin runs short, the next lower one fills in. At most three negatives start from one sentence: the
    "Tom said that ..." family is very large.
    """
    bins: dict[int, list[SentencePair]] = defaultdict(list)
    for pair in candidates:
        bins[overlap_bin(pair.first, pair.second)].append(pair)
    shares = Counter(overlap_bin(pair.first, pair.second) for pair in positives)
    used: Counter[str] = Counter()
    chosen: list[SentencePair] = []
    missing = 0
    for at in range(10, -1, -1):
        missing += round(wanted * shares[at] / len(positives))
        while missing > 0 and bins[at]:
            pair = bins[at].pop()
            if used[pair.first] < 3:
                used[pair.first] += 1
                chosen.append(pair)
                missing -= 1
    return chosen


def replace_one_word(pair: SentencePair, swaps: dict[str, list[str]], draw: random.Random) -> SentencePair | None:
    """The second sentence with one word changed to a word that stood in its place in a natural sentence pair."""
    shared = [word for word in set(words_of(pair.first)) & set(words_of(pair.second)) if word in swaps]
    if not shared:
        return None
    old = draw.choice(sorted(shared))
    new = draw.choice(swaps[old])
    changed = re.sub(
        rf"(?i)(?<![\w']){re.escape(old)}(?![\w'])",
        lambda match: new.capitalize() if match[0][0].isupper() else new,
        pair.second,
    )
    if set(words_of(changed)) == set(words_of(pair.second)):
        return None
    return SentencePair(pair.split, pair.first, changed, False, "one word replaced")


def sentence_pairs(data: Path, seed: int = 0) -> list[SentencePair]:
    """As many negatives as positives in each split, half of them natural, half with one word replaced."""
    draw = random.Random(seed)
    splits, clusters, linked = tatoeba_sentences(data)
    by_key = {normalised_key(sentence): split for sentence, split in splits.items()}
    synonyms: Counter[frozenset[str]] = Counter()
    pairs: list[SentencePair] = []
    for first, second, kind in linked:
        synonyms[substitutions(words_of(first), words_of(second))] += 1
        if draw.random() < 0.5:
            first, second = second, first
        pairs.append(SentencePair(by_key[normalised_key(first)], first, second, True, kind))
    pairs.extend(
        SentencePair(split, whole, halves, True, "wikipedia")
        for split, whole, halves in wiki_rows(data)
        if split == "train" and len(words_of(whole)) <= 32
    )
    for split in ("train", "valid", "test"):
        positives = [pair for pair in pairs if pair.split == split]
        # Both sentences of a negative come from the same split, as those of a positive do.
        neighbours = near_neighbours([sentence for sentence, its_split in splits.items() if its_split == split])
        candidates: list[SentencePair] = []
        swaps: dict[str, list[str]] = defaultdict(list)
        for sentence, others in neighbours.items():
            for other in sorted(set(others)):
                first_words, second_words = words_of(sentence), words_of(other)
                difference = substitutions(first_words, second_words)
                same_cluster = clusters.root(normalised_key(sentence)) == clusters.root(normalised_key(other))
                # A change that is known to keep the meaning elsewhere (anyone / anybody) makes no safe negative.
                if not difference or same_cluster or synonyms[difference]:
                    continue
                candidates.append(SentencePair(split, sentence, other, False, "near neighbour"))
                changed = [(old, new) for old, new in zip(first_words, second_words, strict=True) if old != new]
                if len(changed) == 1 and len(changed[0][0]) > 2 and len(changed[0][1]) > 2:
                    swaps[changed[0][0]].append(changed[0][1])
        candidates.sort(key=lambda pair: (pair.first, pair.second))
        draw.shuffle(candidates)
        natural = matched_to(positives, candidates, len(positives) // 2)
        changed_pairs: list[SentencePair] = []
        for pair in positives:
            changed_pair = replace_one_word(pair, swaps, draw)
            if changed_pair and len(changed_pairs) + len(natural) < len(positives):
                changed_pairs.append(changed_pair)
        pairs.extend(natural + changed_pairs)
    draw.shuffle(pairs)
    return pairs
