"""BertViz's copies of models and tokenizers (`BertModel`, `GPT2Tokenizer`, …), as transformers' own.

Every model and tokenizer class that transformers has can be imported from here, `AutoModel` and `AutoTokenizer` too.
"""

from typing import Any

from headscope.models.hf_classes import library_class, pretrained_name


class _Loader:
    """One class of transformers, as far as BertViz's snippets use it."""

    def __init__(self, name: str):
        self.__name__ = name
        self._class = library_class(name)

    def __repr__(self) -> str:
        return f"<{self.__name__} of transformers>"

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._class(*args, **options)

    def from_pretrained(self, name: str, **options: Any) -> Any:
        """Load it. `output_attentions` is not needed: queries and keys are seen as the model runs."""
        options.pop("output_attentions", None)
        loaded = self._class.from_pretrained(pretrained_name(name), **options)
        return loaded.eval() if hasattr(loaded, "eval") else loaded


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not name.endswith(("Model", "Tokenizer", "Config", "HeadModel", "LM", "Classification")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _Loader(name)
