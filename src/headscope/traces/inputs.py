"""One input, ready for the model, and how a person would read it."""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from headscope.traces.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a run was given: `model.run(trace.inputs)` runs it again.

    `model_inputs` are the model's own arguments without the batch axis; an input is never padded. `tokens` are by stack.
    """

    kind: str
    model_inputs: dict[str, Tensor]
    tokens: dict[str, Tokens] = field(default_factory=dict)
    text: str | None = None
    pair: str | None = None
    target: str | None = None

    def to_json(self) -> dict[str, Any]:
        """All but the tensors."""
        return {
            "kind": self.kind,
            "tokens": {stack: tokens.to_json() for stack, tokens in self.tokens.items()},
            "text": self.text,
            "pair": self.pair,
            "target": self.target,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], model_inputs: dict[str, Tensor]) -> "Inputs":
        """Read what `to_json` wrote, with the tensors that were kept beside it."""
        tokens = {stack: Tokens.from_json(one) for stack, one in data["tokens"].items()}
        return cls(data["kind"], model_inputs, tokens, data["text"], data["pair"], data["target"])
