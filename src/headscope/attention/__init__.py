"""The one score function, and what it needs: masks and biases as objects, tiles, summaries."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.attention.biases import Bias as Bias
    from headscope.attention.formula import Formula as Formula
    from headscope.attention.formula import expand_heads as expand_heads
    from headscope.attention.formula import log_denominator as log_denominator
    from headscope.attention.formula import scores as scores
    from headscope.attention.formula import softmax as softmax
    from headscope.attention.fused import attend_fused as attend_fused
    from headscope.attention.fused import is_covered as is_covered
    from headscope.attention.masks import Mask as Mask
    from headscope.attention.pooled import pooled_weights as pooled_weights
    from headscope.attention.spans import span_weights as span_weights
    from headscope.attention.summaries import Summariser as Summariser
    from headscope.attention.summaries import Summary as Summary
    from headscope.attention.summaries import summarise as summarise
    from headscope.attention.tiles import attend_in_tiles as attend_in_tiles

__getattr__, __dir__ = public_names(__name__)
