"""The scales of the workbench."""

from dataclasses import dataclass

from headscope.choices import Scale


@dataclass(frozen=True)
class ScaleTerm:
    """A scale: its name in code and in links, its label, and what it shows."""

    name: Scale
    label: str
    meaning: str


SCALE_TERMS: dict[str, ScaleTerm] = {
    scale.name: scale
    for scale in (
        ScaleTerm("atlas", "Atlas", "queries and keys of a whole corpus, in every head"),
        ScaleTerm("model", "Model", "all layers and heads"),
        ScaleTerm("head", "Head", "heads of one layer, between tokens"),
        ScaleTerm("neuron", "Neuron", "one head: query, keys and values, neuron by neuron"),
        ScaleTerm("activations", "Activations", "what passes through the layers, token by token"),
    )
}
