"""What a model takes: kinds of input, names of its arguments, how long a text may be, how large its vocabulary is."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

from torch import Tensor, nn
from transformers import FeatureExtractionMixin, ImageProcessingMixin, PreTrainedTokenizerBase, ProcessorMixin
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

from headscope.errors import InputError
from headscope.models.inputs.display_tokens import Marks, marks_of

_KIND_OF_NAME = {"input_ids": "text", "pixel_values": "image", "input_values": "audio", "input_features": "audio"}
_SOURCE_LENGTHS = ("max_source_positions", "max_encoder_position_embeddings", "max_position_embeddings", "n_positions")
_TARGET_LENGTHS = ("max_target_positions", "max_decoder_position_embeddings", "max_position_embeddings", "n_positions")
_POSITION_TABLES = ("position_embedding", "embed_positions", "wpe", "pos_emb", "positional_embedding")
_IMAGE_TOKEN_IDS = ("image_token_id", "image_token_index", "video_token_id", "audio_token_id", "audio_token_index")


class Limit(NamedTuple):
    """The most positions a stack has; `is_hard` when the model cannot run beyond them (a table, not a rotation)."""

    positions: int
    is_hard: bool


@dataclass(frozen=True)
class Intake:
    """What one model, with its processor, takes."""

    module: nn.Module
    config: Any
    processor: Any = None
    tokenizer: PreTrainedTokenizerBase | None = None
    image_processor: Any = None
    feature_extractor: Any = None
    stacks: tuple[str, ...] | None = None

    @classmethod
    def of(cls, processor: Any, module: nn.Module, stacks: Sequence[str] | None = None) -> "Intake":
        """Sort a processor into its parts; a tokenizer or an image processor alone is one too."""
        config = getattr(module, "config", None)
        config = SimpleNamespace(**config) if isinstance(config, dict) else config or SimpleNamespace()
        parts: dict[str, Any] = {}
        if isinstance(processor, PreTrainedTokenizerBase):
            parts["tokenizer"] = processor
        elif isinstance(processor, FeatureExtractionMixin):
            parts["feature_extractor"] = processor
        elif isinstance(processor, ProcessorMixin):
            names = ("tokenizer", "image_processor", "feature_extractor")
            parts = {name: getattr(processor, name, None) for name in names} | {"processor": processor}
        elif isinstance(processor, ImageProcessingMixin):
            parts["image_processor"] = processor
        elif processor is not None:
            raise InputError(
                f"{type(processor).__name__} is not something that prepares inputs: give a Hugging Face tokenizer, "
                "image processor, feature extractor or processor, or none and ready model inputs "
                "(`run(inputs={'input_ids': …})`)."
            )
        return cls(module, config, stacks=tuple(stacks) if stacks else None, **parts)

    @property
    def name(self) -> str:
        """The model's class, for messages."""
        return type(self.module).__name__

    @cached_property
    def arguments(self) -> dict[str, inspect.Parameter]:
        """The named arguments of the model's forward."""
        named = inspect.signature(self.module.forward).parameters
        return {name: p for name, p in named.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}

    @property
    def main(self) -> str:
        """The name of the model's first input: a home-made module may call it what it likes."""
        arguments = self.arguments
        own = getattr(self.module, "main_input_name", None)
        own = own if isinstance(own, str) else next(iter(own or ()), None)  # OneFormer names two
        if own and (own in arguments or not arguments):
            return own
        known = [name for name in _KIND_OF_NAME if name in arguments]
        return known[0] if known else next(iter(arguments), "input_ids")

    @property
    def kinds(self) -> frozenset[str]:
        """Of text, image and audio, what the source may be."""
        kinds = {_KIND_OF_NAME[name] for name in self.arguments if name in _KIND_OF_NAME}
        if self.main in _KIND_OF_NAME:
            kinds.add(_KIND_OF_NAME[self.main])
        if not kinds:
            kinds |= {"image"} if self.image_processor else {"audio"} if self.feature_extractor else {"text"}
        return frozenset(kinds)

    @property
    def takes(self) -> str:
        """The kinds in words, for messages."""
        words = {"text": "text", "image": "images", "audio": "sound"}
        return " and ".join(words[kind] for kind in words if kind in self.kinds)

    def name_for(self, kind: str) -> str:
        """The argument that a kind of source goes into."""
        known = [name for name, of in _KIND_OF_NAME.items() if of == kind and name in self.arguments]
        return self.main if self.main in known or not known else known[0]

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether there is a target beside the source."""
        return bool(getattr(self.config, "is_encoder_decoder", False)) or "decoder_input_ids" in self.arguments

    @property
    def is_causal(self) -> bool:
        """Whether the model reads one text from left to right, so that a sentence pair means nothing to it."""
        if self.is_encoder_decoder:
            return False
        if getattr(self.config, "is_decoder", False) or self.name.endswith(("CausalLM", "LMHeadModel")):
            return True
        family = getattr(self.config, "model_type", None)
        if family in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and family not in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
            return True
        return any(getattr(part, "is_causal", False) is True for part in self.module.modules())

    @property
    def has_segments(self) -> bool:
        """Whether A and B of a pair are told apart by `token_type_ids` (GPT-2 takes them too, as words)."""
        if "token_type_ids" not in self.arguments:
            return False
        n_types = getattr(self.section("text"), "type_vocab_size", None)
        return n_types >= 2 if isinstance(n_types, int) else not self.is_causal

    @property
    def has_two_towers(self) -> bool:
        """Whether text and image (or sound) are both needed, as in CLIP."""
        has = [hasattr(self.module, f"get_{kind}_features") for kind in ("text", "image", "audio")]
        return has[0] and any(has[1:])

    @property
    def image_token(self) -> str | None:
        """The token that stands for the image within the text, in models that read both in one sequence."""
        if any(getattr(self.config, name, None) is not None for name in _IMAGE_TOKEN_IDS):
            return getattr(self.processor, "image_token", None)
        return None

    def section(self, part: str) -> Any:
        """The configuration of one part (text, vision, audio, encoder, decoder); the whole where it has no parts."""
        names = {
            "text": ("text_config", "encoder"),
            "vision": ("vision_config", "encoder"),
            "audio": ("audio_config", "encoder"),
        }
        for name in names.get(part, (part,)):
            own = getattr(self.config, name, None)
            if hasattr(own, "to_dict"):
                return own
        return self.config

    def stack(self, role: str) -> str:
        """The stack that reads a role's positions: the source's text, image or audio, the target, or the `keys` that an
        image is to words."""
        if role == "target":
            return "decoder"
        if self.is_encoder_decoder:
            return "encoder"
        own = {"text": "text", "image": "vision", "audio": "audio", "keys": "image"}[role]
        if len(self.kinds) > 1 and (self.stacks is None or role != "text"):
            return own  # a tower that the probe at load may not have reached
        stacks = self.stacks or ("main",)
        return own if own in stacks else "main" if "main" in stacks else stacks[0]

    @cached_property
    def marks(self) -> Marks | None:
        """The special tokens, found once for all inputs of a call."""
        return None if self.tokenizer is None else marks_of(self.tokenizer)

    def limit(self, role: str) -> Limit | None:
        """How many positions there are for the text of a role, or None where any length will do."""
        if role not in self._limits:
            self._limits[role] = self._limit(role)
        return self._limits[role]

    @cached_property
    def _limits(self) -> dict[str, Limit | None]:
        return {}

    def _limit(self, role: str) -> Limit | None:
        is_target = role == "target"
        config = self.section("decoder" if is_target else "text")
        block = getattr(config, "block_size", None)
        named = (getattr(config, name, None) for name in (_TARGET_LENGTHS if is_target else _SOURCE_LENGTHS))
        stated = next((number for number in (*named, block) if isinstance(number, int) and number > 0), None)
        tables = self._position_tables("decoder" if is_target else "encoder")
        if tables:
            table = tables[0]
            if table.padding_idx is not None:
                return Limit(table.num_embeddings - table.padding_idx - 1, True)
            return Limit(stated or table.num_embeddings, True)
        relative = ("relative_attention_num_buckets", "relative_attention", "alibi")
        if stated is None or any(getattr(config, name, None) for name in relative):
            return None
        is_rotary = any(hasattr(config, name) for name in ("rope_parameters", "rope_theta", "rotary_dim"))
        return Limit(stated, not is_rotary or self._has_fixed_rotations)

    @property
    def _has_fixed_rotations(self) -> bool:
        """Whether the rotations are a table of fixed length, as in GPT-J and CodeGen: they end where it ends."""
        return any(isinstance(getattr(part, "embed_positions", None), Tensor) for part in self.module.modules())

    def beyond_training(self, role: str, n_tokens: int) -> str:
        """A warning for an input that is longer than a model without a table of positions was trained on, else ""."""
        limit = self.limit(role)
        if limit is None or limit.is_hard or n_tokens <= limit.positions:
            return ""
        what = "target" if role == "target" else "input"
        return (
            f"the {what} is {n_tokens:,} tokens long, and {self.name} was trained on at most {limit.positions:,}: its "
            "attention beyond those may be unlike what it does within them."
        )

    @cached_property
    def _embeddings(self) -> list[tuple[str, nn.Embedding]]:
        """Every embedding of the model, by its path; found once for all inputs of a call."""
        return [(path, part) for path, part in self.module.named_modules() if isinstance(part, nn.Embedding)]

    def _position_tables(self, side: str) -> list[nn.Embedding]:
        tables = []
        for path, part in self._embeddings:
            parts = path.split(".")
            if not parts[-1].startswith(_POSITION_TABLES):
                continue
            is_other = ({"encoder", "decoder"} - {side}).intersection(parts) and self.is_encoder_decoder
            if not is_other and not any(word in path for word in ("vision", "visual", "image")):
                tables.append(part)
        return tables

    def vocabulary(self, role: str) -> int | None:
        """How many token ids there are, where the model lets us know."""
        owner = self.module
        if role == "target":
            owner = getattr(self.module, "decoder", None) or self.module
        parts: tuple[Any, ...] = (owner, self.module)
        for part in parts:
            try:
                table = part.get_input_embeddings()
            except (AttributeError, NotImplementedError):
                continue
            if isinstance(table, nn.Embedding):
                return table.num_embeddings
        size = getattr(self.section("decoder" if role == "target" else "text"), "vocab_size", None)
        return size if isinstance(size, int) else None

    @property
    def image_ids(self) -> set[int]:
        """Ids of tokens that stand for an image."""
        numbers = (getattr(self.config, name, None) for name in ("image_token_id", "image_token_index"))
        return {number for number in numbers if isinstance(number, int)}

    @property
    def placeholder_ids(self) -> set[int]:
        """Ids that stand for an image or a sound and may lie outside the vocabulary."""
        return {number for name in _IMAGE_TOKEN_IDS if isinstance(number := getattr(self.config, name, None), int)}

    @property
    def pad_id(self) -> int:
        """The id that fills up a batch; any will do where the mask hides it."""
        stated = (getattr(self.section("text"), "pad_token_id", None), getattr(self.config, "pad_token_id", None))
        own = self.tokenizer.pad_token_id if self.tokenizer is not None else None
        return next((number for number in (*stated, own) if isinstance(number, int) and number >= 0), 0)
