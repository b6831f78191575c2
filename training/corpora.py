"""Reads the data sets that may be trained on, cleans them, and fixes the train / valid / test splits.

A split depends on the text alone (a hash of its letters and digits), so every script that asks for it gets the
same one, on any machine and in any order.
"""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

SPLITS = ("train", "valid", "test")
DOCUMENT_END = "\x1e"  # the ASCII record separator never occurs in the texts

# Dated 1929 or later: possibly still in copyright somewhere, so nothing that ships is trained on them.
FIRST_EXCLUDED_YEAR = 1929
# Whole books are held out: paragraphs of one book share names and phrases, so a random split would leak.
HELD_OUT_NOVELS = {"Barclay_Ladies_1917": "valid", "Wcollins_Woman_1860": "test", "Woolf_Night_1919": "test"}


def normalised_key(text: str) -> str:
    """Letters and digits in lower case: two sentences that differ in punctuation alone share a key."""
    return "".join(character for character in text.lower() if character.isalnum())


def split_of(key: str, valid_per_mille: int = 20, test_per_mille: int = 50) -> str:
    bucket = int(hashlib.sha1(key.encode("utf-8")).hexdigest()[:8], 16) % 1000
    if bucket < test_per_mille:
        return "test"
    return "valid" if bucket < test_per_mille + valid_per_mille else "train"


def read_xz(path: Path) -> str:
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as stream:
        return stream.read()


def write_xz(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8", newline="\n", preset=6) as stream:
        stream.write(text)


def read_table(path: Path) -> Iterator[list[str]]:
    """Rows of a tab-separated file, without its header."""
    for line in read_xz(path).split("\n")[1:]:
        if line:
            yield line.split("\t")


def novels(data: Path) -> Iterator[tuple[str, str]]:
    """(split, text) of each novel that may be used; a paragraph per line."""
    for book in re.split(r"^<\|", read_xz(data / "lm_novels" / "novels100.txt.xz"), flags=re.MULTILINE):
        if not book.strip():
            continue
        name, text = book.split("|>\n", 1)
        if int(name.rsplit("_", 1)[1]) < FIRST_EXCLUDED_YEAR:
            yield HELD_OUT_NOVELS.get(name, "train"), text.strip()


def detokenise(sentence: str) -> str:
    """Undoes word-level tokenisation: spaces before punctuation, split clitics, paired quotes."""
    parts = re.split(r"''|``", sentence)
    text = "".join(
        part if index == 0 else (' "' + part.lstrip() if index % 2 else close_part(part))
        for index, part in enumerate(parts)
    )
    text = re.sub(r"\s+([,.;:!?%)\]])", r"\1", text)
    text = re.sub(r"([(\[$])\s+", r"\1", text)
    text = re.sub(r"\s+('(?:s|re|ve|ll|d|m|S)\b|n't\b|'(?=\s))", r"\1", text)
    text = re.sub(r'\s+"(?=[,.;:!?)]|$)', '"', text)
    return re.sub(r"\s+", " ", text).strip()


def close_part(part: str) -> str:
    return '"' + (part if part.startswith((" ,", " .", " ;")) or not part else " " + part.lstrip())


def wiki_rows(data: Path) -> Iterator[tuple[str, str, str]]:
    """(split, sentence, the same content as two sentences) of WikiSplit."""
    seen: set[str] = set()
    for name in ("tune", "validation", "test"):
        for line in read_xz(data / "wiki_split" / f"{name}.tsv.xz").split("\n"):
            if "\t" not in line:
                continue
            whole, halves = line.split("\t")[:2]
            whole = detokenise(whole)
            key = normalised_key(whole)
            if key not in seen:
                seen.add(key)
                yield split_of(key), whole, detokenise(halves.replace("<::::>", " "))


def web_documents(data: Path) -> Iterator[tuple[str, str]]:
    """(split, text) of each document of the English Web Treebank, by its own train / dev / test files."""
    for name, split in (("train", "train"), ("dev", "valid"), ("test", "test")):
        paragraphs: list[list[str]] = []
        for line in read_xz(data / "ud_english_ewt" / f"en_ewt-ud-{name}.conllu.xz").split("\n"):
            if line.startswith("# newdoc") and paragraphs:
                yield split, "\n".join(" ".join(sentences) for sentences in paragraphs if sentences)
                paragraphs = []
            if line.startswith("# newpar"):
                paragraphs.append([])
            if line.startswith("# text = "):
                if not paragraphs:
                    paragraphs.append([])
                paragraphs[-1].append(line.removeprefix("# text = "))
        if paragraphs:
            yield split, "\n".join(" ".join(sentences) for sentences in paragraphs if sentences)


def translation_pairs(data: Path) -> Iterator[tuple[str, str, str, str]]:
    """(split, English, Russian, "direct" or "pivot"). Valid and test keep direct human pairs only; a pivot pair
    whose English sentence is held out is dropped."""
    seen: set[tuple[str, str]] = set()
    for kind in ("direct", "pivot"):
        for english, russian, *_ in read_table(data / "en_ru" / f"tatoeba_{kind}.tsv.xz"):
            split = split_of(normalised_key(english))
            if (english, russian) in seen or (kind == "pivot" and split != "train"):
                continue
            seen.add((english, russian))
            yield split, english, russian, kind


def chunks(items: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def shuffle(items: Iterable[str]) -> list[str]:
    """A fixed order that has nothing to do with the alphabetical one of the sources."""
    return sorted(items, key=lambda text: hashlib.sha1(text.encode("utf-8")).digest())


def documents_by_source(data: Path, tatoeba: dict[str, str], wanted: str) -> dict[str, list[str]]:
    """Documents of one split from each source. `tatoeba` maps each English Tatoeba sentence to its split.

    Single sentences (Tatoeba, Wikipedia) are strung into documents of 20 and 8 lines: a document per sentence
    would teach the model that text ends after one sentence.
    """
    wiki = [sentence for split, sentence, _ in wiki_rows(data) if split == wanted]
    spoken = [sentence for sentence, split in tatoeba.items() if split == wanted]
    return {
        "novels": [text for split, text in novels(data) if split == wanted],
        "web": [text for split, text in web_documents(data) if split == wanted],
        "wikipedia": ["\n".join(lines) for lines in chunks(shuffle(wiki), 8)],
        "tatoeba": ["\n".join(lines) for lines in chunks(shuffle(spoken), 20)],
    }


def language_model_documents(data: Path, tatoeba: dict[str, str], wanted: str) -> list[str]:
    return [text for documents in documents_by_source(data, tatoeba, wanted).values() for text in documents]


def wikitext2(data: Path, name: str = "test") -> str:
    """WikiText-2 as plain text: its @-@ marks, spaced punctuation and heading marks undone; <unk> stays."""
    lines = []
    for line in read_xz(data / "wikitext2" / f"{name}.txt.xz").split("\n"):
        line = line.strip()
        if not line:
            continue
        line = re.sub(r" @([-,.])@ ", r"\1", line)
        line = re.sub(r"^(?:= )+(.*?)(?: =)+$", r"\1", line)
        quotes = line.split('"')
        line = "".join(
            part if index == 0 else ('"' + (part.lstrip() if index % 2 else part))
            for index, part in enumerate(
                quote.rstrip() if at % 2 and at < len(quotes) - 1 else quote for at, quote in enumerate(quotes)
            )
        )
        lines.append(detokenise(line))
    return "\n".join(lines)
