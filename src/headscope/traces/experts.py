"""Which experts each token took in a mixture-of-experts layer, and with what weight."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from headscope.sites import Site


@dataclass(frozen=True, eq=False)
class ExpertChoices:
    """The experts of one layer: `ids` and `weights` [token, rank], the expert of the largest weight first.

    `weights` are what the experts' outputs are multiplied by: in some models they do not sum to 1. `logits` [token,
    expert] are the router's own, before its softmax or sigmoid; they need record='full'.
    """

    n_experts: int
    ids: Tensor
    weights: Tensor
    logits: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """Its tensors by name."""
        named = {"ids": self.ids, "weights": self.weights}
        return named if self.logits is None else named | {"logits": self.logits}

    def copy(self) -> "ExpertChoices":
        """Choices with tensors of their own."""
        return ExpertChoices(self.n_experts, **{name: tensor.clone() for name, tensor in self.tensors().items()})

    def share_of_tokens(self) -> Tensor:
        """The share of the tokens that took each expert [expert]; uniform routing gives ranks / experts."""
        return self.ids.long().flatten().bincount(minlength=self.n_experts) / max(1, len(self.ids))


def experts_header(experts: dict[Site, ExpertChoices], put: Callable[[str, Tensor], str]) -> list[dict[str, Any]]:
    """The choices of all layers as JSON, each tensor under the name that `put` gives."""
    return [
        {
            "stack": site.stack,
            "layer": site.layer,
            "n_experts": choices.n_experts,
            "tensors": {name: put(f"{site}/experts.{name}", part) for name, part in choices.tensors().items()},
        }
        for site, choices in experts.items()
    ]


def experts_of(header: list[dict[str, Any]], tensors: dict[str, Tensor]) -> dict[Site, ExpertChoices]:
    """The choices that `experts_header` described."""
    return {
        Site(layer["stack"], layer["layer"]): ExpertChoices(
            layer["n_experts"], **{name: tensors[key] for name, key in layer["tensors"].items()}
        )
        for layer in header
    }
