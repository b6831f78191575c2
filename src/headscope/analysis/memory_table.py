"""What a measure counted, held in memory instead of in the files of a run."""

import numpy as np

from headscope.runs import Measure, MeasureTable
from headscope.runs.shard_counts import Ledger


class MemoryTable(MeasureTable):
    """The sums of one measure; means and intervals come from it as they do from a run's files."""

    def __init__(self, measure: Measure, n_blocks: int):
        super().__init__(measure.name, measure.settings, [], n_blocks)
        self.of = measure
        self._sums = {}
        self.n_examples = 0
        self.passed_over: dict[str, str] = {}
        self._refusals: list[str] = []

    def why(self) -> str:
        """Why there is nothing, where there is nothing."""
        return self._refusals[0] if self._refusals else super().why()

    def take(self, ledger: Ledger, first_block: int) -> None:
        """Take in the sums of one shard [sum, block, head], for every key."""
        self.passed_over |= ledger.passed_over
        if self.measure in ledger.refusals:
            self._refusals.append(ledger.refusals[self.measure][1])
        sums_by_key = self._read()
        for (measure, key), sums in ledger.sums.items():
            if measure != self.measure:
                continue
            # The last shard may have fewer examples than there is room for.
            blocks = slice(first_block, min(first_block + sums.shape[1], self.n_blocks))
            names, counts = sums_by_key.setdefault(key, ({}, np.zeros((4, self.n_blocks, 0))))
            for head, column in ledger.heads.items():
                if column >= sums.shape[2] or not sums[3, :, column].any():
                    continue
                if str(head) not in names:
                    names[str(head)] = len(names)
                    counts = np.pad(counts, ((0, 0), (0, 0), (0, 1)))
                counts[:, blocks, names[str(head)]] += sums[:, : blocks.stop - blocks.start, column]
            sums_by_key[key] = (names, counts)
