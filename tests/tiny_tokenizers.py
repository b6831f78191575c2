"""Small tokenizers of the usual kinds, trained in a moment on two sentences."""

import functools

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SENTENCES = [
    "The doctor asked the nurse a question. She said that she did not know the answer.",
    "A small dog sat on the mat and looked at the cat.",
]


@functools.cache
def byte_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE, as GPT-2's: an emoji is four tokens, and there is no unknown token."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>")


@functools.cache
def piece_tokenizer() -> PreTrainedTokenizerFast:
    """Lower-casing WordPiece, as BERT's."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    backend.train_from_iterator(SENTENCES, trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names
    )


@functools.cache
def word_tokenizer(start: bool = False) -> PreTrainedTokenizerFast:
    """Whole words and an end, as a translator's; with a start, as Whisper's."""
    words = ["<pad>", "<s>", "</s>", "<unk>", "the", "doctor", "asked", "nurse", "a", "."]
    backend = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>" if start else "$A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )
