"""Builds the data pack: cleaned texts, splits and tokenizers, compressed so that it travels to a GPU machine.

    python training/prepare.py --data ../shared/data --pack .train/pack

Texts travel as text: compressed text is half the size of compressed token ids, and a training machine
tokenises all of it in seconds.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path

from corpora import DOCUMENT_END, SPLITS, language_model_documents, translation_pairs, write_xz
from sentence_pairs import sentence_pairs, tatoeba_sentences
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

GPT_VOCABULARY = 7680
BERT_VOCABULARY = 7168
TRANSLATE_VOCABULARY = 6016


def lines_of(documents: list[str]) -> Iterator[str]:
    for document in documents:
        yield from document.split("\n")


def gpt_tokenizer(documents: list[str]) -> Tokenizer:
    """Byte-level BPE as in GPT-2. Every text starts with <|endoftext|>: a place to rest attention on."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=GPT_VOCABULARY,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines_of(documents), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
    )
    return tokenizer


def bert_tokenizer(documents: list[str]) -> Tokenizer:
    """Lower-case WordPiece as in bert-base-uncased, smaller."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=BERT_VOCABULARY,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        limit_alphabet=200,
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines_of(documents), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def translate_tokenizer(sentences: Iterator[str]) -> Tokenizer:
    """One BPE for both languages over visible characters: byte-level pieces of Cyrillic could not be read."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(prepend_scheme="always"),
            pre_tokenizers.Punctuation("isolated"),
            pre_tokenizers.Digits(individual_digits=False),
        ]
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=TRANSLATE_VOCABULARY,
        special_tokens=["</s>", "<unk>", "<pad>"],
        limit_alphabet=260,
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 0)])
    return tokenizer


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments.add_argument("--pack", type=Path, default=Path(".train/pack"))
    options = arguments.parse_args()
    data, pack = options.data, options.pack
    pack.mkdir(parents=True, exist_ok=True)

    splits, _, _ = tatoeba_sentences(data)
    documents = {split: language_model_documents(data, splits, split) for split in SPLITS}
    gpt_tokenizer(documents["train"]).save(str(pack / "gpt_tokenizer.json"), pretty=False)
    bert_tokenizer(documents["train"]).save(str(pack / "bert_tokenizer.json"), pretty=False)
    translations = list(translation_pairs(data))
    training_sentences = (text for split, *pair, _ in translations if split == "train" for text in pair)
    translate_tokenizer(training_sentences).save(str(pack / "translate_tokenizer.json"), pretty=False)

    pairs = sentence_pairs(data)
    for split in SPLITS:
        write_xz(pack / f"documents_{split}.txt.xz", DOCUMENT_END.join(documents[split]))
        rows = [row for row in pairs if row.split == split]
        write_xz(
            pack / f"pairs_{split}.tsv.xz",
            "\n".join(f"{row.first}\t{row.second}\t{int(row.same_meaning)}\t{row.kind}" for row in rows),
        )
        write_xz(
            pack / f"translate_{split}.tsv.xz",
            "\n".join("\t".join(row[1:]) for row in translations if row[0] == split),
        )
        print(f"{split}: {len(documents[split])} documents, {len(rows)} sentence pairs")
    for name in [*(f"train_{part}.webp" for part in range(1, 6)), "test.webp", "labels.npz", "classes.txt"]:
        (pack / "cifar10").mkdir(exist_ok=True)
        shutil.copyfile(data / "cifar10" / name, pack / "cifar10" / name)


if __name__ == "__main__":
    main()
