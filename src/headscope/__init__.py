"""Headscope: see, measure, test and edit attention in any Transformer."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from headscope.analysis import Schema as Schema
    from headscope.analysis import bias as bias
    from headscope.analysis import effect as effect
    from headscope.analysis import examples as examples
    from headscope.analysis import find_heads as find_heads
    from headscope.analysis import measure as measure
    from headscope.analysis import relevance as relevance
    from headscope.atlases import Atlas as Atlas
    from headscope.atlases import atlas as atlas
    from headscope.atlases import open_atlas as open_atlas
    from headscope.corpora import corpus as corpus
    from headscope.errors import HeadscopeError as HeadscopeError
    from headscope.errors import HeadscopeWarning as HeadscopeWarning
    from headscope.interventions import Intervention as Intervention
    from headscope.interventions import add_neuron as add_neuron
    from headscope.interventions import block as block
    from headscope.interventions import distance_bias as distance_bias
    from headscope.interventions import gate as gate
    from headscope.interventions import load_interventions as load_interventions
    from headscope.interventions import mean_ablate as mean_ablate
    from headscope.interventions import patch as patch
    from headscope.interventions import replace_pattern as replace_pattern
    from headscope.interventions import replace_token as replace_token
    from headscope.interventions import save_interventions as save_interventions
    from headscope.interventions import scale as scale
    from headscope.interventions import scale_neuron as scale_neuron
    from headscope.interventions import set_neuron as set_neuron
    from headscope.interventions import set_row as set_row
    from headscope.interventions import set_weight as set_weight
    from headscope.interventions import silence as silence
    from headscope.interventions import temperature as temperature
    from headscope.interventions import uniform as uniform
    from headscope.models import Model as Model
    from headscope.models import bake as bake
    from headscope.models import load as load
    from headscope.models import slim as slim
    from headscope.progress import Progress as Progress
    from headscope.progress import progress_bars as progress_bars
    from headscope.pruning import prune as prune
    from headscope.reports import HeadsReport as HeadsReport
    from headscope.reports import TrustReport as TrustReport
    from headscope.reports import heads as heads
    from headscope.reports import trust as trust
    from headscope.scores import Scores as Scores
    from headscope.sites import Head as Head
    from headscope.traces import Comparison as Comparison
    from headscope.traces import Difference as Difference
    from headscope.traces import Trace as Trace
    from headscope.traces import compare as compare
    from headscope.traces import load_trace as load_trace
    from headscope.views import AtlasView as AtlasView
    from headscope.views import PairView as PairView
    from headscope.views import Selection as Selection
    from headscope.views import View as View
    from headscope.views import activations_view as activations_view
    from headscope.views import atlas_view as atlas_view
    from headscope.views import head_view as head_view
    from headscope.views import model_view as model_view
    from headscope.views import neuron_view as neuron_view
    from headscope.views import side_by_side as side_by_side

_PACKAGES = (
    "analysis",
    "atlases",
    "attention",
    "cli",
    "compat",
    "corpora",
    "errors",
    "faithfulness",
    "interventions",
    "models",
    "pruning",
    "reports",
    "runs",
    "scores",
    "sites",
    "tasks",
    "traces",
    "views",
)

__getattr__, __dir__ = public_names(__name__, _PACKAGES)
