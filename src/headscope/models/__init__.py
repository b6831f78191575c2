"""Models: loading, the seam, sessions and inputs. The only package that imports transformers."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.models.baking import bake as bake
    from headscope.models.capture.session import Session as Session
    from headscope.models.generation import Generation as Generation
    from headscope.models.layout import AttentionLayer as AttentionLayer
    from headscope.models.layout import Layout as Layout
    from headscope.models.loading import builtin_models as builtin_models
    from headscope.models.loading import load as load
    from headscope.models.model import Model as Model
    from headscope.models.slimming import slim as slim

__getattr__, __dir__ = public_names(__name__)
