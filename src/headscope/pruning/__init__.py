"""Pruning: which heads a model can do without, what that costs, and the smaller model."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.pruning.attention_types import PrunableLayer as PrunableLayer
    from headscope.pruning.attention_types import attention_type as attention_type
    from headscope.pruning.attention_types import layers_of as layers_of
    from headscope.pruning.head_gates import GateOptions as GateOptions
    from headscope.pruning.head_mask import HeadMask as HeadMask
    from headscope.pruning.prune_options import PruneOptions as PruneOptions
    from headscope.pruning.pruning_run import prune as prune
    from headscope.pruning.smaller_model import SmallerModels as SmallerModels
    from headscope.pruning.smaller_model import write_smaller_models as write_smaller_models
    from headscope.pruning.sweep_folder import PrunePoint as PrunePoint
    from headscope.pruning.sweep_folder import Sweep as Sweep

__getattr__, __dir__ = public_names(__name__)
