"""A small random BERT that reads whatever lies between blanks as one token: any text, up to 4,096 tokens."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

HOSTILE = ["<img/src=x/onerror=document.title='taken'>", "</script><script>document.title='taken'</script>", "{{7*7}}"]
FOREIGN = ["Привет", "мир", "مرحبا", "بالعالم", "你好", "世界", "😀", "👩‍👩‍👧‍👦", "é", "naïve"]
PLAIN = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in "klmnprst"]


def save_word_model(folder: Path) -> None:
    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *HOSTILE, *FOREIGN, *PLAIN]
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        intermediate_size=64,
        max_position_embeddings=4096,
        num_hidden_layers=6,
        num_attention_heads=4,
        initializer_range=0.3,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=4096, **names).save_pretrained(folder)


def words(count: int) -> str:
    """A plain text of so many tokens, the two special ones among them."""
    return " ".join(PLAIN[(7 * index) % len(PLAIN)] for index in range(count - 2))
