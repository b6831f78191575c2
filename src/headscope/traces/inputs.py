"""One input, ready for the model, and how a person would read it."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from headscope.traces import media as looks_of
from headscope.traces.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Inputs:
    """One input, ready for the model, and how a person would read it. Replayable: `model.run(trace.inputs)`.

    `model_inputs` have no batch axis and no padding. An attention mask is among them only where it says something:
    for sound, or where ready inputs were padded on the left (`tokens` then names the real positions only).
    """

    kind: str
    model_inputs: dict[str, Tensor]
    tokens: dict[str, Tokens]
    text: str | None = None
    pair: str | None = None
    target: str | None = None
    seen: dict[str, looks_of.Seen] = field(default_factory=dict)
    """The picture or the sound as it reached the model, by the stack that attends over it."""
    decoding: dict[str, str] = field(default_factory=dict)
    """The language and the task that the user chose for a speech model."""
    warnings: tuple[str, ...] = ()
    """What was warned of while it was read: tokens that were cut off, characters that were replaced."""

    @property
    def needs_target(self) -> bool:
        """Whether the decoder's side is missing, to be generated or given."""
        return "encoder" in self.tokens and "decoder" not in self.tokens

    @property
    def length(self) -> int:
        """How many tokens its longest stack has."""
        return max((len(tokens) for tokens in self.tokens.values()), default=0)

    def tensors(self) -> list[Tensor]:
        """All that it holds."""
        looks = [tensor for seen in self.seen.values() for tensor in looks_of.tensors_of(seen).values()]
        return [*self.model_inputs.values(), *looks]

    def to_json(self) -> dict:
        """All but the tensors, which the caller keeps beside it."""
        tokens = {stack: tokens.to_json() for stack, tokens in self.tokens.items()}
        texts = {"text": self.text, "pair": self.pair, "target": self.target}
        decoding = {"decoding": self.decoding} if self.decoding else {}
        warnings = {"warnings": list(self.warnings)} if self.warnings else {}
        return {"kind": self.kind, "tokens": tokens, **texts, "seen": self._seen_json(), **decoding, **warnings}

    def _seen_json(self) -> dict:
        return {stack: looks_of.to_json(media) for stack, media in self.seen.items()}

    @classmethod
    def from_json(
        cls, data: dict, model_inputs: dict[str, Tensor], looks: dict[str, dict[str, Tensor]] | None = None
    ) -> "Inputs":
        """Read what `to_json` wrote, with the tensors kept beside it: the model's, and those of what was seen."""
        tokens = {stack: Tokens.from_json(tokens) for stack, tokens in data["tokens"].items()}
        looks = looks or {}
        media = {
            stack: looks_of.from_json(media_json, looks[stack]) for stack, media_json in data.get("seen", {}).items()
        }
        text, pair, target = data["text"], data["pair"], data["target"]
        decoding, warnings = data.get("decoding", {}), tuple(data.get("warnings", ()))
        return cls(data["kind"], model_inputs, tokens, text, pair, target, media, decoding, warnings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Inputs) or self.to_json() != other.to_json():
            return False
        mine, theirs = self.model_inputs, other.model_inputs
        is_same = mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)
        return is_same and all(looks_of.same(media, other.seen[stack]) for stack, media in self.seen.items())

    __hash__ = None  # type: ignore[assignment]  # tensors compare by value
