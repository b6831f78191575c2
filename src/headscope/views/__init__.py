"""Views: any of it made drawable, as plain data."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.views.atlas_views import AtlasView as AtlasView
    from headscope.views.atlas_views import atlas_view as atlas_view
    from headscope.views.builders import activations_view as activations_view
    from headscope.views.builders import head_view as head_view
    from headscope.views.builders import model_view as model_view
    from headscope.views.builders import neuron_view as neuron_view
    from headscope.views.pair_view import PairView as PairView
    from headscope.views.pair_view import side_by_side as side_by_side
    from headscope.views.selection import Selection as Selection
    from headscope.views.view import View as View

__getattr__, __dir__ = public_names(__name__)
