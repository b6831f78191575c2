"""Small models with dropout, and small tasks for them."""

import torch
import transformers as hf
from tiny_models import SENTENCES, tiny_bert_tokenizer, tiny_tokenizer

import headscope as hs
from headscope import tasks
from headscope.corpora import Example
from headscope.corpora.conll import join_words

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
VOCABULARY = {"vocab_size": 128, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
PAIRS = [(text, " ".join(reversed(text.split()))) for text in SENTENCES]


def wrap(module: torch.nn.Module, tokenizer) -> hs.Model:
    return hs.Model(module.eval(), tokenizer, verify=False)


def gpt(seed: int = 0) -> hs.Model:
    torch.manual_seed(seed)
    config = hf.GPT2Config(n_positions=24, n_embd=16, n_layer=2, n_head=2, **VOCABULARY)
    return wrap(hf.GPT2LMHeadModel(config), tiny_tokenizer())


def marian(seed: int = 0) -> hs.Model:
    torch.manual_seed(seed)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    sizes |= {"d_model": 16, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 48}
    config = hf.MarianConfig(**VOCABULARY, **sizes, decoder_start_token_id=1, forced_eos_token_id=None)
    return wrap(hf.MarianMTModel(config), tiny_tokenizer())


def bert(kind: str = "MaskedLM", seed: int = 0, **settings) -> hs.Model:
    torch.manual_seed(seed)
    config = hf.BertConfig(vocab_size=len(tiny_bert_tokenizer()), max_position_embeddings=32, **SIZES, **settings)
    return wrap(getattr(hf, f"BertFor{kind}")(config), tiny_bert_tokenizer())


def language_task(**options) -> tasks.LearningTask:
    return tasks.language_modelling(train=[*SENTENCES], dev=[*SENTENCES[:2]], **options)


def tagged(name: str, words: str, tags: str, pos: str | None = None) -> Example:
    text, spans = join_words(words.split())
    columns = {"chunk": tuple(tags.split())} | ({} if pos is None else {"pos": tuple(pos.split())})
    return Example(name, text=text, words=tuple(words.split()), spans=spans, tags=columns)
