"""Measures: what heads do, as Scores."""

from headscope.analysis.find import find_heads as find_heads
from headscope.analysis.measure import MEASURES as MEASURES
from headscope.analysis.measure import measure as measure
from headscope.analysis.measure import measure_all as measure_all
from headscope.analysis.repeats import repeated_tokens as repeated_tokens
