"""Taggers of one head whose weights are set by hand: the tag of a word is the letter that the head looks at."""

import random

import torch
import transformers as hf
from tiny_models import tiny_bert_tokenizer
from torch import nn

import headscope as hs

N_LETTERS = 26
LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WIDTH, _SPECIAL = 64, 26
# Where a token writes what it is, and where attention writes what it saw.
_OWN, _SEEN = 0, 32
# LayerNorm of a single 1 among zeros leaves this where the 1 was.
_NORMED = (_WIDTH - 1) ** 0.5


def tagger(*, n_layers: int = 1, n_heads: int = 1) -> tuple[hf.BertForTokenClassification, object]:
    """A tagger with random weights, and its tokenizer, which spells letters."""
    tokenizer = tiny_bert_tokenizer()
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=_WIDTH,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        intermediate_size=8,
        max_position_embeddings=40,
        num_labels=N_LETTERS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return hf.BertForTokenClassification(config).eval(), tokenizer


def attention_explains(*, is_ignored: bool = False) -> hs.Model:
    """The head looks at letters by how late they come in the alphabet, and the tag is what it saw, and nothing else.

    Ignored: the same attention, but the tag is the word's own letter.
    """
    module, tokenizer = tagger()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.fill_(1.0 if "LayerNorm.weight" in name else 0.0)
        embedding = module.bert.embeddings.word_embeddings.weight
        embedding[:, _OWN + _SPECIAL] = 1.0
        for place, token in enumerate(tokenizer.convert_tokens_to_ids(list(LETTERS))):
            embedding[token] = nn.functional.one_hot(torch.tensor(_OWN + place), _WIDTH).float()
        layer = module.bert.encoder.layer[0].attention
        layer.self.query.bias[0] = _WIDTH**0.5
        layer.self.key.weight[0, :N_LETTERS] = torch.linspace(0.0, 4.0, N_LETTERS) / _NORMED
        layer.self.key.weight[0, _SPECIAL] = -40.0 / _NORMED
        for place in range(N_LETTERS):
            layer.self.value.weight[_SEEN + place, _OWN + place] = 1 / _NORMED
            module.classifier.weight[place, (_OWN if is_ignored else _SEEN) + place] = 2.0 if is_ignored else 15.0
        layer.output.dense.weight.copy_(torch.eye(_WIDTH))
    return hs.Model(module, tokenizer, name="by hand")


def random_weights() -> hs.Model:
    """Two layers of two heads as Transformers draws them."""
    module, tokenizer = tagger(n_layers=2, n_heads=2)
    return hs.Model(module, tokenizer, name="random")


def texts(n: int = 12, length: int = 6) -> list[str]:
    """Letters in random order, none of them twice in a text."""
    draw = random.Random(0)
    return [" ".join(draw.sample(LETTERS, length)) for _ in range(n)]
