"""The quick set on a run: does its answer need the attention of a head, or of each head of the model?"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from headscope.errors import InputError
from headscope.faithfulness.model_attention import CELLS
from headscope.faithfulness.quick_set import N_PERMUTATIONS, quick_check
from headscope.faithfulness.verdict_rule import SAME_OUTPUT
from headscope.models import Model
from headscope.server.runs import ServerRun
from headscope.server.tasks.relevance import working_bytes
from headscope.server.tasks.task import Desk, Task
from headscope.views.contract import BadgeProps, QuickVerdict, TrustProps
from headscope.views.wire import Part

# Of copies of the input that share a pass, a layer's patterns and the logits are held: as they are, edited, as output.
_BYTES_A_CELL = 12
_MOST_COPIES = 64


@dataclass(frozen=True)
class TrustOptions:
    """Which head, as `L3H2`; empty for all heads."""

    head: str = ""


def _trust(desk: Desk, options: TrustOptions) -> Part:
    assert desk.run is not None
    if desk.run.trace.inputs is None:
        raise InputError("there is no input to test: run a text.")
    badges = quick_check(
        desk.model,
        desk.run.trace,
        options.head or None,
        interventions=desk.run.interventions,
        progress=desk.progress,
        cancel=desk.cancel,
    )
    answer = next(iter(badges.values())).answer
    rows = [badge.to_json() for badge in badges.values()]
    for row in rows:
        if row["verdict"] not in get_args(QuickVerdict):
            raise ValueError(f"the quick set cannot say {row['verdict']!r}.")
    props = [BadgeProps(row["head"], row["verdict"], row["sentence"], row["figures"]) for row in rows]
    return Part("trust", TrustProps(answer, SAME_OUTPUT, N_PERMUTATIONS, props))


def join_badges(parts: Iterable[Part]) -> Part:
    """What several tests of one run said, as one part: of each head the last word."""
    parts = list(parts)
    badges = {badge["head"]: badge for part in parts for badge in part.props["badges"]}
    return Part("trust", {**parts[-1].props, "badges": list(badges.values())})


def _working_bytes(model: Model, run: ServerRun) -> int:
    """The attention of all layers for the gradient, then copies of the input with other rows."""
    n_tokens = max(map(len, run.trace.tokens.values()))
    most_heads = max((layer.n_heads for layer in run.trace.layers.values()), default=0)
    vocabulary = getattr(model.config, "vocab_size", None) or 1
    of_copy = most_heads * n_tokens**2 + n_tokens * vocabulary
    return working_bytes(run.trace) + _BYTES_A_CELL * min(5 * CELLS, _MOST_COPIES * of_copy)


TRUST = Task("trust", TrustOptions, _trust, working_bytes=_working_bytes)
