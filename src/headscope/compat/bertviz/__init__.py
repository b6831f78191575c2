"""BertViz's views, with only the import changed: `from headscope.compat.bertviz import head_view, model_view`.

The signatures are those of BertViz 1.4.1. What differs is told in `docs/compat.md`.
"""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.compat.bertviz.views import head_view as head_view
    from headscope.compat.bertviz.views import model_view as model_view

__getattr__, __dir__ = public_names(__name__)
