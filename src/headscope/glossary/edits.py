"""Edits that can be written as text: their labels, meanings, examples and the phrases that name one of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EditTerm:
    """An edit: its name in Python, its label, what it does, an example, and one edit in words.

    `phrase` holds arguments by name, in braces; `parameters` are those of the Python function, in order. Where the
    tokens of a phrase are not known, the label names the edit.
    """

    name: str
    label: str
    meaning: str
    example: str
    phrase: str
    parameters: tuple[str, ...] = ("head",)


# Of an edit that changes some tokens alone, and of a row whose sum is left as the edit makes it: after the phrase.
EDIT_OPTIONS: dict[str, str] = {
    "tokens": " at {tokens}",
    "renormalise": ", row not renormalised",
}

# What a neuron is part of, or what is patched in a layer: `part` and `stage` of the edits.
EDITED_PARTS: dict[str, str] = {
    "query": "query",
    "key": "key",
    "value": "value",
    "mixed": "output",
    "mlp": "MLP",
    "neurons": "MLP",
    "residual": "residual stream",
}

_NEURON = ("site", "part", "index")

EDIT_TERMS: dict[str, EditTerm] = {
    edit.name: edit
    for edit in (
        EditTerm("silence", "silence head", "sets the output of a head to zero", 'silence("L3H2")', "silence {head}"),
        EditTerm(
            "scale",
            "scale head",
            "multiplies the output of a head",
            'scale("L3H2", 0.5)',
            "scale {head} by {factor}",
            ("head", "factor"),
        ),
        EditTerm(
            "mean_ablate",
            "mean-ablate head",
            "replaces the output of a head by its mean",
            'mean_ablate("L3H2")',
            "mean-ablate {head}",
            ("head", "mean"),
        ),
        EditTerm(
            "patch",
            "patch",
            "replaces the output of a head, a layer or a stream by that of another run",
            'patch("L3H2", model.run("The farmer asked the cook"))',
            "patch {head} from {source}",
            ("head", "source"),
        ),
        EditTerm(
            "temperature",
            "temperature",
            "divides the scores before the softmax: below 1 sharpens",
            'temperature("L3H2", 2.0)',
            "temperature {value} in {head}",
            ("head", "value"),
        ),
        EditTerm(
            "uniform",
            "uniform attention",
            "spreads attention evenly over visible keys",
            'uniform("L3H2", tokens=[-1])',
            "uniform attention in {head}",
        ),
        EditTerm(
            "distance_bias",
            "distance bias",
            "adds this much to the scores per token of distance: negative favours near keys",
            'distance_bias("L3H2", -0.5)',
            "distance bias {slope} per token in {head}",
            ("head", "slope"),
        ),
        EditTerm(
            "block",
            "block attention",
            "removes attention from queries to keys",
            'block("L3H2", "She", "nurse")',
            "block {queries} → {keys} in {head}",
            ("head", "queries", "keys"),
        ),
        EditTerm(
            "set_weight",
            "set weight",
            "sets an attention weight; the row is renormalised to sum to 1",
            'set_weight("L3H2", -1, 0, 0.9)',
            "{query} → {key} = {weight} in {head}",
            ("head", "query", "key", "weight"),
        ),
        EditTerm(
            "set_row",
            "set row",
            "sets all attention weights of a query",
            'set_row("L3H2", 1, [0.5, 0.5])',
            "set row of {query} in {head}",
            ("head", "query", "weights"),
        ),
        EditTerm(
            "replace_pattern",
            "replace pattern",
            "sets all attention weights of a head",
            'replace_pattern("L3H2", [[1.0, 0.0], [0.5, 0.5]])',
            "replace pattern of {head}",
            ("head", "pattern"),
        ),
        EditTerm(
            "set_neuron",
            "set neuron",
            "sets a neuron to a value",
            'set_neuron("L2H0", "key", 12, 0.0)',
            "{part} neuron {index} of {site} = {value}",
            (*_NEURON, "value"),
        ),
        EditTerm(
            "scale_neuron",
            "scale neuron",
            "multiplies a neuron",
            'scale_neuron("L2", "mlp", 7, 2.0)',
            "{part} neuron {index} of {site} × {factor}",
            (*_NEURON, "factor"),
        ),
        EditTerm(
            "add_neuron",
            "add to neuron",
            "adds a value to a neuron",
            'add_neuron("L2H0", "query", 3, 1.5)',
            "{part} neuron {index} of {site} + {amount}",
            (*_NEURON, "amount"),
        ),
        EditTerm(
            "replace_token",
            "replace token",
            "replaces an input token, by the mask token if none is named",
            'replace_token(2, "nurse")',
            "replace {position} by {token}",
            ("position", "token"),
        ),
    )
}
