"""The models that can be chosen: what may be loaded, what is, and what the page is told about each."""

import gc
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from headscope.errors import HeadscopeError
from headscope.models import AttentionLayer, Model, builtin_models, load
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.decoder_start import decoding_choices
from headscope.models.loading import BUILTIN
from headscope.models.spans import answers_with_spans
from headscope.server.errors import Refused
from headscope.server.log import logger
from headscope.server.model_folders import ModelFolder, model_folders
from headscope.server.options import Options
from headscope.server.presets import builtin_presets, media_presets, presets_of
from headscope.server.sweeps import PREFIX, Sweeps
from headscope.tasks.language_tasks import MaskedLanguageModelling
from headscope.views.contract import ModelProps

HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


class Catalogue:
    """Built-in models, those given at the start, and others as far as the person who started the server allows.

    A model is loaded in the thread of runs only; the event loop reads what is there.
    """

    def __init__(self, options: Options):
        self.options = options
        self.builtin = builtin_models()
        self.sweeps = Sweeps(options.sweeps, self.canonical)
        own = [self.canonical(name) for name in options.models]
        self.startup_models = list(dict.fromkeys([*own, *self.sweeps.models]))
        # What the page wrote it may read again.
        roots = [*options.allow, *([options.save_to] if options.save_to else [])]
        self._roots = [root.expanduser().resolve() for root in roots]
        self.folders: dict[str, ModelFolder] = {}
        self._models: OrderedDict[str, Model] = OrderedDict()
        self._known: dict[str, ModelProps] = {}
        self.look_for_folders()

    @property
    def default(self) -> str:
        """The model that the page opens with."""
        own = "builtin:gpt" if "builtin:gpt" in self.builtin else next(iter(self.builtin), "")
        return self.startup_models[0] if self.startup_models else own

    @staticmethod
    def canonical(name: str) -> str:
        """One name for each model: a folder's is its path without links and dots."""
        if name.startswith(("builtin:", PREFIX)) or not _is_path(name):
            return name
        return str(Path(name).expanduser().resolve())

    def resolve(self, name: str) -> str:
        """The model's one name, if it may be loaded here; refused otherwise, whether it exists or not."""
        if not name.strip() or "\0" in name or len(name) > 1000:
            raise Refused(422, "UnknownModel", "a model is named by a built-in name, a folder or a hub id.")
        try:
            canonical, is_path = self.canonical(name), _is_path(name)
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown user's home, a strange name
            raise self._folder_refusal(name) from error
        if canonical in self.startup_models or canonical in self.builtin:
            return canonical
        if self.sweeps.has(canonical):
            return canonical
        if canonical.startswith(PREFIX):
            names = ", ".join(self.sweeps.names()) or "none: start it with --sweep DIR"
            raise Refused(404, "UnknownModel", f"there is no {canonical}: the pruned models are {names}.")
        if canonical.startswith("builtin:"):
            message = f"there is no {canonical}: the built-in models are {', '.join(self.builtin)}."
            raise Refused(404, "UnknownModel", message)
        if is_path and any(Path(canonical).is_relative_to(root) for root in self._roots):
            return canonical
        # Whether a folder is there is nobody's business: a name that may be a hub's is refused as one.
        if _must_be_path(name):
            raise self._folder_refusal(name)
        if not HUB_ID.fullmatch(name) or ".." in name:
            raise Refused(422, "UnknownModel", f"{name!r} is neither a built-in model, a folder nor a hub id.")
        if not self.options.allow_hub:
            raise Refused(
                403,
                "HubNotAllowed",
                f"{name} would be fetched from the hub, which this server was not started for.",
                "Start it with --allow-hub, or with the model: headscope serve " + name,
            )
        if is_path:
            raise self._folder_refusal(name)  # `load` would read it
        return name

    def _folder_refusal(self, name: str) -> Refused:
        roots = ", ".join(str(root) for root in self._roots)
        permission = f"it loads models from {roots}" if roots else "it loads no folders"
        return Refused(
            403,
            "FolderNotAllowed",
            f"this server may not read {name!r}: {permission}.",
            "Start it with --allow DIR to let it load models under that folder.",
        )

    def is_loaded(self, name: str) -> bool:
        """Whether a run could start at once."""
        return name in self._models

    def load(self, name: str) -> Model:
        """The model, loaded if it is not yet; called in the thread of runs."""
        if name in self._models:
            self._models.move_to_end(name)
            return self._models[name]
        begun = time.monotonic()
        model = self.sweeps.load(name, self.load) if self.sweeps.has(name) else load(name)
        self._known[name] = self._model_props(name, model)
        self._models[name] = model
        others = [name for name in self._models if name not in self.builtin and name not in self.startup_models]
        for other in others[: max(0, len(others) - self.options.limits.other_models)]:
            del self._models[other]
        level = logging.DEBUG if name in self.builtin else logging.INFO
        logger.log(level, "loaded %s in %.1f s", name, time.monotonic() - begun)
        return model

    def load_builtin(self) -> None:
        """Load what is small and always there, the default first, so that the page finds it ready."""
        for name in sorted(self.builtin, key=lambda name: name != self.default):
            try:
                self.load(name)
            except HeadscopeError as error:
                logger.warning("%s could not be loaded: %s", name, error)
        # What is loaded by now stays. To go through all of it again takes each garbage collection 0.2 s.
        gc.collect()
        gc.freeze()

    def props(self, name: str) -> ModelProps:
        """What the page is told about one model."""
        known = self._known.get(name)
        if known is not None and name in self._models:
            return known
        if known is not None:
            return replace(known, is_loaded=False, covers="", coverage="", max_tokens=None)
        presets = builtin_presets(name) if name in self.builtin else []
        kinds = list(self.folders[name].kinds) if name in self.folders else []
        return ModelProps(name, self._about(name), False, kinds, "", "", "", None, presets)

    def all(self) -> list[ModelProps]:
        """Every model that can be chosen: those given at the start, the built-in ones, others that were loaded, and
        those in the folders that may be read."""
        names = [self.default, *self.startup_models, *self.builtin, *self._models, *self.folders]
        return [self.props(name) for name in dict.fromkeys(names)]

    def look_for_folders(self) -> None:
        """List the models again that lie in the folders that may be read; the page may have written one."""
        self.folders = {str(folder.path): folder for folder in model_folders(self._roots)}

    def _model_props(self, name: str, model: Model) -> ModelProps:
        intake = Intake.of(model.processor, model.module, model.stacks if model.has_layout else None)
        kinds = kinds_of(intake)
        limit = intake.limit("text") if "text" in intake.kinds else None
        is_own = name in self.builtin
        presets = (
            [*builtin_presets(name), *media_presets(kinds)]
            if is_own
            else presets_of(
                intake,
                kinds,
                can_write=model.can_write,
                fills_masks=MaskedLanguageModelling.fits(model),
                has_spans=answers_with_spans(model),
            )
        )
        languages, tasks = decoding_choices(model.module)
        return ModelProps(
            name,
            self._about(name),
            True,
            kinds,
            shape_of(model.layout.layers) if model.has_layout else "",
            model.layout.covers if model.has_layout else "its layers are found by its first run",
            model.coverage if model.has_layout else "not probed yet",
            None if limit is None else limit.positions,
            presets,
            writes=model.can_write,
            languages=languages,
            tasks=tasks,
        )

    def _about(self, name: str) -> str:
        """The description on the model's card."""
        if self.sweeps.has(name):
            return self.sweeps.about(name)
        if not name.startswith("builtin:"):
            return self.folders[name].about if name in self.folders else ""
        card = BUILTIN / name.removeprefix("builtin:") / "README.md"
        match = re.search(r"^description: *\"?(.*?)\"?$", card.read_text(encoding="utf-8"), re.MULTILINE)
        return match.group(1) if match else ""


def kinds_of(intake: Intake) -> list[str]:
    """The forms of input that the page can offer for a model.

    "text-image" takes both; "target" says that what is written may be given beside an image or a sound.
    """
    kinds: list[str] = []
    has_tokenizer = intake.tokenizer is not None
    if "image" in intake.kinds and has_tokenizer and (intake.has_two_towers or intake.image_token is not None):
        kinds.append("text-image")
    if "text" in intake.kinds and intake.tokenizer is not None and not intake.has_two_towers:
        if intake.is_encoder_decoder:
            kinds.append("source-target")
        else:
            kinds.append("text")
            if not intake.is_causal and len(intake.kinds) == 1:
                kinds.append("pair")
        if any(getattr(processor, "chat_template", None) for processor in (intake.tokenizer, intake.processor)):
            kinds.append("chat")
    if intake.has_two_towers or "text-image" in kinds:
        return kinds
    kinds += [kind for kind in ("image", "audio") if kind in intake.kinds]
    is_writer = intake.is_encoder_decoder and "text" not in intake.kinds and has_tokenizer
    return kinds + (["target"] if is_writer else [])


def shape_of(layers: Iterable[AttentionLayer]) -> str:
    """Layers × heads, a stack at a time: "6 × 8", or "encoder 6 × 8, decoder 6 × 8, cross 6 × 8"."""
    heads: dict[str, list[int]] = {}
    for layer in layers:
        name = layer.site.stack if layer.site.kind == "self" else "cross"
        heads.setdefault(name, []).append(layer.n_heads)
    shapes = {
        name: f"{len(counts)} × {min(counts)}" + (f"–{max(counts)}" if max(counts) > min(counts) else "")
        for name, counts in heads.items()
    }
    return (
        next(iter(shapes.values()))
        if len(shapes) == 1
        else ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    )


def _is_path(name: str) -> bool:
    """Whether a name would be read as a folder, as `headscope.load` does."""
    return _must_be_path(name) or Path(name).exists()


def _must_be_path(name: str) -> bool:
    """Whether a name cannot be a hub's."""
    return name.startswith((".", "/", "~", "\\")) or name.count("/") > 1 or "\\" in name or ":" in name
