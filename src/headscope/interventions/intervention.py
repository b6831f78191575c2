"""An intervention: an edit, where it acts, and on which tokens."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from safetensors.torch import save
from torch import Tensor

from headscope.errors import InterventionError
from headscope.interventions import edits
from headscope.interventions.edits import Apply, Edit, ReplaceToken
from headscope.sites import Head, Site, place_of
from headscope.traces.tokens import TokenChoice, Tokens, check_choice

Stage = Literal["query", "key", "value", "scores", "pattern", "mixed", "neurons", "residual", "tokens"]
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True, eq=False)
class Intervention:
    """An edit at one stage of one head, one whole layer, or (site None) everywhere.

    It prints as the Python that makes it.
    """

    site: Head | Site | None
    stage: Stage
    edit: "Edit | ReplaceToken"
    tokens: TokenChoice | None = None
    label: str = ""

    def __repr__(self) -> str:
        return f"hs.{self.label}" if self.label else f"Intervention({self.site}, {self.stage!r}, {self.edit!r})"

    def payloads(self) -> dict[str, Tensor]:
        """The tensors that this edit carries, by the name of its argument."""
        named = {argument.name: getattr(self.edit, argument.name) for argument in fields(self.edit)}  # type: ignore[arg-type]
        return {name: value for name, value in named.items() if isinstance(value, Tensor)}

    def token_choices(self) -> list[tuple[str, TokenChoice]]:
        """Every choice of tokens it makes, with the axis it is about: "rows" or "keys"."""
        choices = [] if self.tokens is None else [("rows", self.tokens)]
        for name, axis in (("queries", "rows"), ("query", "rows"), ("keys", "keys"), ("key", "keys")):
            if hasattr(self.edit, name):
                choices.append((axis, getattr(self.edit, name)))
        return choices


def intervene(
    site: str | Head | Site | None,
    stage: Stage,
    edit: "Edit | ReplaceToken",
    tokens: TokenChoice | None,
    call: str,
    *,
    everywhere: bool = False,
) -> Intervention:
    """An intervention at an address, which may be written as text; None names all heads, where `everywhere` says so."""
    if site is None and not everywhere:
        raise InterventionError(f"{call} names no head: write layer and head as 'L5H1', or a whole layer as 'L5'.")
    intervention = Intervention(None if site is None else place_of(site), stage, edit, tokens, call)
    for _, choice in intervention.token_choices():
        check_choice(choice)
    return intervention


def edit(
    site: str | Head | Site | None,
    stage: Stage,
    function: Callable[[Tensor], Tensor],
    *,
    tokens: TokenChoice | None = None,
) -> Intervention:
    """Call your own function on a tensor [batch, head, row, last axis] at any stage. It cannot be saved as JSON.

    >>> import headscope as hs
    >>> hs.interventions.edit("L0H0", "mixed", lambda mixed: 2 * mixed)
    hs.interventions.edit('L0H0', 'mixed', <lambda>)
    """
    if stage not in STAGES or stage == "tokens":
        raise InterventionError(f"there is no stage {stage!r}: the stages are {', '.join(STAGES[:-1])}.")
    name = getattr(function, "__name__", repr(function))
    call = call_text("interventions.edit", site, stage, Bare(name), tokens=tokens)
    return intervene(site, stage, Apply(function), tokens, call, everywhere=True)


class Bare(str):
    """Text that is printed without quotes."""

    def __repr__(self) -> str:
        return str(self)


def call_text(name: str, *arguments: Any, **options: Any) -> str:
    """The call, as one would type it; a tensor is read back from where `save_interventions` puts it."""

    def argument_text(value: Any) -> str:
        if isinstance(value, Tensor):
            return f'hs.interventions.payload("{payload_name(value)}")'
        if isinstance(value, Head | Site):
            return repr(str(value))
        return repr(value)

    texts = [argument_text(value) for value in arguments]
    texts += [f"{key}={argument_text(value)}" for key, value in options.items() if value is not None]
    return f"{name}({', '.join(texts)})"


def payload_name(values: Tensor) -> str:
    """The file name of a tensor: a hash of what it holds."""
    return f"{hashlib.sha256(save({'values': values.detach().contiguous().cpu()})).hexdigest()[:16]}.safetensors"


def pin_tokens(interventions: Iterable[Intervention], tokens: Tokens, *, ahead: int = 0) -> list[Intervention]:
    """The same interventions with every choice of tokens turned into positions of this input.

    So that "the last token" still means the last token of the prompt when the text grows. Positions of the tokens that
    are still to be written, `ahead` of them, stay as they are.
    """

    def positions(chosen: TokenChoice) -> list[int]:
        choices = chosen if isinstance(chosen, list | tuple) else [chosen]
        later = [place for place in choices if isinstance(place, int) and 0 <= place - len(tokens) < ahead]
        known: Any = [choice for choice in choices if choice not in later]
        return sorted({*tokens.positions(known), *later})

    pinned = []
    for intervention in interventions:
        changes = {
            name: positions(getattr(intervention.edit, name))
            for name in ("queries", "query", "keys", "key")
            if hasattr(intervention.edit, name)
        }
        new_edit = replace(intervention.edit, **changes) if changes else intervention.edit  # type: ignore[type-var]
        chosen = None if intervention.tokens is None else positions(intervention.tokens)
        pinned.append(replace(intervention, edit=new_edit, tokens=chosen))
    return pinned


EDITS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        edits.Scale,
        edits.Mean,
        edits.Patch,
        edits.Coordinate,
        edits.Temperature,
        edits.Uniform,
        edits.DistanceBias,
        edits.Block,
        edits.ReplacePattern,
        edits.SetWeight,
        edits.SetRow,
        edits.ReplaceToken,
    )
}
