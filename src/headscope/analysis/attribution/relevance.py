"""Relevance: how much each head, token, patch and neuron contributed to one logit, by one backward pass.

Per head as Voita et al. (2019, section 4): the relevance of its output, summed over positions and dimensions, as a
share of its layer's. The rules are those of `lrp_rules.py`; they are signed, so layers are summed by absolute values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.attribution import logit_target
from headscope.analysis.attribution.logit_target import BATCH_SIZE, Question, Target
from headscope.analysis.attribution.lrp_rules import Rule, Rules
from headscope.analysis.statistics import mean_scores, per_layer
from headscope.arguments import instance
from headscope.errors import CaptureError, InputError, NotRecordedError
from headscope.interventions import Intervention, edit
from headscope.models import Model
from headscope.models.capture.edit_checks import intervention_list
from headscope.progress import Cancel, OnProgress, Steps
from headscope.scores import Scores
from headscope.sites import Head, Site, parse
from headscope.traces import Tokens
from headscope.traces.tokens import TokenChoice

Vector = Literal["query", "key", "value"]


@dataclass(frozen=True)
class Explained:
    """The answer that was explained: position (None: the whole input), id, text, and the logit. `other` (and
    `other_text`) is what a contrast subtracts; the logit is then the difference."""

    position: int | None
    id: int
    text: str
    logit: float
    other: int | None = None
    other_text: str = ""


@dataclass(frozen=True, eq=False)
class Relevance:
    """Where the logits of `steps` came from. Arrays have one row a step; properties and methods give their means.

    `by_token` holds what each token brought into the residual stream before the first layer [step, token], `by_neuron`
    MLP activations [step, neuron], `by_vector` coordinates of queries, keys or values [step, head, dimension].
    """

    rule: Rule
    steps: tuple[Explained, ...]
    tokens: dict[str, Tokens]
    by_head: dict[Head, np.ndarray]
    by_token: dict[str, np.ndarray]
    by_neuron: dict[Site, np.ndarray]
    by_vector: dict[tuple[Vector, Site], np.ndarray] = field(default_factory=dict)
    input_stacks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        steps = ", ".join(f"{step.text!r} {step.logit:.2f}" for step in self.steps[:3])
        more = f" and {len(self.steps) - 3} more" if len(self.steps) > 3 else ""
        return f"Relevance({self.rule!r}, {steps}{more}; bias share {self.bias_share:.2f})"

    @property
    def raw(self) -> Scores:
        """Relevance of each head in units of the logit, averaged over steps."""
        return self._scores({head: float(values.mean()) for head, values in self.by_head.items()}, "raw")

    @property
    def heads(self) -> Scores:
        """Relevance of each head as a share of its layer (by sums of absolute values), averaged over steps."""
        shares = per_layer(self.by_head)
        return self._scores({head: float(values.mean()) for head, values in shares.items()}, "share of its layer")

    @property
    def logit(self) -> float:
        """The explained logit, averaged over steps."""
        return float(np.mean([step.logit for step in self.steps]))

    @property
    def bias_shares(self) -> np.ndarray:
        """Of each step's logit, the share that no input carries [step]: biases, and under "attn" what softmax loses."""
        carried = sum(self.by_token[stack].sum(1) for stack in self.input_stacks)
        logits = np.array([step.logit for step in self.steps])
        with np.errstate(divide="ignore", invalid="ignore"):
            return (logits - carried) / logits

    @property
    def bias_share(self) -> float:
        """The same for the mean logit."""
        carried = sum(self.by_token[stack].sum(1).mean() for stack in self.input_stacks)
        return float((self.logit - carried) / self.logit) if self.logit else float("nan")

    def token_relevance(self, stack: str | None = None) -> np.ndarray:
        """Relevance of each token of a stack [token]; special tokens and patches are tokens too."""
        return self.by_token[self._stack(stack)].mean(0)

    def patch_relevance(self, stack: str | None = None) -> np.ndarray:
        """Relevance of each patch of the image [row, column]."""
        chosen = stack or next((name for name, tokens in self.tokens.items() if tokens.kind == "patches"), None)
        tokens = None if chosen is None else self.tokens.get(chosen)
        if chosen is None or tokens is None or tokens.grid is None or chosen not in self.by_token:
            raise InputError("there is no image with a grid of patches in this input.")
        by_token = self.by_token[chosen].mean(0)
        return by_token[[place for place, token in enumerate(tokens) if not token.special]].reshape(tokens.grid)

    def neuron_relevance(self, layer: str | Site, part: Literal["mlp"] | Vector = "mlp") -> np.ndarray:
        """Relevance of a layer's MLP neurons [neuron], or of query, key or value coordinates [head, dimension]."""
        place = parse(layer) if isinstance(layer, str) else layer
        site = place.site if isinstance(place, Head) else place
        if part == "mlp":
            by_step = self.by_neuron.get(Site(site.stack, site.layer, "neurons"))
        else:
            by_step = self.by_vector.get((part, site))
        if by_step is None:
            hint = "its MLP was not found" if part == "mlp" else f"ask for it with vectors=({part!r},)"
            raise NotRecordedError(f"there is no {part} relevance of {site}: {hint}.")
        return by_step.mean(0)

    def _stack(self, stack: str | None) -> str:
        chosen = stack or next(iter(self.input_stacks))
        if chosen not in self.by_token:
            raise NotRecordedError(f"there is no stack {chosen!r}: there are {', '.join(self.by_token)}.")
        return chosen

    def _scores(self, values: dict[Head, float], unit: str) -> Scores:
        settings = {"rule": self.rule, "unit": unit, "steps": len(self.steps)}
        return Scores("relevance", values, settings=settings, n_samples=1)


def relevance(
    model: Model,
    source: Any,
    *,
    target: Target | None = None,
    position: TokenChoice | None = None,
    rule: Rule = "cp",
    interventions: Sequence[Intervention] = (),
    vectors: Sequence[Vector] = (),
    batch_size: int = BATCH_SIZE,
    cancel: Cancel | None = None,
) -> Relevance:
    """Where a logit came from: heads, tokens, patches and neurons by layer-wise relevance propagation.

    `target` is a token or class (id or text), two of them for the difference of their logits, or None for the model's
    top answer. `position` says where it is read: by default where the model answers, every step of a decoder.
    `vectors` asks for coordinates of queries, keys or values as well.

    >>> import headscope as hs
    >>> explained = hs.relevance(hs.load("builtin:gpt"), "The doctor asked the nurse a question. She")
    >>> explained.steps[0].text, explained.heads.top(1)[0][0]
    (' was', Head('L4H5'))
    """
    edits = check_request(model, rule, interventions, vectors)
    questions = logit_target.ask(model, source, position, edits, cancel=cancel)
    if len(questions) != 1:
        raise InputError(f"relevance explains one input, got {len(questions)}: use relevance_scores for several.")
    each = questions[0].each()
    rows_in_order: list[_Row] = [None] * len(each)  # type: ignore[list-item]
    for places in logit_target.batches(model, each, batch_size):
        rows = _pass(model, [each[place] for place in places], [target] * len(places), rule, edits, vectors, cancel)
        for place, row in zip(places, rows, strict=True):
            rows_in_order[place] = row
    return _join(rule, questions[0].tokens, rows_in_order)


def relevance_scores(
    model: Model,
    inputs: Sequence[Any],
    *,
    target: Target | list[Target] | None = None,
    position: TokenChoice | None = None,
    rule: Rule = "cp",
    interventions: Sequence[Intervention] = (),
    normalised: bool = True,
    batch_size: int = BATCH_SIZE,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Scores:
    """Relevance of every head, averaged over the steps of each input and then over inputs, with bootstrap intervals.

    `target` is as in `relevance`, or a list with one for each input. Scores are shares of each layer, or in units of
    the logit with `normalised=False`; `settings["bias_share"]` is that of all logits together. `progress` hears how
    many steps are done, and of how many.
    """
    edits = check_request(model, rule, interventions, ())
    questions = logit_target.ask(model, list(inputs), position, edits, cancel=cancel)
    targets = logit_target.each_target(target, len(questions))
    each = [(number, step_question) for number, question in enumerate(questions) for step_question in question.each()]
    rows_by_input: dict[int, list[_Row]] = {}
    steps = Steps("relevance", len(each), progress)
    for places in logit_target.batches(model, [step_question for _, step_question in each], batch_size):
        wanted = [targets[each[place][0]] for place in places]
        rows = _pass(model, [each[place][1] for place in places], wanted, rule, edits, (), cancel)
        for place, row in zip(places, rows, strict=True):
            rows_by_input.setdefault(each[place][0], []).append(row)
        steps.add(len(places))
    ordered = [rows_by_input[number] for number in sorted(rows_by_input)]
    settings = {
        "rule": rule,
        "unit": "share of its layer" if normalised else "raw",
        "steps": len(each),
        "bias_share": _bias_share([row for rows in ordered for row in rows]),
    }
    return mean_scores("relevance", [_mean_by_head(rows, normalised) for rows in ordered], settings)


def _mean_by_head(rows: list["_Row"], normalised: bool) -> dict[Head, float]:
    """The relevance of each head over the steps of one input; a share of its layer if normalised."""
    values_by_head = {head: np.array([row.heads[head] for row in rows]) for head in rows[0].heads}
    if normalised:
        values_by_head = per_layer(values_by_head)
    return {head: float(values.mean()) for head, values in values_by_head.items()}


def _bias_share(rows: list["_Row"]) -> float:
    """Of the sum of all logits, the share that no input carries."""
    logit = sum(row.about.logit for row in rows)
    carried = sum(float(row.tokens[stack].sum()) for row in rows for stack in row.input_stacks)
    return (logit - carried) / logit if logit else float("nan")


@dataclass(eq=False)
class _Row:
    """The relevance of one step."""

    about: Explained
    heads: dict[Head, float]
    tokens: dict[str, np.ndarray]
    neurons: dict[Site, np.ndarray]
    vectors: dict[tuple[Vector, Site], np.ndarray]
    input_stacks: tuple[str, ...]


def check_request(
    model: Model, rule: str, interventions: Sequence[Intervention], vectors: Sequence[str]
) -> list[Intervention]:
    """The edits to run with; options that relevance does not take are refused."""
    instance(model, Model, "the model", "hs.load gives one")
    if rule not in ("cp", "attn"):
        raise InputError(f"there is no rule {rule!r}: choose 'cp' (CP-LRP) or 'attn' (AttnLRP).")
    if isinstance(vectors, str) or any(vector not in ("query", "key", "value") for vector in vectors):
        raise InputError(f"vectors are some of 'query', 'key' and 'value', got {vectors!r}.")
    if model.module.training:
        raise CaptureError("relevance needs dropout off: call module.eval() first.")
    return intervention_list(interventions)


def entries(model: Model) -> dict[str, str]:
    """The first block of each stack, whose input is what relevance is brought back to."""
    if not model.layout.blocks:
        raise CaptureError(
            f"where the residual stream enters the layers of {model.name} was not found: there is nothing to bring "
            "relevance back to."
        )
    blocks = model.layout.blocks
    return {
        stack: blocks[min(block for block in blocks if block.stack == stack)]
        for stack in {block.stack for block in blocks}
    }


class _Watched:
    """The tensors of one pass whose relevance is read: kept as they pass, with their graph."""

    def __init__(self, model: Model, rules: Rules, vectors: Sequence[Vector]):
        self.neurons: dict[Site, Tensor] = {}
        self.vectors: dict[tuple[Vector, Site], Tensor] = {}
        layout = model.layout
        self.edits = [edit(site, "neurons", self._keep(self.neurons, site)) for site in layout.neurons]
        for stage in vectors:
            self.edits += [
                edit(layer.site, stage, self._keep(self.vectors, (stage, layer.site))) for layer in layout.layers
            ]
        self.edits.append(edit(None, "pattern", rules.pattern))

    @staticmethod
    def _keep(into: dict, key: Any) -> Callable[[Tensor], Tensor]:
        def keep(x: Tensor) -> Tensor:
            into[key] = x
            return x

        return keep


def _pass(
    model: Model,
    questions: list[Question],
    targets: Sequence[Target | None],
    rule: Rule,
    interventions: list[Intervention],
    vectors: Sequence[Vector],
    cancel: Cancel | None,
) -> list[_Row]:
    """One forward and one backward pass over a batch of single-position questions."""
    rules = Rules(rule, model.module, entries(model))
    watched = _Watched(model, rules, vectors)
    edits = [*interventions, *watched.edits]
    logits, session = logit_target.answer(
        model, questions, edits, grad=True, cancel=cancel, inside=rules, only_spans=True
    )
    ids = [
        logit_target.target_ids(model, target, answers, question)
        for target, answers, question in zip(targets, logits, questions, strict=True)
    ]
    chosen = [answers.gather(1, answer_ids)[0] for answers, answer_ids in zip(logits, ids, strict=True)]
    explained = torch.stack([values[0] - values[1] if len(values) > 1 else values[0] for values in chosen])
    total = explained.sum()
    rules.check(total)

    sites = [layer.site for layer in model.layout.layers if layer.site in session.captured]
    mixed = {site: session.captured[site].mixed for site in sites}
    # Streams are [example, token, dim]; everything else has heads in between.
    groups: list[dict] = [mixed, rules.streams, watched.neurons, watched.vectors]
    heads, streams, neurons, coordinates = _relevances(total, groups, len(questions))
    return [
        _Row(
            _explain(
                model, question, ids[place][0].tolist(), logits[place].shape[-1], float(explained[place].detach())
            ),
            {
                site.head(index): float(value)
                for site, values in heads.items()
                for index, value in enumerate(values[place].sum((0, 2, 3)))
            },
            {
                stack: _real(values[place], session.positions.real.get(stack), place)
                for stack, values in streams.items()
            },
            {site: values[place].sum((0, 1, 2)).cpu().numpy() for site, values in neurons.items()},
            {key: values[place].sum((0, 2)).cpu().numpy() for key, values in coordinates.items()},
            tuple(stack for stack in streams if stack not in rules.covered),
        )
        for place, question in enumerate(questions)
    ]


def _explain(model: Model, question: Question, answer_ids: list[int], size: int, logit: float) -> Explained:
    """The answer of one question: its id and text, and those of the answer that a contrast subtracts."""
    position = question.positions[0] if question.positions else None
    texts = [logit_target.name_of(model, answer_id, size, question.tokens[question.stack]) for answer_id in answer_ids]
    if len(answer_ids) == 1:
        return Explained(position, answer_ids[0], texts[0], logit)
    return Explained(position, answer_ids[0], texts[0], logit, answer_ids[1], texts[1])


def _relevances(total: Tensor, groups: list[dict], n: int) -> list[dict]:
    """Activation × gradient of every tensor in these groups, by example."""
    wanted = [tensor for group in groups for tensor in group.values() if tensor.requires_grad]
    slopes = torch.autograd.grad(total, wanted, allow_unused=True)
    slope_of = {id(tensor): slope for tensor, slope in zip(wanted, slopes, strict=True)}
    return [
        {key: _by_example(tensor, slope_of.get(id(tensor)), n) for key, tensor in group.items()} for group in groups
    ]


def _by_example(x: Tensor, slope: Tensor | None, n: int) -> Tensor:
    """Activation × gradient [example, window, head, row, dim]; an image may be cut into windows."""
    if x.shape[0] % n:
        raise CaptureError("this model joins the inputs of a batch in one row: explain them with batch_size=1.")
    products = torch.zeros_like(x) if slope is None else x.detach() * slope
    return products.double().unflatten(0, (n, -1))


def _real(stream_relevance: Tensor, real: Tensor | None, example: int) -> np.ndarray:
    """Relevance of a stream [1, token, dim] as that of an example's real tokens [token]."""
    by_token = stream_relevance.sum(-1).flatten()
    if real is not None and example < real.shape[0] and real.shape[1] == len(by_token):
        by_token = by_token[real[example].to(by_token.device)]
    return by_token.cpu().numpy()


def _join(rule: Rule, tokens: dict[str, Tokens], rows: list[_Row]) -> Relevance:
    def stack_rows(name: str) -> dict:
        return {key: np.stack([np.asarray(getattr(row, name)[key]) for row in rows]) for key in getattr(rows[0], name)}

    parts = {name: stack_rows(name) for name in ("heads", "tokens", "neurons", "vectors")}
    tokens_by_stack = {
        stack: tokens[stack] if stack in tokens and len(tokens[stack]) == values.shape[1]
        else Tokens.numbered(values.shape[1])
        for stack, values in parts["tokens"].items()
    }  # fmt: skip
    return Relevance(
        rule,
        tuple(row.about for row in rows),
        tokens_by_stack,
        parts["heads"],
        parts["tokens"],
        parts["neurons"],
        parts["vectors"],
        rows[0].input_stacks,
    )
