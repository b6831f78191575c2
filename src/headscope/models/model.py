"""A model: a network, what reads its inputs, and the ways to run it and watch it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from headscope.arguments import instance, whole_number
from headscope.choices import Keep, Record
from headscope.errors import InputError, NotRecordedError
from headscope.interventions import Intervention
from headscope.models.capture.edit_checks import intervention_list
from headscope.models.capture.session import Session
from headscope.models.example_traces import Recording, example_traces, ready_traces
from headscope.models.inputs.prepare import check_alone, prepare
from headscope.models.probed_module import ProbedModule
from headscope.models.run_options import MediaOptions, RecordOptions, RunOptions, Single, Source
from headscope.progress import Cancel, OnProgress
from headscope.traces import Inputs, Prediction, Trace

if TYPE_CHECKING:
    from headscope.models.generation import Generation
    from headscope.traces import Comparison
    from headscope.traces.activations import Activations
    from headscope.traces.activations_difference import ActivationsDifference

_Single = TypeVar("_Single", bound=Single)


class Model(ProbedModule):
    """A network (`module`) with its tokenizer or processor. It is not changed by being watched, and keeps no state of
    runs.

    >>> import headscope as hs
    >>> model = hs.load("builtin:gpt")
    >>> model.run("The doctor asked the nurse a question. She")
    Trace('builtin:gpt', 48 heads, tokens: main 10, record='heads')
    """

    @overload
    def run(
        self,
        source: Source = None,
        interventions: Sequence[Intervention] = (),
        *,
        pair: str | None = None,
        target: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Trace: ...

    @overload
    def run(
        self,
        source: list[_Single],
        interventions: Sequence[Intervention] = (),
        *,
        pair: list[str] | None = None,
        target: list[str] | None = None,
        **options: Unpack[RunOptions],
    ) -> list[Trace]: ...

    @overload
    def run(
        self,
        source: None = None,
        interventions: Sequence[Intervention] = (),
        *,
        inputs: Mapping[str, Any],
        **options: Unpack[RecordOptions],
    ) -> Trace | list[Trace]: ...

    def run(
        self,
        source: Any = None,
        interventions: Sequence[Intervention] = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        pair: str | list[str] | None = None,
        target: str | list[str] | None = None,
        image: Any = None,
        audio: Any = None,
        sampling_rate: int | None = None,
        language: str | None = None,
        task: str | None = None,
        truncate: bool = False,
        record: Record | None = None,
        keep: Keep = "cpu",
        budget: int | None = None,
        cancel: Cancel | None = None,
        progress: OnProgress | None = None,
    ) -> Trace | list[Trace]:
        """Run an input and give its `Trace`; a list of inputs gives a list of traces.

        `source` is a text, a pair, chat messages, an image, sound, the `inputs` of a trace, or a list of those.
        `inputs` are instead ready tensors by name, as the module's forward takes them; several rows give a list.
        `truncate` cuts an input at the model's length. Without it, an input that is longer than a table of positions
        is an error; with rotary positions the model runs beyond its length, with a warning. `language` and `task`
        ("transcribe" or "translate") are for Whisper, which by default detects the language and transcribes.

        `record` is how much to keep: "rows", "summary", "heads" or "full"; by default "heads" if that fits the memory
        `budget` (bytes; by default half of what is free), else "summary". `keep="device"` leaves tensors where the
        model is. `cancel` is an event that stops the run at its next attention call; `progress` is called after each
        attention layer with how many are done and how many there are.
        """
        edits = intervention_list(interventions)
        recording = Recording(record, keep, budget, cancel, progress)
        if inputs is not None:
            check_alone(inputs, source=source, pair=pair, target=target, image=image, audio=audio)
            traces = ready_traces(self, inputs, edits, recording)
            return traces[0] if len(traces) == 1 else traces
        media = {"image": image, "audio": audio, "sampling_rate": sampling_rate, "truncate": truncate}
        media |= {"language": language, "task": task}
        examples: Inputs | list[Inputs] = self.read(source, **{"pair": pair, "target": target}, **media)
        if isinstance(examples, list):
            return example_traces(self, examples, edits, recording)
        return example_traces(self, [examples], edits, recording)[0]

    @overload
    def read(
        self,
        source: Source = None,
        *,
        pair: str | None = None,
        target: str | None = None,
        **options: Unpack[MediaOptions],
    ) -> Inputs: ...

    @overload
    def read(
        self,
        source: list[_Single],
        *,
        pair: list[str] | None = None,
        target: list[str] | None = None,
        **options: Unpack[MediaOptions],
    ) -> list[Inputs]: ...

    @overload
    def read(self, source: None = None, *, inputs: Mapping[str, Any]) -> Inputs | list[Inputs]: ...

    def read(
        self,
        source: Any = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        pair: str | list[str] | None = None,
        target: str | list[str] | None = None,
        image: Any = None,
        audio: Any = None,
        sampling_rate: int | None = None,
        language: str | None = None,
        task: str | None = None,
        truncate: bool = False,
    ) -> Inputs | list[Inputs]:
        """What `run` would give the model, without running it: `Inputs`, or a list of them for a list."""
        return prepare(
            self.processor,
            self.module,
            source,
            inputs=inputs,
            pair=pair,
            target=target,
            image=image,
            audio=audio,
            sampling_rate=sampling_rate,
            language=language,
            task=task,
            truncate=truncate,
            stacks=self.stacks if self.has_layout else None,
        )

    def session(
        self,
        interventions: Sequence[Intervention] = (),
        *,
        record: Record | None = None,
        grad: bool = False,
        exact: bool | None = None,
        cancel: Cancel | None = None,
    ) -> Session:
        """Watch and edit whatever runs inside: `with model.session([...], record="heads") as s: model.module(**batch)`.

        With `grad=True` gradients flow through every captured tensor and edit. `exact` forces attention whole (equal
        to the model's own eager code to the last bit) or in tiles; by default short inputs are whole.
        """
        return Session(self, interventions, record=record, grad=grad, exact=exact, cancel=cancel)

    def generate(
        self,
        source: Source = None,
        interventions: Sequence[Intervention] = (),
        *,
        max_new_tokens: int = 40,
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int = 0,
        num_beams: int = 1,
        seed: int = 0,
        record: Record | None = None,
        budget: int | None = None,
        cancel: Cancel | None = None,
        progress: OnProgress | None = None,
        image: Any = None,
        audio: Any = None,
        sampling_rate: int | None = None,
        language: str | None = None,
        task: str | None = None,
        truncate: bool = False,
    ) -> "Generation":
        """Let the model write; gives the text and one trace over the whole sequence, equal to a teacher-forced run.

        `progress` hears after each token how many are written, and how many there may be.
        """
        from headscope.models.generation import generate

        media: MediaOptions = {"image": image, "audio": audio, "sampling_rate": sampling_rate, "truncate": truncate}
        media |= {"language": language, "task": task}
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
            **media,
        )

    def __reduce__(self) -> Any:
        raise InputError(
            "a Model is not pickled: hand on its name or folder and load it there, or a function that makes it."
        )

    def lens(self, trace: Trace, k: int = 5) -> list[list[list[Prediction]]]:
        """The logit lens: what the residual stream before each layer, and after the last, would predict
        [layer][token][k].
        """
        from headscope.models.logit_lens import lens_stack, read_lens

        if not self.layout.lens:
            raise NotRecordedError(f"no logit lens for {self.name}: {self.layout.no_lens}.")
        instance(trace, Trace, "the trace of a lens", "model.run gives one")
        stream = trace.residuals.get(lens_stack(self))
        if stream is None:
            raise NotRecordedError(
                "the logit lens reads the residual stream: run with record='full', or use model.activations(trace)."
            )
        lens = read_lens(self, stream, whole_number(k, "k"))
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
        cancel: Cancel | None = None,
        progress: OnProgress | None = None,
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
        cancel: Cancel | None = None,
        progress: OnProgress | None = None,
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
