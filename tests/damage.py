"""A small run on disk, every way to read it, and every way to damage it: is each damage refused by name?

Only what Headscope 0.1.0 had too is imported, so that the trial can be made of it as well.
"""

import fnmatch
import random
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tiny_models import FAMILIES, tiny_bert_tokenizer

import headscope as hs
from headscope import runs
from headscope.analysis.search.example_tables import TopExamples, read_row
from headscope.errors import HeadscopeError, HeadscopeWarning
from headscope.scores import Scores

TEXTS = [
    "the cat sat on the mat because it was tired.",
    "it was tired.",
    "she gave her sister the book, and he read it to them.",
    "the cat sat.",
    "a quick brown fox jumps over the lazy dog!",
    "he read it.",
    "the animal did not cross the street because it was too wide.",
]
EQUAL, REFUSED = "equal to the truth", "refused by an error of ours that names the file"
UNNAMED, RAW, SILENT = "refused without the file's name", "raw error", "silently wrong"
KINDS = (EQUAL, REFUSED, UNNAMED, RAW, SILENT)  # from good to bad
Damage = Callable[[Path], Path]


def previous(layer):
    """Weight on the token before."""
    plain = layer.plain_queries[:, 1:].float()
    weights = layer.pattern.diagonal(-1, 2, 3) * plain[:, None]
    yield layer.tally(weights.sum(-1), plain.sum(-1), (plain / layer.visible[:, 1:]).sum(-1))


def by_length(layer):
    """The same under two keys; and a refusal."""
    yield from (
        layer.tally(layer.pattern.amax(-1).sum(-1), layer.queries.sum(-1), key=key) for key in ("strong", "weak")
    )
    yield runs.Refusal("one of many")


class SmallRun:
    """A run of a tiny model over seven texts in four shards, with tables of the strongest examples beside them."""

    def __init__(self, folder: Path, seed: int = 0):
        self.folder, self.seed = folder, seed
        self.model = hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer(), name="tiny bert")
        self.run()
        self.whole = self.files()
        self.truth = {name: reader(self) for name, reader in READERS.items()}

    def measures(self) -> list[runs.Measure]:
        """Always new ones, as a new process would have."""
        return [
            runs.OfLayers("previous", previous),
            runs.OfLayers("by_length", by_length),
            TopExamples(str(self.folder)),
        ]

    def run(self) -> runs.Run:
        """Measure, or resume."""
        return runs.run(self.model, TEXTS, self.measures(), self.folder, shard_size=2, seed=self.seed, threads=1)

    def restore(self) -> None:
        """Undo all damage."""
        for file in self.folder.iterdir():
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        for name, data in self.whole.items():
            (self.folder / name).write_bytes(data)

    def files(self) -> dict[str, bytes]:
        """What is in the folder now."""
        return {file.name: file.read_bytes() for file in sorted(self.folder.iterdir())}

    def outcomes(self, damage: Damage) -> Iterator[tuple[str, str, str]]:
        """For each reader: its name, what came of it, and what it said."""
        for name in READERS:
            self.restore()
            damaged = damage(self.folder)
            yield name, *self._outcome(name, damaged)
        self.restore()

    def _outcome(self, name: str, damaged: Path) -> tuple[str, str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                numbers = READERS[name](self)
            except HeadscopeError as error:
                return (REFUSED if damaged.name in str(error) else UNNAMED), str(error)
            except Exception as error:
                return RAW, f"{type(error).__name__}: {error}"
        if numbers == self.truth[name]:
            return EQUAL, "; ".join(str(warning.message) for warning in caught)
        # A warning that names the file is how a run in progress, which lacks files, is told from a whole one.
        messages = [str(warning.message) for warning in caught if issubclass(warning.category, HeadscopeWarning)]
        return (REFUSED if any(damaged.name in line for line in messages) else SILENT), "; ".join(messages)


def _plain(scores: dict[str, Scores] | Scores | Any) -> Any:
    if isinstance(scores, dict):
        return {name: _plain(measure_scores) for name, measure_scores in scores.items()}
    return repr(scores.to_json()) if isinstance(scores, Scores) else scores


def _scores(small: SmallRun) -> Any:
    return _plain(runs.open(small.folder, small.measures()).scores())


def _tables(small: SmallRun) -> Any:
    opened = runs.open(small.folder)
    names = [about["name"] for about in opened.manifest["measures"]]
    return {name: (opened.table(name).keys(), _plain(opened.table(name).means())) for name in names}


def _remarks(small: SmallRun) -> Any:
    opened = runs.open(small.folder)
    return (
        opened.silent_measures(),
        opened.skipped_examples(),
        opened.shard_records("refusals"),
        opened.shard_records("notes"),
        repr(opened),
    )


def _sql(small: SmallRun) -> Any:
    query = "select * from samples order by measure, key, head, block"
    return repr(runs.open(small.folder).sql(query).fetchall())


def _examples(small: SmallRun) -> Any:
    opened = runs.open(small.folder)
    tables = ("head/L0", "query/L0", "key/L1", "value/L1", "neurons/L1")
    return [read_row(opened, table, row, lowest=low) for table in tables for row in (0, 3) for low in (False, True)]


def _resume(small: SmallRun) -> Any:
    """Run again over what is there, then read."""
    small.run()
    return [_scores(small), _remarks(small), _sql(small), _examples(small)]


READERS: dict[str, Callable[[SmallRun], Any]] = {
    "scores": _scores,
    "table": _tables,
    "remarks": _remarks,
    "sql": _sql,
    "examples": _examples,
    "resume": _resume,
}


# Ways to damage a run; each gives the file that an error must name.


def flip(name: str, bit: int) -> Damage:
    """One bit the other way."""

    def damage(folder: Path) -> Path:
        data = bytearray((folder / name).read_bytes())
        data[bit // 8] ^= 1 << bit % 8
        (folder / name).write_bytes(data)
        return folder / name

    return damage


def flips(small: SmallRun, count: int, seed: int = 0, only: str = "*") -> Iterator[tuple[str, Damage]]:
    """Single-bit flips, the same number in every file (whose name matches `only`), each with a label."""
    places, names = random.Random(seed), fnmatch.filter(sorted(small.whole), only)
    for number in range(count):
        name = names[number % len(names)]
        bit = places.randrange(8 * len(small.whole[name]))
        yield f"{name} bit {bit}", flip(name, bit)


def truncate(name: str, share: float) -> Damage:
    """Only the first part is left."""

    def damage(folder: Path) -> Path:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(share * len(data))])
        return folder / name

    return damage


def longer(name: str, more: bytes = b"\0" * 16) -> Damage:
    """Bytes are appended."""

    def damage(folder: Path) -> Path:
        (folder / name).write_bytes((folder / name).read_bytes() + more)
        return folder / name

    return damage


def missing(name: str) -> Damage:
    """The file is gone."""

    def damage(folder: Path) -> Path:
        (folder / name).unlink()
        return folder / name

    return damage


def swap(name: str, other: str) -> Damage:
    """Two files in each other's place."""

    def damage(folder: Path) -> Path:
        first, second = (folder / name).read_bytes(), (folder / other).read_bytes()
        (folder / name).write_bytes(second)
        (folder / other).write_bytes(first)
        return folder / name

    return damage


def replace_bytes(name: str, data: bytes) -> Damage:
    """Other contents: those of another run, say."""

    def damage(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return damage


@dataclass
class Trial:
    """How many damages came to what: the worst over all readers, and by reader."""

    worst: Counter = field(default_factory=Counter)
    by_reader: dict[str, Counter] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, label: str, small: SmallRun, damage: Damage) -> None:
        """Make one damage and read through every reader."""
        outcomes = list(small.outcomes(damage))
        for reader, outcome, words in outcomes:
            self.by_reader.setdefault(reader, Counter())[outcome] += 1
            if outcome not in (EQUAL, REFUSED):
                self.failures.append(f"{label}, {reader}: {outcome}: {words}")
        self.worst[max((outcome for _, outcome, _ in outcomes), key=KINDS.index)] += 1
