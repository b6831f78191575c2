"""The record of one run: what it holds, how it is read, compared and kept."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.traces.comparison import Comparison as Comparison
    from headscope.traces.comparison import compare as compare
    from headscope.traces.difference import Difference as Difference
    from headscope.traces.difference import DifferenceLayer as DifferenceLayer
    from headscope.traces.experts import ExpertChoices as ExpertChoices
    from headscope.traces.inputs import Inputs as Inputs
    from headscope.traces.layer import HeadSummary as HeadSummary
    from headscope.traces.layer import LayerRecord as LayerRecord
    from headscope.traces.predictions import Prediction as Prediction
    from headscope.traces.predictions import Predictions as Predictions
    from headscope.traces.store import load_trace as load_trace
    from headscope.traces.tokens import Token as Token
    from headscope.traces.tokens import Tokens as Tokens
    from headscope.traces.trace import RECORDS as RECORDS
    from headscope.traces.trace import Trace as Trace

__getattr__, __dir__ = public_names(__name__)
