"""One forward pass of one batch: the only place that calls a model's forward to look at it or to train it.

(What compares with, searches or times the plain module calls it too: the probe, verification, `bake`, slimming, speed.)
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, StoppingCriteria, StoppingCriteriaList

from headscope.choices import Record
from headscope.errors import CaptureError, HeadscopeError
from headscope.interventions import Intervention
from headscope.models.capture.edit_checks import check_tokens, intervention_list, resolve
from headscope.models.capture.nan_check import check_output
from headscope.models.capture.probe_inputs import forward_arguments
from headscope.models.capture.session import Observer, Session
from headscope.models.capture.to_traces import traces_of
from headscope.models.inputs.batch import Batch, collate
from headscope.models.inputs.token_replacement import replace_tokens
from headscope.models.predictions import answers_of, logits_of, predicted_classes
from headscope.progress import Cancel, OnProgress
from headscope.traces import Inputs, Tokens, Trace

if TYPE_CHECKING:
    from headscope.models.model import Model

# Which logits the model computes: those of every position, those that answers are read from, or the last N.
Logits = Literal["all", "answers"] | int


@dataclass(frozen=True, eq=False)
class Passed:
    """What a pass left: the model's outputs, and the session that watched it."""

    model: "Model"
    batch: Batch
    outputs: Any
    session: Session
    interventions: Sequence[Intervention]
    edited: Sequence[Inputs]

    @property
    def logits(self) -> Tensor | None:
        """Logits [batch, position, candidate], or [batch, class]; None where the model gives none."""
        return logits_of(self.model, self.outputs, self.batch)

    def classes(self) -> list[str]:
        """The class that the model chooses for each example; empty where it does not classify inputs."""
        return predicted_classes(self.model, self.outputs, self.batch)

    def traces(self, notes: Sequence[str] = ()) -> list[Trace]:
        """One trace per example, without padding; the session must have recorded."""
        answers = answers_of(self.model, self.batch, self.outputs, self.session)
        tokens = [inputs.tokens for inputs in self.edited]
        return traces_of(self.model, self.session, self.batch, tokens, self.outputs, answers, self.interventions, notes)


class Pass:
    """A batch, checked and on the model's device, with the edits to run it with. `run` may be called repeatedly."""

    def __init__(
        self,
        model: "Model",
        batch: Batch,
        interventions: Sequence[Intervention] = (),
        *,
        edited: Sequence[Inputs] | None = None,
        are_checked: bool = False,
    ):
        """`edited` are the examples after `replace_token`, where the batch was made from those. `are_checked` says that
        the tokens of interventions are positions already, which may lie beyond the examples'."""
        self.model = model
        self.batch = batch.to(model.device, model.dtype)
        if not model.has_layout:
            model.probe(inputs=self.batch.model_inputs)
        self.interventions = intervention_list(interventions)
        resolve(self.interventions, model.layout)
        for example in batch.examples if not are_checked else ():
            check_tokens(self.interventions, example.tokens)
        self.edited = batch.examples if edited is None else edited
        self.edits = [edit for edit in self.interventions if edit.stage != "tokens"]  # tokens are replaced already
        self.tokens = _tokens_by_stack(batch.examples)
        self.real = {stack: real for stack, real in self.batch.real.items() if real.shape[1]}

    @classmethod
    def of(
        cls,
        model: "Model",
        inputs: Sequence[Inputs],
        interventions: Sequence[Intervention] = (),
        *,
        are_checked: bool = False,
    ) -> "Pass":
        """The pass of several inputs: tokens replaced, then padded to one batch."""
        interventions = intervention_list(interventions)
        edited = [replace_tokens(model, example, interventions) for example in inputs]
        batch = replace(collate(edited, model.module, model.processor), examples=list(inputs))
        return cls(model, batch, interventions, edited=edited, are_checked=are_checked)

    def run(
        self,
        *,
        record: Record | None = None,
        keep: str = "cpu",
        grad: bool = False,
        lets_go: bool = False,
        exact: bool | None = None,
        logits: Logits = "all",
        training: bool | None = None,
        check: bool = True,
        observers: Sequence[Observer] = (),
        within: AbstractContextManager | None = None,
        cancel: Cancel | None = None,
        progress: OnProgress | None = None,
    ) -> Passed:
        """Call the model once.

        `training` sets the module's mode for this pass (default: as it is) and restores it. `check` refuses edits that
        make the output NaN. `observers` see each layer as it runs; `within` is entered around the session.
        """
        options = self._forward_options(logits)
        watching = {"record": record, "keep": keep, "grad": grad, "exact": exact, "progress": progress}
        watching |= {"lets_go": lets_go}
        session = self.session(cancel=cancel, observers=observers, **watching)
        with training_mode(self.model.module, training):
            with within or nullcontext(), session, _named_refusal(self.model):
                outputs = self.model.module(**self.batch.model_inputs, **options)
            if check:

                def rerun(edits: Sequence[Intervention]) -> Any:
                    with self.session(edits, cancel=cancel):
                        return self.model.module(**self.batch.model_inputs, **options)

                check_output(outputs, self.edits, rerun)
        return Passed(self.model, self.batch, outputs, session, self.interventions, self.edited)

    def generate(
        self,
        max_new_tokens: int,
        *,
        seed: int = 0,
        cancel: Cancel | None = None,
        tokens: dict[str, list[Tokens]] | None = None,
        **options: Any,
    ) -> Tensor:
        """Let the model write with the pass's edits; gives ids [example, token] as transformers' `generate` does.

        The prompt is the batch without its decoder inputs. `tokens` replaces what edits know of the prompt's tokens.
        """
        inputs = {name: value for name, value in self.batch.model_inputs.items() if not name.startswith("decoder_")}
        known = self.tokens if tokens is None else tokens
        session = Session(self.model, self.edits, cancel=cancel, tokens=known)
        session.check()
        self.model.verify_decoding()
        state = torch.random.get_rng_state()
        torch.manual_seed(seed)
        module: Any = self.model.module
        try:
            with session:
                stop = StoppingCriteriaList([_Cancelled(session)])
                ids = module.generate(**inputs, max_new_tokens=max_new_tokens, stopping_criteria=stop, **options)
        finally:
            torch.random.set_rng_state(state)
        session.check()
        return ids

    def session(self, edits: Sequence[Intervention] | None = None, **options: Any) -> Session:
        """A session that knows the batch's tokens and padding, with these edits or the pass's own."""
        edits = self.edits if edits is None else edits
        return Session(self.model, edits, tokens=self.tokens, real=self.real, **options)

    def _forward_options(self, logits: Logits) -> dict[str, Any]:
        """Arguments that keep a forward pass small: no cache, and only the logits that are read."""
        if not isinstance(self.model.module, PreTrainedModel):
            return {}
        names = forward_arguments(self.model.module)
        options: dict[str, Any] = {}
        if hasattr(self.model.config, "use_cache") and ("use_cache" in names or "kwargs" in names):
            options["use_cache"] = False
        if logits == "answers":
            logits = 1 if self.model.is_causal and not self.batch.is_padded else "all"
        if logits != "all" and "logits_to_keep" in names and "labels" not in self.batch.model_inputs:
            options["logits_to_keep"] = logits
        return {name: value for name, value in options.items() if name not in self.batch.model_inputs}


class _Cancelled(StoppingCriteria):
    """Stops generation between steps too, should a step have no attention call left to check."""

    def __init__(self, session: Session):
        self.session = session

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        return torch.full((input_ids.shape[0],), self.session.is_cancelled, device=input_ids.device)


def _tokens_by_stack(examples: Sequence[Inputs]) -> dict[str, list[Tokens]]:
    """The tokens of every example, for the stacks that all examples have."""
    tokens: dict[str, list[Tokens]] = {}
    for example in examples:
        for stack, positions in example.tokens.items():
            tokens.setdefault(stack, []).append(positions)
    return {stack: every for stack, every in tokens.items() if len(every) == len(examples)}


@contextmanager
def _named_refusal(model: "Model") -> Iterator[None]:
    """A model that cannot be observed, as verification found, is refused by name instead of by whatever it raises."""
    try:
        yield
    except HeadscopeError:
        raise
    except Exception as error:
        if model.verified is not False:
            raise
        raise CaptureError(f"{model.name} cannot be observed: {model.verification.first_difference}.") from error


@contextmanager
def training_mode(module: nn.Module, training: bool | None) -> Iterator[None]:
    """The module in training or evaluation mode, restored afterwards submodule by submodule; None changes nothing."""
    before = {} if training is None else {part: part.training for part in module.modules()}
    if training is not None:
        module.train(training)
    try:
        yield
    finally:
        for part, was_training in before.items():
            part.training = was_training
