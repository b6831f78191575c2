"""Phrase F1 by the rules of conlleval."""

import collections
import lzma
from pathlib import Path

import pytest

from headscope import corpora
from headscope.errors import InputError
from headscope.tasks import chunk_f1, chunks


@pytest.mark.parametrize(
    ("tags", "phrases"),
    [
        ("O O", []),
        ("B-NP I-NP O", [("NP", 0, 2)]),
        ("B-NP B-NP", [("NP", 0, 1), ("NP", 1, 2)]),
        ("I-NP I-NP", [("NP", 0, 2)]),  # I- after nothing begins a phrase
        ("O I-NP", [("NP", 1, 2)]),  # I- after O begins a phrase
        ("B-NP I-VP", [("NP", 0, 1), ("VP", 1, 2)]),  # I- of another type begins a phrase
        ("I-NP B-NP I-NP", [("NP", 0, 1), ("NP", 1, 3)]),
        ("B-NP O I-NP", [("NP", 0, 1), ("NP", 2, 3)]),  # O ends a phrase
        ("B-NP-X I-NP-X", [("NP-X", 0, 2)]),
    ],
)
def test_phrases_begin_and_end_as_in_conlleval(tags: str, phrases: list) -> None:
    assert [tuple(chunk) for chunk in chunks(tags.split())] == phrases


def test_f1_counts_exact_phrases_over_all_sentences() -> None:
    gold = [["B-NP", "I-NP", "B-VP", "O", "B-NP"], ["B-NP", "O"]]
    predicted = [["B-NP", "I-NP", "B-NP", "O", "B-NP"], ["I-NP", "I-NP"]]
    # 4 gold; predicted NP 0-2 (right), NP 2-3, NP 4-5 (right), NP 0-2 of the second (wrong end): 2 of 4 and of 4.
    assert chunk_f1(gold, predicted) == pytest.approx(0.5)
    assert chunk_f1(gold, gold) == 1.0
    assert chunk_f1(gold, [["O"] * len(tags) for tags in gold]) == 0.0


def test_other_tags_and_other_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="'NN' is no IOB tag"):
        chunk_f1([["NN"]], [["O"]])
    with pytest.raises(InputError, match="2 gold tags and 1 predicted"):
        chunk_f1([["O", "O"]], [["O"]])


def test_the_published_baseline_of_conll_2000_is_reproduced(tmp_path: Path, shared_data: Path) -> None:
    """The most frequent chunk tag of each part of speech: F1 77.07 (Tjong Kim Sang and Buchholz, 2000, table 1)."""
    splits = {}
    for split in ("train", "test"):
        file = tmp_path / f"{split}.txt"
        file.write_bytes(lzma.decompress((shared_data / "conll2000" / f"{split}.txt.xz").read_bytes()))
        splits[split] = [example.tags for example in corpora.corpus(file, kind="conll2000")]
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for tags in splits["train"]:
        for pos, chunk in zip(tags["pos"], tags["chunk"], strict=True):
            counts[pos][chunk] += 1
    best = {pos: counter.most_common(1)[0][0] for pos, counter in counts.items()}
    predicted = [[best[pos] for pos in tags["pos"]] for tags in splits["test"]]
    assert round(100 * chunk_f1([tags["chunk"] for tags in splits["test"]], predicted), 2) == 77.07
