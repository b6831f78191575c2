"""CircuitsVis's attention views, with only the import changed: `import headscope.compat.circuitsvis as cv`.

The signatures are those of CircuitsVis 1.43.3. What differs is told in `docs/compat.md`.
"""

from headscope.lazy import public_names

__getattr__, __dir__ = public_names(__name__, ("attention",))
