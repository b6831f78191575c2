"""Runs: measures over a corpus, here or on a cluster, kept as Parquet."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.runs.batch import CorpusBatch as CorpusBatch
    from headscope.runs.batch import Layer as Layer
    from headscope.runs.cell_measures import Cells as Cells
    from headscope.runs.cell_measures import OfCells as OfCells
    from headscope.runs.corpus_run import Run as Run
    from headscope.runs.corpus_run import open as open
    from headscope.runs.corpus_run import run as run
    from headscope.runs.engine import Local as Local
    from headscope.runs.measure import Measure as Measure
    from headscope.runs.measure import OfLayers as OfLayers
    from headscope.runs.measure import OfTraces as OfTraces
    from headscope.runs.measure import Refusal as Refusal
    from headscope.runs.measure import Sample as Sample
    from headscope.runs.measure import Tally as Tally
    from headscope.runs.ray import Ray as Ray
    from headscope.runs.table import MeasureTable as MeasureTable

__getattr__, __dir__ = public_names(__name__)
