"""What a shard counted: sums by measure, key, head and block of examples; and how they are written as Parquet."""

import json
import warnings
from collections.abc import Sequence

import numpy as np

from headscope.errors import HeadscopeError, HeadscopeWarning
from headscope.runs.batch_plan import Plan
from headscope.runs.measure import Refusal, Tallies, Tally, numbers
from headscope.runs.shard import add_checksum, arrow, seal
from headscope.sites import Head

_TOTAL, _QUERIES, _CHANCE, _EXAMPLES = range(4)
_NAMES = ["measure", "key", "head", "example"]
_SUMS = ["total", "n_queries", "chance"]


class Ledger:
    """The sums of one shard. Its size follows from shard, heads and keys, never from the corpus."""

    def __init__(self, index: int, ids: Sequence[str], plan: Plan):
        self.index, self.ids, self.plan = index, list(ids), plan
        self.n_blocks = -(-len(self.ids) // plan.block)
        self.heads: dict[Head, int] = {}
        self.sums: dict[tuple[str, str], np.ndarray] = {}  # [sum, block, head]
        self._known: dict[int, tuple[Sequence[Head], np.ndarray]] = {}
        self.refusals: dict[str, list] = {}  # measure -> [how many, the first reason]
        self.passed_over: dict[str, str] = {}
        self.files: dict[str, str] = {}  # what measures wrote beside the shard: name -> SHA-256
        self.notes: list = []  # how many examples came with warnings of ours, and the first

    def add(self, measure: str, tallies: Tallies) -> None:
        """Take in what a measure says of a batch."""
        for tally in tallies:
            if isinstance(tally, Refusal):
                self.refusals.setdefault(measure, [0, tally.reason])[0] += 1
            else:
                self._add(measure, tally)

    def pass_over(self, place: int, reason: str) -> None:
        """Note an example that the model cannot take."""
        self.passed_over[self.ids[place]] = reason

    def note(self, place: int, warning: warnings.WarningMessage) -> None:
        """Note what was said when an example was made ready; said once for all at the end of the run."""
        if not issubclass(warning.category, HeadscopeWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
            return
        self.notes = self.notes or [0, f"{self.ids[place]}: {warning.message}"]
        self.notes[0] += 1

    def _add(self, measure: str, tally: Tally) -> None:
        columns = self._columns(tally.heads)
        blocks = np.asarray(tally.places, dtype=int) // self.plan.block
        shape = (len(blocks), len(columns))
        sums = self._room(measure, tally.key, blocks)
        chance = float("nan") if tally.chance is None else numbers(tally.chance)
        values = (numbers(tally.total), numbers(tally.n_queries), chance, numbers(tally.n_examples))
        spread = np.empty((len(values), *shape))
        for which, value in enumerate(values):
            try:
                spread[which] = value
            except ValueError as error:
                raise HeadscopeError(
                    f"{measure} gave sums of shape {np.shape(value)} for {shape[0]} examples and {shape[1]} heads."
                ) from error
        where = (np.arange(len(values))[:, None, None], blocks[:, None], columns)
        if len(set(blocks.tolist())) == len(blocks):
            sums[where] += spread
        else:  # slower, and right where examples share a block
            np.add.at(sums, where, spread)

    def _columns(self, heads: Sequence[Head]) -> np.ndarray:
        """The columns of heads; the measures of a layer share the list, which is looked up once."""
        known = self._known.get(id(heads))
        if known is None or known[0] is not heads:
            columns = np.array([self.heads.setdefault(head, len(self.heads)) for head in heads], dtype=int)
            self._known = {id(heads): (heads, columns)}
            return columns
        return known[1]

    def _room(self, measure: str, key: str, blocks: np.ndarray) -> np.ndarray:
        if blocks.size and not 0 <= blocks.min() <= blocks.max() < self.n_blocks:
            raise HeadscopeError(f"{measure} counted an example that the shard does not have.")
        room = (4, self.n_blocks, len(self.heads))
        sums = self.sums.get((measure, key))
        if sums is None or sums.shape[2] < len(self.heads):
            grown = np.zeros(room)
            if sums is not None:
                grown[:, :, : sums.shape[2]] = sums
            self.sums[measure, key] = sums = grown
        return sums

    def parquet(self, measures: Sequence[str], digest: str) -> bytes:
        """The sums as a Parquet file with its checksum, a row group a measure; the same sums give the same bytes."""
        pa, pq = arrow()
        about = {
            "headscope.manifest": digest,
            "headscope.shard": str(self.index),
            "headscope.files": json.dumps(self.files, sort_keys=True),
            "headscope.n_examples": str(len(self.ids)),
            "headscope.refusals": json.dumps(self.refusals, sort_keys=True),
            "headscope.notes": json.dumps(self.notes),
            "headscope.passed_over": json.dumps(self.passed_over, sort_keys=True),
        }
        sink = pa.BufferOutputStream()
        schema = _schema(pa).with_metadata(about)
        # Sums are all different, and a dictionary of them would be larger than they are; but their first bytes are much
        # alike, and so are their last.
        how = {"use_dictionary": _NAMES, "use_byte_stream_split": _SUMS, "write_statistics": ["measure"]}
        with pq.ParquetWriter(sink, schema, compression="lz4", **how) as writer:
            for measure in measures:
                keys = sorted(key for name, key in self.sums if name == measure)
                if keys:
                    writer.write_table(self._rows(pa, schema, measure, keys))
            add_checksum(writer)
        return seal(sink.getvalue().to_pybytes())

    def _rows(self, pa, schema, measure: str, keys: list[str]):
        """The rows of one measure, by key, block and head."""
        heads = sorted(self.heads)
        order = np.array([self.heads[head] for head in heads])
        first = self.index * self.plan.shard_size // self.plan.block
        places, values = [], []
        for number, key in enumerate(keys):
            sums = self.sums[measure, key]
            there = np.flatnonzero(order < sums.shape[2])  # heads that came later have nothing here
            block, at = np.nonzero(sums[_EXAMPLES][:, order[there]])
            column = there[at]
            places.append(np.stack([np.full(len(block), number), block, column]))
            values.append(sums[:, block, order[column]])
        (key, block, column), sums = np.concatenate(places, axis=1), np.concatenate(values, axis=1)

        def dictionary_column(codes: np.ndarray, names: list[str]):
            return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names, pa.string()))

        columns = {
            "measure": dictionary_column(np.zeros(len(key)), [measure]),
            "key": dictionary_column(key, keys),
            "head": dictionary_column(column, [str(head) for head in heads]),
            "block": pa.array(first + block),
            "example": dictionary_column(block, self.ids[:: self.plan.block]),
            "total": pa.array(sums[_TOTAL]),
            "n_queries": pa.array(sums[_QUERIES]),
            "chance": pa.array(sums[_CHANCE]),
            "n_examples": pa.array(sums[_EXAMPLES].astype(np.int32)),
        }
        return pa.Table.from_arrays([columns[field.name] for field in schema], schema=schema)


def _schema(pa):
    names = pa.dictionary(pa.int32(), pa.string())
    numbers = {name: pa.float64() for name in ("total", "n_queries", "chance")}
    columns = {"measure": names, "key": names, "head": names, "block": pa.int64(), "example": names}
    return pa.schema([*(columns | numbers).items(), ("n_examples", pa.int32())])
