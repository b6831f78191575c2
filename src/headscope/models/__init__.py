"""Models: loading, the seam, sessions and inputs. The only package that imports transformers."""

from headscope.models.bake import bake as bake
from headscope.models.generate import Generation as Generation
from headscope.models.layout import AttentionLayer as AttentionLayer
from headscope.models.layout import Layout as Layout
from headscope.models.load import builtin_models as builtin_models
from headscope.models.load import load as load
from headscope.models.model import Model as Model
from headscope.models.session import Session as Session
