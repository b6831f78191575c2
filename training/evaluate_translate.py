"""Figures of `builtin:translate`: sacreBLEU on held-out direct pairs, and how cross-attention aligns words."""

from __future__ import annotations

import re
from pathlib import Path

import sacrebleu
import torch
from corpora import normalised_key, translation_pairs
from head_scores import patterns_of
from tokenizers import Encoding
from torch import Tensor
from train_translate import PADDING, decoder_input
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

# English names and the stems they have in Russian, whatever the case ending.
NAMES = {
    "Tom": "Том", "Mary": "Мэри", "Boston": "Бостон", "Australia": "Австрали", "John": "Джон", "Japan": "Япони",
    "London": "Лондон", "Paris": "Париж", "Germany": "Германи", "America": "Америк", "Tokyo": "Токио",
    "Russia": "Росси", "China": "Кита", "Europe": "Европ", "Alice": "Алис", "Moscow": "Москв", "Italy": "Итали",
    "Mike": "Майк", "Jim": "Джим", "Bill": "Билл", "Jane": "Джейн", "Ken": "Кен",
}  # fmt: skip
SENTENCES = (
    "The doctor asked the nurse a question.",
    "The farmer asked the housekeeper for the key.",
    "Tom bought 25 apples in Boston.",
    "I do not know where my keys are.",
    "She has lived in London since 1998.",
    "The old man who lives next door has three dogs and a cat.",
    "If I had known that you were coming, I would have baked a cake.",
    "The committee rejected the proposal because it would have cost far too much money.",
)


@torch.no_grad()
def translations(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, sentences: list[str]) -> list[str]:
    distinct = sorted(set(sentences), key=len)
    translation_of: dict[str, str] = {}
    for at in range(0, len(distinct), 64):
        block = distinct[at : at + 64]
        inputs = tokenizer(block, padding=True, return_tensors="pt")
        output = model.generate(**inputs, num_beams=4, max_new_tokens=120, do_sample=False)
        translation_of.update(zip(block, tokenizer.batch_decode(output, skip_special_tokens=True), strict=True))
    return [translation_of[sentence] for sentence in sentences]


def places_to_align(tokenizer: PreTrainedTokenizerFast, english: str, russian: str) -> list[tuple[str, int, set[int]]]:
    """(kind, target piece, source pieces) of what surely corresponds: names, numbers, identical pieces."""
    backend = tokenizer.backend_tokenizer
    source, target = backend.encode(english), backend.encode(russian)
    places: list[tuple[str, int, set[int]]] = []

    def pieces(encoding: Encoding, start: int, end: int) -> list[int]:
        return [i for i, (a, b) in enumerate(encoding.offsets) if a < end and b > start and b > a]

    wanted = [("name", rf"\b{name}\b", rf"\b{stem}\w*") for name, stem in NAMES.items()]
    wanted += [("number", rf"\b{n}\b", rf"\b{n}\b") for n in set(re.findall(r"\b\d+\b", english))]
    for kind, first, second in wanted:
        here, there = list(re.finditer(first, english)), list(re.finditer(second, russian))
        if len(here) == 1 and len(there) == 1:
            keys, queries = pieces(source, *here[0].span()), pieces(target, *there[0].span())
            # A leading space mark is a piece of its own before digits; the first piece with a character counts.
            written = [q for q in queries if target.tokens[q] != "▁"]
            if keys and written:
                places.append((kind, written[0], set(keys)))
    for query, piece in enumerate(target.tokens[:-1]):
        if source.tokens.count(piece) == 1 and target.tokens.count(piece) == 1 and piece != "▁":
            # Kept apart: most shared pieces are the full stop at the end, which the diagonal finds by itself.
            kind = "identical word piece" if any(c.isalnum() for c in piece) else "identical punctuation"
            places.append((kind, query, {source.tokens.index(piece)}))
    return places


@torch.no_grad()
def alignment(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, pairs: list[tuple[str, str]]
) -> dict[str, dict]:
    """Per kind: mass and hits [layer, head] of cross-attention, hits of the diagonal, and the number of places."""
    sums: dict[str, dict] = {}
    for at in range(0, len(pairs), 50):
        block = pairs[at : at + 50]
        source = tokenizer([e for e, _ in block], padding=True, return_tensors="pt")
        target = tokenizer([r for _, r in block], padding=True, return_tensors="pt").input_ids
        output = model(**source, decoder_input_ids=decoder_input(target), output_attentions=True, use_cache=False)
        patterns = patterns_of(output.cross_attentions)
        for row, (english, russian) in enumerate(block):
            length = int((source.input_ids[row] != PADDING).sum())
            written = int((target[row] != PADDING).sum())
            for kind, query, keys in places_to_align(tokenizer, english, russian):
                kind_sums = sums.setdefault(
                    kind, {"mass": 0.0, "hits": 0.0, "diagonal": 0, "uniform": 0.0, "places": 0}
                )
                row_pattern: Tensor = patterns[:, row, :, query, :length]
                kind_sums["mass"] = kind_sums["mass"] + row_pattern[..., list(keys)].sum(-1)
                peak = row_pattern.argmax(-1)
                kind_sums["hits"] = kind_sums["hits"] + sum((peak == key).float() for key in keys)
                # The end marks correspond to each other, so the diagonal runs between the last real pieces.
                guess = round(query * (length - 1) / max(1, written - 1))
                kind_sums["diagonal"] += guess in keys
                kind_sums["uniform"] += len(keys) / length
                kind_sums["places"] += 1
    return sums


def evaluate_translate(folder: Path, data: Path) -> dict:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    looking = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    rows = list(translation_pairs(data))
    test = [(english, russian) for split, english, russian, _ in rows if split == "test"]
    direct = [(english, russian) for split, english, russian, kind in rows if split == "train" and kind == "direct"]
    # Heads are chosen on training pairs: the validation pairs hold too few numbers to choose by.
    with_number = [pair for pair in direct if re.search(r"\d", pair[0]) and re.search(r"\d", pair[1])][:400]
    choosing = direct[::20][:1600] + with_number
    seen = {normalised_key(russian) for split, _, russian, _ in rows if split == "train"}
    written = translations(model, tokenizer, [english for english, _ in test])
    metric = sacrebleu.BLEU()

    def bleu(chosen: list[int]) -> float:
        return round(metric.corpus_score([written[i] for i in chosen], [[test[i][1] for i in chosen]]).score, 2)

    everything = list(range(len(test)))
    unseen = [i for i in everything if normalised_key(test[i][1]) not in seen]
    long = [i for i in everything if len(test[i][0].split()) > 12]
    figures = {
        "bleu": bleu(everything),
        "pairs": len(test),
        "signature": str(metric.get_signature()),
        "beams": 4,
        "chrf": round(sacrebleu.CHRF().corpus_score(written, [[russian for _, russian in test]]).score, 2),
        "bleu_where_the_russian_sentence_was_never_seen": bleu(unseen),
        "pairs_never_seen": len(unseen),
        "bleu_over_12_words": bleu(long),
        "pairs_over_12_words": len(long),
    }
    chosen, measured = alignment(looking, tokenizer, choosing), alignment(looking, tokenizer, test)
    heads = {}
    for kind, kind_sums in measured.items():
        best = chosen[kind]["hits"]
        layer, head = divmod(int(best.argmax()), best.shape[1])
        count = kind_sums["places"]
        heads[kind] = {
            "head": f"L{layer}H{head}",
            "peak_on_it": round((kind_sums["hits"][layer, head] / count).item(), 4),
            "attention": round((kind_sums["mass"][layer, head] / count).item(), 4),
            "diagonal": round(kind_sums["diagonal"] / count, 4),
            "uniform": round(kind_sums["uniform"] / count, 4),
            "places": count,
        }
    return figures | {
        "alignment": heads,
        "translations": [
            {"english": english, "russian": russian}
            for english, russian in zip(SENTENCES, translations(model, tokenizer, list(SENTENCES)), strict=True)
        ],
        "test_examples": [
            {"english": test[i][0], "reference": test[i][1], "russian": written[i]} for i in range(0, len(test), 250)
        ],
    }
