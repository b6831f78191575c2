"""The quick set on one input: uniform, identity, ten permutations and the gradient, for one head or all. It can show
that a pattern is not needed for this answer; it cannot support an attention.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from headscope.analysis.attribution.logit_target import Question, name_of
from headscope.choices import QueryRows
from headscope.errors import InputError
from headscope.faithfulness.adversary import epsilon_max, reachable_divergence, row_divergence
from headscope.faithfulness.answer_tokens import AnswerTokens
from headscope.faithfulness.kendall_tau import rank_agreement
from headscope.faithfulness.model_attention import ModelAttention, untestable
from headscope.faithfulness.output_changes import median_change, output_change, permutations
from headscope.faithfulness.questions import question_of, task_name
from headscope.faithfulness.replacements import identity, uniform
from headscope.faithfulness.verdict_rule import FAR, SAME_OUTPUT, TrustVerdict, quick_verdict
from headscope.faithfulness.verdict_text import number, ways_without_change
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.models.spans import answers_with_spans
from headscope.progress import Cancel, OnProgress, Steps
from headscope.sites import ByHead, Head, find
from headscope.traces import Inputs, Trace

N_PERMUTATIONS = 10
_HEADS_AT_ONCE = 8


@dataclass(frozen=True)
class Badge:
    """What the quick set says of one head on one input: the verdict, a sentence, and the figures behind it.

    `answer` says what was explained. Figures: the change of the output with uniform, identity and permuted (median)
    rows, τ-b of attention with gradient × input, and the share of the largest JSD at which the output stayed the same.
    """

    head: Head
    verdict: TrustVerdict
    sentence: str
    answer: str
    figures: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; NaN becomes None, which JSON can hold."""
        figures = {name: value if math.isfinite(value) else None for name, value in self.figures.items()}
        return {**vars(self), "head": str(self.head), "figures": figures}


def quick_check(
    model: Model,
    source: Any,
    head: str | Head | None = None,
    *,
    query_rows: QueryRows = "answer",
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
    interventions: Sequence[Intervention] = (),
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> ByHead[Badge]:
    """A badge for one head, the heads of a layer, or all heads, on one text (or a trace or its inputs).

    The answer is the class, the next token after the text, the first masked token, or else a word drawn by `seed`.
    """
    inputs = _inputs(model, source)
    heads = list(model.heads) if head is None else find(head, model.heads)
    question = _question(model, inputs, seed)
    tokens = AnswerTokens(model, question, interventions=interventions, cancel=cancel)
    gradient, reads = tokens.gradient()
    queries = reads if query_rows == "answer" else range(len(tokens.tokens))
    answer = _answer_text(model, question, tokens)
    steps = Steps("heads", len(heads), progress, cancel)
    badges: ByHead[Badge] = ByHead()
    for first in range(0, len(heads), _HEADS_AT_ONCE):
        chunk = heads[first : first + _HEADS_AT_ONCE]
        testable = [chosen for chosen in chunk if untestable(model, question, chosen) is None]
        figures: dict[Head, dict[str, float]] = {}
        if testable:
            attention = ModelAttention(
                model, question, [[chosen] for chosen in testable], queries, interventions=interventions, cancel=cancel
            )
            figures = _figures(attention, tokens, gradient, permutations(attention.rows, n_permutations, seed))
        for chosen in chunk:
            badges[chosen] = _badge(chosen, figures.get(chosen), untestable(model, question, chosen), answer)
        steps.add(len(chunk))
    return badges


def _inputs(model: Model, source: Any) -> Inputs:
    inputs = source.inputs if isinstance(source, Trace) else source
    inputs = inputs if isinstance(inputs, Inputs) else model.read(inputs)
    if not isinstance(inputs, Inputs):
        raise InputError("the quick set is for one input at a time.")
    return inputs


def _question(model: Model, inputs: Inputs, seed: int) -> Question:
    """What the model answers in this input as it stands, or a word drawn by the seed."""
    task = task_name(model)
    stack = "text" if "text" in inputs.tokens else next(iter(inputs.tokens))
    drawn = question_of(model, task, inputs, seed=seed)  # refuses what cannot be asked at all
    ids = inputs.model_inputs["input_ids"].tolist()
    if task == "language_modelling":
        return Question(inputs, stack, (len(ids) - 1,), inputs.tokens)
    mask = getattr(model.tokenizer, "mask_token_id", None)
    if task == "masked_language_modelling" and mask in ids:
        return Question(inputs, stack, (ids.index(mask),), inputs.tokens)
    return drawn


def _figures(
    attention: ModelAttention, tokens: AnswerTokens, gradient: torch.Tensor, orders: torch.Tensor
) -> dict[Head, dict[str, float]]:
    rows, n_heads = attention.rows, len(attention.groups)
    before = attention.before.expand(n_heads, -1)
    patterns = torch.cat([torch.stack([uniform(rows), identity(rows)]), orders])
    changes = output_change(before, attention.answer(patterns))
    farthest = epsilon_max(row_divergence(rows, patterns), changes, SAME_OUTPUT)
    tau = rank_agreement(rows.weights.cpu(), gradient.expand(n_heads, -1), tokens.countable.expand(n_heads, -1)).tau
    columns = {
        "change_uniform": changes[0],
        "change_identity": changes[1],
        "change_permuted": median_change(changes[2:]),
        "tau_gradient": tau,
        "farthest_share": farthest / reachable_divergence(rows).clamp_min(torch.finfo(farthest.dtype).tiny),
    }
    can_move = rows.permutable.sum(-1).amax(-1) > 1
    return {
        group[0]: {name: float(values[place]) for name, values in columns.items()}
        for place, group in enumerate(attention.groups)
        if bool(can_move[place])
    }


def _badge(head: Head, figures: dict[str, float] | None, reason: str | None, answer: str) -> Badge:
    if figures is None:
        reason = reason or "the head sees fewer than two tokens that are not special"
        return Badge(head, "not tested", f"Not tested: {reason}.", answer, {})
    verdict = quick_verdict(figures["change_permuted"], figures["change_uniform"], figures["farthest_share"])
    changes = f"permuted {number(figures['change_permuted'])}, uniform {number(figures['change_uniform'])} of 1"
    if verdict == "not supported":
        way = ways_without_change(figures, SAME_OUTPUT)
        sentence = f"This answer does not need the pattern, which can be {way} with hardly a change ({changes})."
    elif figures["change_permuted"] <= SAME_OUTPUT:
        sentence = (
            "Making the pattern uniform changes this answer; permuting it hardly does, but does not move the pattern "
            f"far ({changes})."
        )
    else:
        sentence = f"Permuting the pattern, and making it uniform, changes this answer ({changes})."
    tau = figures["tau_gradient"]
    sentence += (
        " Its order of tokens was not compared: all weights are equal." if tau != tau
        else f" Attention and gradient rank the tokens with τ {number(tau)}."
    )  # fmt: skip
    if figures["farthest_share"] >= FAR:
        sentence += " A far pattern gives the same output."
    return Badge(head, verdict, sentence, answer, figures)


def _answer_text(model: Model, question: Question, tokens: AnswerTokens) -> str:
    """What was explained, as a person reads it."""
    answer = name_of(model, tokens.top, len(tokens.before), question.tokens[question.stack])
    percent = f"{100 * float(tokens.before[tokens.top]):.0f} %"
    if not question.positions:
        kind = "answer" if answers_with_spans(model) else "class"
        return f"the {kind} {answer!r} ({percent})"
    return f"{answer!r} ({percent}) at token {question.positions[0]}"
