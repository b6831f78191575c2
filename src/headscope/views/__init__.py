"""Views: any of it made drawable, as plain data."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.views.pair_view import PairView as PairView
    from headscope.views.pair_view import side_by_side as side_by_side
    from headscope.views.view import View as View
    from headscope.views.view import activations_view as activations_view
    from headscope.views.view import head_view as head_view
    from headscope.views.view import model_view as model_view
    from headscope.views.view import neuron_view as neuron_view

__getattr__, __dir__ = public_names(__name__)
