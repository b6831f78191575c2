"""Which models the use cases fit: those that read one text, which attends to itself."""

from headscope.errors import InputError
from headscope.models import Model


def unfit(model: Model, *, needs_pairs: bool = False) -> str:
    """Why a use case cannot be tried on a model; empty when it can."""
    if model.is_encoder_decoder:
        return "it reads one text that attends to itself, and this model has a source and a target"
    if model.tokenizer is None or (model.has_layout and "main" not in model.stacks):
        return "it needs a model that reads text"
    if needs_pairs and model.is_causal:
        return "it needs a model that reads pairs of sentences both ways, such as builtin:bert"
    return ""


def check_fits(what: str, model: Model, *, needs_pairs: bool = False) -> None:
    """Refuse a model that a use case does not fit, with the reason, before anything is run."""
    why = unfit(model, needs_pairs=needs_pairs)
    if why:
        raise InputError(f"{what} does not fit {model.name}: {why}.")
