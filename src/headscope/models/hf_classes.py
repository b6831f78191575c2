"""Classes of transformers by name, for those who know them by it: no other package imports transformers."""

from typing import Any

from headscope.errors import LoadError
from headscope.models.loading import place_of


def library_class(name: str) -> Any:
    """A model, tokenizer or configuration class of transformers."""
    import transformers

    try:
        return getattr(transformers, name)
    except (AttributeError, ImportError) as error:
        raise LoadError(
            f"transformers {transformers.__version__} has no {name}: AutoModel and AutoTokenizer load any model."
        ) from error


def pretrained_name(name: str) -> str:
    """What `from_pretrained` is given for a name: the folder of a built-in model, anything else as it is."""
    return place_of(name)[0]
