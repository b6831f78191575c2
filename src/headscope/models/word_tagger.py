"""A tagger of words with frozen vectors: one pre-norm layer of attention. What `headscope study chunking` trains.

`loading.py` registers it with Transformers, so that a folder with one opens like any other model, in the workbench too.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTokenClassification,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_outputs import TokenClassifierOutput

from headscope import files

# The first words of a vocabulary, in this order.
_PAD, _BEGIN, _END, _UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
_WEIGHTS = ("projection", "query", "key", "value", "output", "first", "second", "classifier")


class WordTaggerConfig(PreTrainedConfig):
    """The sizes of a word tagger, and the names of its tags."""

    model_type = "headscope_word_tagger"

    def __init__(
        self,
        vocab_size: int = 8,
        input_size: int = 300,
        hidden_size: int = 128,
        num_attention_heads: int = 4,
        num_hidden_layers: int = 1,
        max_position_embeddings: int = 512,
        **settings: Any,
    ):
        self.vocab_size, self.input_size, self.hidden_size = vocab_size, input_size, hidden_size
        self.num_attention_heads, self.num_hidden_layers = num_attention_heads, num_hidden_layers
        self.max_position_embeddings = max_position_embeddings
        for name, number in (("pad_token_id", 0), ("bos_token_id", 1), ("eos_token_id", 2)):
            settings.setdefault(name, number)
        super().__init__(**settings)


class WordTaggerAttention(nn.Module):
    """Self-attention without biases."""

    def __init__(self, config: WordTaggerConfig):
        super().__init__()
        width = config.hidden_size
        self.n_heads = config.num_attention_heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, hidden: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """What the heads write together [batch, word, width], and the pattern [batch, head, query, key]."""
        shape = (*hidden.shape[:2], self.n_heads, -1)
        query, key, value = (
            linear(hidden).view(shape).transpose(1, 2) for linear in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask.bool()[:, None, None, :], torch.finfo(scores.dtype).min)
        pattern = scores.softmax(-1)
        return self.output((pattern @ value).transpose(1, 2).reshape(hidden.shape)), pattern


class WordTaggerLayer(nn.Module):
    """Attention and two linears, each with ReLU after it, both with a layer norm before and a residual around."""

    def __init__(self, config: WordTaggerConfig):
        super().__init__()
        width = config.hidden_size
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = WordTaggerAttention(config)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The stream after the layer, and the pattern."""
        written, pattern = self.attention(self.attention_norm(hidden), mask)
        hidden = hidden + written
        return hidden + self.second(self.first(self.feed_forward_norm(hidden)).relu()).relu(), pattern


class WordTaggerForTokenClassification(PreTrainedModel):
    """A class for every word."""

    config_class = WordTaggerConfig
    base_model_prefix = "tagger"

    def __init__(self, config: WordTaggerConfig):
        super().__init__(config)
        self.vectors = nn.Embedding(config.vocab_size, config.input_size, padding_idx=0)
        self.vectors.requires_grad_(False)
        self.projection = nn.Linear(config.input_size, config.hidden_size, bias=False)
        self.layers = nn.ModuleList(WordTaggerLayer(config) for _ in range(config.num_hidden_layers))
        self.final_norm = nn.LayerNorm(config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, len(config.id2label or ()))
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Torch's own."""

    def get_input_embeddings(self) -> nn.Embedding:
        """The frozen word vectors."""
        return self.vectors

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **_: Any,
    ) -> TokenClassifierOutput:
        """Logits [batch, word, class], with hidden states and patterns."""
        embedded = self.vectors(input_ids) if inputs_embeds is None else inputs_embeds
        hidden = self.projection(embedded)
        hidden = hidden + _timing_signal(hidden.shape[1], hidden.shape[2], hidden.device).to(hidden.dtype)
        states, patterns = [hidden], []
        for layer in self.layers:
            hidden, pattern = layer(hidden, attention_mask)
            states.append(hidden)
            patterns.append(pattern)
        logits = self.classifier(self.final_norm(hidden))
        return TokenClassifierOutput(logits=logits, hidden_states=tuple(states), attentions=tuple(patterns))


def save_word_tagger(
    folder: Path,
    parameters: Mapping[str, Tensor],
    vectors: Tensor,
    words: Sequence[str],
    tags: Sequence[str],
    *,
    n_heads: int,
) -> None:
    """Write a trained tagger as a folder that `headscope.load` opens, with a tokenizer of its words.

    `parameters` are those of the study's stacked taggers, of one model: weights are [in, out].
    """
    labels = dict(enumerate(tags))
    config = WordTaggerConfig(
        vocab_size=len(words),
        input_size=vectors.shape[1],
        hidden_size=parameters["projection.weight"].shape[1],
        num_attention_heads=n_heads,
        id2label=labels,
        label2id={tag: number for number, tag in labels.items()},
        architectures=[WordTaggerForTokenClassification.__name__],
    )
    module = WordTaggerForTokenClassification(config)
    module.load_state_dict(
        {"vectors.weight": vectors} | {_place(name): _turn(name, parameters[name]) for name in parameters}
    )
    with files.new_folder(folder) as partial:
        module.save_pretrained(partial)
        word_tokenizer(words).save_pretrained(partial)


def word_tokenizer(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """Whole words between spaces, in lower case, with a beginning and an end."""
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token=_UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{_BEGIN} $A {_END}",
        special_tokens=[(token, words.index(token)) for token in (_BEGIN, _END)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=_PAD, bos_token=_BEGIN, eos_token=_END, unk_token=_UNKNOWN,
        model_max_length=512,
    )  # fmt: skip


def _place(name: str) -> str:
    """Where a parameter of the stacked tagger lies in the module."""
    part = name.partition(".")[0]
    if part in ("query", "key", "value", "output"):
        return f"layers.0.attention.{name}"
    in_layer = part in ("attention_norm", "feed_forward_norm", "first", "second")
    return f"layers.0.{name}" if in_layer else name


def _turn(name: str, parameter: Tensor) -> Tensor:
    """Weights of linears as torch has them, [out, in]."""
    is_linear = name.partition(".")[0] in _WEIGHTS and name.endswith("weight")
    return parameter.T.contiguous() if is_linear else parameter


def _timing_signal(length: int, width: int, device: torch.device) -> Tensor:
    half = width // 2
    rates = torch.exp(torch.arange(half, device=device) * (-math.log(10_000.0) / max(1, half - 1)))
    angles = torch.arange(length, device=device).unsqueeze(1) * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


def register_word_tagger() -> None:
    """Let Transformers' Auto classes open the folders that `save_word_tagger` wrote."""
    AutoConfig.register(WordTaggerConfig.model_type, WordTaggerConfig, exist_ok=True)
    for auto_class in (AutoModel, AutoModelForTokenClassification):
        auto_class.register(WordTaggerConfig, WordTaggerForTokenClassification, exist_ok=True)
