"""A model: a network, what reads its inputs, and the ways to run it and watch it."""

import inspect
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.choices import Record
from headscope.errors import CaptureError, HeadscopeWarning, InputError, NotRecordedError
from headscope.interventions import Intervention
from headscope.models.capture import seam
from headscope.models.capture.edit_checks import intervention_list, replace_ids
from headscope.models.capture.hooks import watch_layers, watch_pass
from headscope.models.capture.passes import Pass
from headscope.models.capture.probe import Probe, layout_of
from headscope.models.capture.probe_inputs import probe_inputs
from headscope.models.capture.session import Session
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.batch import batchable, ready_inputs
from headscope.models.inputs.prepare import prepare
from headscope.models.layout import AttentionLayer, Layout
from headscope.models.memory_budget import choose_record
from headscope.sites import Head
from headscope.traces import RECORDS, Inputs, Prediction, Trace

if TYPE_CHECKING:
    from headscope.models.generation import Generation
    from headscope.traces import Comparison
    from headscope.traces.activations import Activations
    from headscope.traces.activations_difference import ActivationsDifference

BATCH_SIZE = 8


class Model:
    """A network (`module`) with its tokenizer or processor. It is not changed by being watched, and keeps no state of
    runs.

    >>> import headscope as hs
    >>> model = hs.load("builtin:gpt")
    >>> model.run("The doctor asked the nurse a question. She")
    Trace('builtin:gpt', 48 heads, tokens: main 10, record='heads')
    """

    def __init__(self, module: nn.Module, processor: Any = None, *, name: str | None = None):
        """Wrap any `nn.Module`; `processor` is its tokenizer, image processor, feature extractor or processor."""
        if not isinstance(module, nn.Module):
            raise InputError(
                f"a model is made from a torch module, got {type(module).__name__}: "
                "use headscope.load for a name or folder."
            )
        self.module, self.processor = module, processor
        self.name = name or getattr(getattr(module, "config", None), "name_or_path", "") or type(module).__name__
        self.warnings: list[str] = []
        self._names = {id(part): path for path, part in module.named_modules()}
        self._layout: Layout | None = None
        self._lock = threading.RLock()
        self._layer_hooks: list = []
        self._route()
        self._pass_hook = watch_pass(self)
        self._probe_at_load()

    def __repr__(self) -> str:
        layout = self._layout
        coverage = layout.coverage if layout else "not probed yet: the first run does it"
        return f"Model({self.name!r}, {type(self.module).__name__}, {coverage})"

    # What the model has

    @property
    def layout(self) -> Layout:
        """Where attention happens; known from the probe at load, or from the first run of a module without a config."""
        if self._layout is None:
            raise CaptureError(
                "this module was not probed yet: run it once, or call model.probe(**inputs) with inputs it takes."
            )
        return self._layout

    @property
    def has_layout(self) -> bool:
        """Whether the probe has run."""
        return self._layout is not None

    @property
    def heads(self) -> list[Head]:
        """All heads, layer by layer."""
        return self.layout.heads

    @property
    def coverage(self) -> str:
        """Which attention modules are captured, and how, in one line."""
        return self.layout.coverage

    @property
    def stacks(self) -> tuple[str, ...]:
        """The names of its stacks, in the order they run."""
        return tuple(dict.fromkeys(layer.site.stack for layer in self.layout.layers))

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, where there is one."""
        if hasattr(self.processor, "tokenizer"):
            return self.processor.tokenizer
        return self.processor if hasattr(self.processor, "convert_ids_to_tokens") else None

    @property
    def config(self) -> Any:
        """The module's configuration, if it has one."""
        return getattr(self.module, "config", None)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether it reads a source and writes a target."""
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def is_causal(self) -> bool:
        """Whether it is a language model that sees only what came before."""
        main = [layer for layer in self.layout.layers if layer.site.stack == "main" and layer.site.kind == "self"]
        return bool(main) and all(layer.is_causal for layer in main) and not self.is_encoder_decoder

    @property
    def can_write(self) -> bool:
        """Whether it generates text: a language model, or one that writes a target."""
        can = getattr(self.module, "can_generate", None)
        return self.has_layout and (self.is_causal or self.is_encoder_decoder) and can is not None and bool(can())

    @property
    def device(self) -> torch.device:
        """Where its inputs belong."""
        return next(
            (parameter.device for parameter in self.module.parameters() if parameter.device.type != "meta"),
            torch.device("cpu"),
        )

    @property
    def dtype(self) -> torch.dtype:
        """The type of its first floating-point parameter."""
        return next(
            (parameter.dtype for parameter in self.module.parameters() if parameter.is_floating_point()), torch.float32
        )

    @property
    def needs_tracer(self) -> bool:
        """Whether some of its attention is watched from outside."""
        return self._layout is None or any(layer.way == "traced" for layer in self._layout.layers)

    @property
    def has_bands(self) -> bool:
        """Whether some of its attention gives weights only."""
        return self._layout is not None and any(layer.way == "weights" for layer in self._layout.layers)

    def name_of(self, module: nn.Module) -> str | None:
        """The path of one of its modules."""
        return self._names.get(id(module))

    # Running

    def run(
        self,
        source: Any = None,
        interventions: Sequence[Intervention] = (),
        *,
        pair: str | list[str] | None = None,
        target: str | list[str] | None = None,
        image: Any = None,
        audio: Any = None,
        sampling_rate: int | None = None,
        record: Record | None = None,
        truncate: bool = False,
        keep: str = "cpu",
        budget: int | None = None,
        cancel: threading.Event | None = None,
        progress: Callable[[int, int], None] | None = None,
        **ready: Any,
    ) -> Any:
        """Run an input and give its `Trace`; a list of inputs gives a list of traces.

        `source` is a text, a pair, chat messages, an image, sound, the `inputs` of a trace, or a list of those; or
        give ready model inputs by name. `record` is how much to keep: "rows", "summary", "heads" or "full"; by
        default "heads" if that fits the memory `budget` (bytes), else "summary". `keep="device"` leaves tensors where
        the model is. `cancel` is an event that stops the run at its next attention call; `progress` is called after
        each attention layer with how many are done and how many there are.
        """
        if record is not None and record not in RECORDS:
            raise InputError(f"there is no record {record!r}: choose one of {', '.join(RECORDS)}.")
        if keep not in ("cpu", "device"):
            raise InputError(f"keep is 'cpu' or 'device', got {keep!r}.")
        interventions = intervention_list(interventions)
        options = {"record": record, "keep": keep, "budget": budget, "cancel": cancel, "progress": progress}

        if ready:
            if any(source_ is not None for source_ in (source, pair, target, image, audio)):
                raise InputError(f"give either something to read or ready model inputs ({', '.join(ready)}), not both.")
            batch = ready_inputs(self.processor, self.module, stacks=self._known_stacks(), **ready)
            if any(edit.stage == "tokens" for edit in interventions):
                passes = list(self._passes(batch.examples, interventions))
            else:
                passes = [Pass(self, batch, interventions)]  # exactly as it was given, padding and all
            traces = [trace for forward in passes for trace in self._traces(forward, **options)]
            return traces[0] if len(traces) == 1 else traces
        media = {"image": image, "audio": audio, "sampling_rate": sampling_rate}
        inputs = self.read(source, pair=pair, target=target, truncate=truncate, **media)
        examples = inputs if isinstance(inputs, list) else [inputs]
        is_written = [example.needs_target for example in examples]
        if any(is_written):
            examples = [self._with_target(example, cancel) if example.needs_target else example for example in examples]
        written = {id(example) for example, is_own in zip(examples, is_written, strict=True) if is_own}
        traces = [
            replace(trace, steps=(None, *range(len(trace.tokens["decoder"]) - 1)))
            if id(trace.inputs) in written
            else trace
            for forward in self._passes(examples, interventions)
            for trace in self._traces(forward, **options)
        ]
        if isinstance(inputs, list):
            order = {id(example): place for place, example in enumerate(examples)}
            return sorted(traces, key=lambda trace: order[id(trace.inputs)])
        return traces[0]

    def read(
        self,
        source: Any = None,
        *,
        pair: str | list[str] | None = None,
        target: str | list[str] | None = None,
        image: Any = None,
        audio: Any = None,
        sampling_rate: int | None = None,
        truncate: bool = False,
    ) -> Any:
        """What `run` would give the model, without running it: `Inputs`, or a list of them for a list."""
        return prepare(
            self.processor,
            self.module,
            source,
            pair=pair,
            target=target,
            image=image,
            audio=audio,
            sampling_rate=sampling_rate,
            truncate=truncate,
            stacks=self._known_stacks(),
        )

    def session(
        self,
        interventions: Sequence[Intervention] = (),
        *,
        record: Record | None = None,
        grad: bool = False,
        exact: bool | None = None,
        cancel: threading.Event | None = None,
    ) -> Session:
        """Watch and edit whatever runs inside: `with model.session([...], record="heads") as s: model.module(**batch)`.

        With `grad=True` gradients flow through every captured tensor and edit. `exact` forces attention whole (equal
        to the model's own eager code to the last bit) or in tiles; by default short inputs are whole.
        """
        return Session(self, interventions, record=record, grad=grad, exact=exact, cancel=cancel)

    def generate(
        self,
        source: Any = None,
        *,
        max_new_tokens: int = 40,
        interventions: Sequence[Intervention] = (),
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int = 0,
        num_beams: int = 1,
        seed: int = 0,
        record: Record | None = None,
        budget: int | None = None,
        cancel: threading.Event | None = None,
        progress: Callable[[int, int], None] | None = None,
        image: Any = None,
        audio: Any = None,
        sampling_rate: int | None = None,
        truncate: bool = False,
    ) -> "Generation":
        """Let the model write; gives the text and one trace over the whole sequence, equal to a teacher-forced run.

        `progress` hears after each token how many are written, and how many there may be.
        """
        from headscope.models.generation import generate

        media = {"image": image, "audio": audio, "sampling_rate": sampling_rate, "truncate": truncate or None}
        media_options = {key: value for key, value in media.items() if value is not None}
        options = {"do_sample": do_sample, "temperature": temperature, "top_k": top_k, "num_beams": num_beams}
        return generate(
            self,
            source,
            interventions,
            max_new_tokens=max_new_tokens,
            seed=seed,
            record=record,
            budget=budget,
            cancel=cancel,
            progress=progress,
            **options,
            **media_options,
        )

    def lens(self, trace: Trace, k: int = 5) -> list[list[list[Prediction]]]:
        """The logit lens: what the residual stream before each layer, and after the last, would predict
        [layer][token][k].
        """
        from headscope.models.logit_lens import lens_stack, read_lens

        if not self.layout.lens:
            raise NotRecordedError(f"no logit lens for {self.name}: {self.layout.no_lens}.")
        stream = trace.residuals.get(lens_stack(self))
        if stream is None:
            raise NotRecordedError(
                "the logit lens reads the residual stream: run with record='full', or use model.activations(trace)."
            )
        lens = read_lens(self, stream, k)
        return [
            [
                [
                    Prediction(lens.names[int(token_id)], int(token_id), float(logprob))
                    for token_id, logprob in zip(*both, strict=True)
                ]
                for both in zip(*place, strict=True)
            ]
            for place in zip(lens.ids, lens.logprobs, strict=True)
        ]

    def activations(
        self,
        source: Any,
        interventions: Sequence[Intervention] = (),
        *,
        stack: str | None = None,
        tokens: range | int | None = None,
        k: int = 5,
        budget: int | None = None,
        cancel: threading.Event | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> "Activations":
        """What passed through a stack, layer by layer: norms, the logit lens, MLP neurons, what each head wrote.

        `source` is a trace, which is run once more (give its `interventions` if it had any), or an input. `tokens`
        says of which the lens, neurons and heads are read: all of a short input; of one beyond 512 tokens the last 256,
        or those around a position.
        """
        from headscope.models.activations import read_around, watch

        if isinstance(source, Trace) and source.edits and not interventions:
            raise InputError(
                f"this trace was made with edits ({', '.join(source.edits)}), and it is run once more: give them as "
                "interventions=[…]."
            )
        streams = watch(self, source, interventions, stack=stack, budget=budget, cancel=cancel, progress=progress)
        length = len(streams.tokens)
        tokens = read_around(tokens, length)
        if not len(tokens) or tokens.step != 1 or not 0 <= tokens.start < tokens.stop <= length:
            raise InputError(f"tokens={tokens!r} is no range of the {length} tokens: give range(0, {length}).")
        return streams.read(self, tokens.start, len(tokens), k)

    def activations_difference(
        self,
        comparison: "Comparison",
        other: "Model | None" = None,
        *,
        interventions: tuple[Sequence[Intervention], Sequence[Intervention]] | None = None,
        stack: str | None = None,
        tokens: range | int | None = None,
        k: int = 5,
        budget: int | None = None,
        cancel: threading.Event | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> "ActivationsDifference":
        """Activations of two runs, the first minus the second, on the tokens that both have.

        `other` is the model of the second run, where that is another; both inputs are run once more, with the edits
        that their traces tell of (or `interventions`, a pair). `tokens` counts among the aligned ones.
        """
        from headscope.models.activations_difference import watch_both

        return watch_both(
            (self, other or self),
            comparison,
            interventions,
            stack=stack,
            tokens=tokens,
            k=k,
            budget=budget,
            cancel=cancel,
            progress=progress,
        )

    def probe(self, *args: Any, **inputs: Any) -> Layout:
        """Find out where the model attends, with inputs that reach all of it. Called for you at load or at the first
        run.
        """
        with self._lock:
            probe = Probe(self.module)
            was_training = self.module.training
            self.module.eval()
            try:
                probe.run(lambda: self.module(*args, **inputs))
            finally:
                self.module.train(was_training)
            names = frozenset(name for name, value in inputs.items() if value is not None)
            layout = layout_of(probe, is_encoder_decoder=self.is_encoder_decoder, inputs=names)
            for hook in self._layer_hooks:
                hook.remove()
            self._layout = layout
            self._layer_hooks = watch_layers(self)
        if layout.combined:
            self.warn(
                f"{layout.combined[0]} and its kind attend several times in one pass and combine the results: each "
                "attention is shown by itself, under a layer number of its own that is not the model's, and no pattern "
                "shown is the combined one."
            )
        return layout

    def probe_if_new(self, args: tuple, inputs: dict[str, Any]) -> bool:
        """Probe with these inputs if nothing was probed yet, or if they may reach attention that was not seen."""
        names = {name for name, value in inputs.items() if isinstance(value, Tensor)}
        known = self._layout
        if known is not None and (not known.missed or names <= known.seen_inputs):
            return False
        outer = seam.current_session.get()
        token = seam.current_session.set(None)
        try:
            self.probe(*args, **inputs)
        finally:
            seam.current_session.reset(token)
        return outer is not None

    def output_gram(self, layer: AttentionLayer) -> tuple[Tensor | None, str]:
        """W_Oᵀ·W_O of each head [head, dim, dim], which gives ‖value · W_O‖; or why it cannot be had."""
        if layer.out_projection is None:
            return None, "no output projection was found for this attention"
        weight = getattr(self.module.get_submodule(layer.out_projection), "weight", None)
        if not isinstance(weight, Tensor) or not weight.is_floating_point() or weight.ndim != 2:
            return None, "the output projection is quantised"
        if weight.device.type == "meta":
            return None, "the output projection is offloaded"
        size = layer.n_heads * layer.value_dim
        is_transposed = type(self.module.get_submodule(layer.out_projection)).__name__ == "Conv1D"
        weight = (weight.T if is_transposed else weight).detach().float()
        if weight.shape[1] != size:
            return None, "the output projection does not read the heads one after another"
        parts = weight.unflatten(1, (layer.n_heads, layer.value_dim)).transpose(0, 1)  # [head, model, dim]
        return parts.transpose(1, 2) @ parts, ""

    # Inside

    def _route(self) -> None:
        """Have Transformers call our function, where the model lets us choose."""
        if isinstance(self.module, PreTrainedModel):
            with _quiet_transformers():
                self.module.set_attn_implementation(seam.NAME)

    def _probe_at_load(self) -> None:
        inputs = probe_inputs(self.module) if self.config is not None else None
        if inputs is None:
            return
        try:
            self.probe(**{name: self.to_device(value) for name, value in inputs.items()})
        except CaptureError:
            raise
        except Exception as error:  # whatever a model raises on inputs it does not like: the first run probes it then
            self.warn(
                f"the model could not be probed with made-up inputs ({type(error).__name__}: {error}); "
                "its first run does it."
            )
            return
        taken = set(inspect.signature(type(self.module).forward).parameters)
        may_reach_more = taken & {"pixel_values", "input_features", "input_ids"} - self.layout.seen_inputs
        if self.layout.missed and not may_reach_more:  # otherwise an input of another kind may still reach the rest
            self.warn(f"not all attention is captured: {self.layout.coverage}.")

    def to_device(self, value: Tensor) -> Tensor:
        """An input where the model is, in its own precision."""
        return value.to(self.device, self.dtype if value.is_floating_point() else None)

    def warn(self, message: str) -> None:
        """Note something the user should know, and say it once."""
        if message not in self.warnings:
            self.warnings.append(message)
            warnings.warn(message, HeadscopeWarning, stacklevel=3)

    def _known_stacks(self) -> tuple[str, ...] | None:
        return self.stacks if self.has_layout else None

    def _passes(self, examples: list[Inputs], interventions: Sequence[Intervention]) -> Iterator[Pass]:
        """Inputs of like length together, so that little is padded."""
        for group in batchable(examples, self.module, self.processor):
            order = sorted(group, key=lambda place: examples[place].length)
            for first in range(0, len(order), BATCH_SIZE):
                yield Pass.of(self, [examples[place] for place in order[first : first + BATCH_SIZE]], interventions)

    def replace_tokens(self, inputs: Inputs, interventions: Sequence[Intervention]) -> Inputs:
        """The input after every `replace_token`, in its ids and in how it reads."""
        if not any(intervention.stage == "tokens" for intervention in interventions):
            return inputs
        stack = "encoder" if "encoder" in inputs.tokens else "text" if "text" in inputs.tokens else "main"
        if "input_ids" not in inputs.model_inputs or stack not in inputs.tokens:
            raise InputError("replace_token needs an input of text tokens.")
        old = inputs.model_inputs["input_ids"]
        ids = replace_ids(old, interventions, inputs.tokens[stack], self.tokenizer)
        display_tokens = [
            token if int(now) == int(was) else replace(token, id=int(now), text=self._names_of_ids()(int(now)).strip())
            for token, was, now in zip(inputs.tokens[stack], old, ids, strict=True)
        ]
        tokens = inputs.tokens | {stack: replace(inputs.tokens[stack], items=tuple(display_tokens))}
        return replace(inputs, model_inputs=inputs.model_inputs | {"input_ids": ids}, tokens=tokens)

    def _with_target(self, inputs: Inputs, cancel: threading.Event | None) -> Inputs:
        from headscope.models.generation import continue_inputs

        limit = Intake.of(self.processor, self.module).limit("target")
        most = 128 if limit is None else max(1, min(128, limit.positions - 1))
        return continue_inputs(self, inputs, max_new_tokens=most, cancel=cancel)[0]

    def _traces(
        self,
        forward: Pass,
        *,
        record: Record | None,
        keep: str,
        budget: int | None,
        cancel: threading.Event | None,
        progress: Callable[[int, int], None] | None,
    ) -> list[Trace]:
        if self.module.training:
            self.warn("the module is in training mode, so dropout changes every run: call module.eval().")
        chosen, note = choose_record(self, forward.batch, record, budget, forward.interventions)
        logits = "all" if chosen == "full" else "answers"
        passed = forward.run(record=chosen, keep=keep, logits=logits, cancel=cancel, progress=progress)
        return passed.traces([note] if note else [])

    def _names_of_ids(self):
        """Text for an id: a class label, a token, or the number itself."""
        tokenizer = self.tokenizer
        if tokenizer is None:
            return str

        def name(token_id: int) -> str:
            return tokenizer.decode([token_id], clean_up_tokenization_spaces=False)

        return name


class _quiet_transformers:  # noqa: N801  a context manager reads as a verb
    """Silence the log line that says a model does not take our function: coverage says it better."""

    def __enter__(self):
        from transformers.utils import logging

        self.level = logging.get_verbosity()
        logging.set_verbosity_error()

    def __exit__(self, *problem: object):
        from transformers.utils import logging

        logging.set_verbosity(self.level)
