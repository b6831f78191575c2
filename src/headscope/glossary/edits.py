"""Edits that can be written as text: their labels, meanings and examples."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EditTerm:
    """An edit: its name in Python, its label, what it does, and an example."""

    name: str
    label: str
    meaning: str
    example: str


EDIT_TERMS: dict[str, EditTerm] = {
    edit.name: edit
    for edit in (
        EditTerm("silence", "silence head", "sets the output of a head to zero", 'silence("L3H2")'),
        EditTerm("scale", "scale head", "multiplies the output of a head", 'scale("L3H2", 0.5)'),
        EditTerm("mean_ablate", "mean-ablate head", "replaces the output of a head by its mean", 'mean_ablate("L3H2")'),
        EditTerm(
            "patch",
            "patch",
            "replaces the output of a head, a layer or a stream by that of another run",
            'patch("L3H2", model.run("The farmer asked the cook"))',
        ),
        EditTerm(
            "temperature",
            "temperature",
            "divides the scores before the softmax: below 1 sharpens",
            'temperature("L3H2", 2.0)',
        ),
        EditTerm(
            "uniform", "uniform attention", "spreads attention evenly over visible keys", 'uniform("L3H2", tokens=[-1])'
        ),
        EditTerm(
            "distance_bias",
            "distance bias",
            "adds this much to the scores per token of distance: negative favours near keys",
            'distance_bias("L3H2", -0.5)',
        ),
        EditTerm("block", "block attention", "removes attention from queries to keys", 'block("L3H2", "She", "nurse")'),
        EditTerm(
            "set_weight",
            "set weight",
            "sets an attention weight; the row is renormalised to sum to 1",
            'set_weight("L3H2", -1, 0, 0.9)',
        ),
        EditTerm("set_row", "set row", "sets all attention weights of a query", 'set_row("L3H2", 1, [0.5, 0.5])'),
        EditTerm(
            "replace_pattern",
            "replace pattern",
            "sets all attention weights of a head",
            'replace_pattern("L3H2", [[1.0, 0.0], [0.5, 0.5]])',
        ),
        EditTerm("set_neuron", "set neuron", "sets a neuron to a value", 'set_neuron("L2H0", "key", 12, 0.0)'),
        EditTerm("scale_neuron", "scale neuron", "multiplies a neuron", 'scale_neuron("L2", "mlp", 7, 2.0)'),
        EditTerm("add_neuron", "add to neuron", "adds a value to a neuron", 'add_neuron("L2H0", "query", 3, 1.5)'),
        EditTerm(
            "replace_token",
            "replace token",
            "replaces an input token, by the mask token if none is named",
            'replace_token(2, "nurse")',
        ),
    )
}
