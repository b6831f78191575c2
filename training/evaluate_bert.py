"""Figures of `builtin:bert`: masked words beside bigrams, pairs beside word overlap, heads across sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import torch
from corpora import language_model_documents
from evaluate_gpt import held_out_texts
from head_scores import mean_weight, patterns_of
from sentence_pairs import SentencePair, overlap, sentence_pairs, tatoeba_sentences, words_of
from torch import Tensor
from train_bert import FIRST_WORD, MASK, SEPARATOR, START, same_word_places
from transformers import AutoModelForPreTraining, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

ROW = 126  # tokens of text in a row, between [CLS] and [SEP]


class Bigrams:
    """Guesses a hidden token from its true neighbours, even where the model has these hidden."""

    def __init__(self, stream: np.ndarray, vocabulary: int) -> None:
        keys, counts = np.unique(stream[:-1] * vocabulary + stream[1:], return_counts=True)
        self.first, self.second, self.counts = keys // vocabulary, keys % vocabulary, counts
        self.starts = np.searchsorted(self.first, np.arange(vocabulary + 1))
        self.by_second = np.argsort(self.second, kind="stable")
        self.ends = np.searchsorted(self.second[self.by_second], np.arange(vocabulary + 1))
        self.total = np.bincount(stream, minlength=vocabulary)

    def after(self, token: int) -> np.ndarray:
        """How often each token follows this one."""
        row = slice(self.starts[token], self.starts[token + 1])
        return np.bincount(self.second[row], self.counts[row], len(self.total))

    def before(self, token: int) -> np.ndarray:
        """How often each token precedes this one."""
        places = self.by_second[self.ends[token] : self.ends[token + 1]]
        return np.bincount(self.first[places], self.counts[places], len(self.total))

    def from_left(self, before: int) -> int:
        return int(self.after(before).argmax())

    def from_both(self, before: int, following: int) -> int:
        """argmax of P(word | before) * P(following | word), with 0.1 added to the counts of the second."""
        return int((self.after(before) * (self.before(following) + 0.1) / (self.total + 1)).argmax())


@torch.no_grad()
def masked_words(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, data: Path) -> dict:
    backend = tokenizer.backend_tokenizer

    def stream_of(texts: list[str]) -> np.ndarray:
        lines = [line for text in texts for line in text.split("\n")]
        return np.concatenate([np.array(e.ids, dtype=np.int64) for e in
                               backend.encode_batch_fast(lines, add_special_tokens=False)])  # fmt: skip

    splits, _, _ = tatoeba_sentences(data)
    bigrams = Bigrams(stream_of(language_model_documents(data, splits, "train")), model.config.vocab_size)
    pieces = np.array([backend.id_to_token(i).startswith("##") for i in range(model.config.vocab_size)])
    draw = np.random.default_rng(5)
    figures = {}
    sums = Counter()
    for source, text in held_out_texts(data).items():
        stream = stream_of([text])
        rows = [stream[at : at + ROW] for at in range(0, min(len(stream) - ROW, 200 * ROW), ROW)]
        counts = Counter()
        for at in range(0, len(rows), 20):
            block = np.stack(rows[at : at + 20])
            word = np.cumsum(~pieces[block], axis=1)
            hidden = np.zeros_like(block, dtype=bool)
            for row in range(len(block)):
                numbers = np.unique(word[row])
                chosen = draw.choice(numbers, max(1, round(0.15 * len(numbers))), replace=False)
                hidden[row] = np.isin(word[row], chosen) & (block[row] >= FIRST_WORD)
            tokens = np.pad(
                np.where(hidden, MASK, block), ((0, 0), (1, 1)), constant_values=((0, 0), (START, SEPARATOR))
            )
            logits = model(input_ids=torch.from_numpy(tokens)).prediction_logits[:, 1:-1]
            guess = logits.argmax(-1).numpy()
            for row in range(len(block)):
                for number in np.unique(word[row][hidden[row]]):
                    places = np.flatnonzero(word[row] == number)
                    right = bool((guess[row, places] == block[row, places]).all())
                    counts["words"] += 1
                    counts["words right"] += right
                    if len(places) > 1 or places[0] in (0, ROW - 1):
                        continue
                    place = places[0]
                    truth = block[row, place]
                    counts["one-piece words"] += 1
                    counts["model"] += right
                    counts["bigram left"] += bigrams.from_left(int(block[row, place - 1])) == truth
                    counts["bigram both"] += (
                        bigrams.from_both(int(block[row, place - 1]), int(block[row, place + 1])) == truth
                    )
        sums += counts
        figures[source] = shares(counts)
    figures["all four"] = shares(sums)
    return figures


def shares(counts: Counter) -> dict[str, float]:
    return {
        "model": round(counts["model"] / counts["one-piece words"], 4),
        "bigram_left": round(counts["bigram left"] / counts["one-piece words"], 4),
        "bigram_both_sides": round(counts["bigram both"] / counts["one-piece words"], 4),
        "one_piece_words": counts["one-piece words"],
        "model_on_all_words": round(counts["words right"] / counts["words"], 4),
    }


@torch.no_grad()
def judge(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, pairs: list[SentencePair]) -> np.ndarray:
    """Whether the model takes each pair to mean the same."""
    order = np.argsort([len(pair.first) + len(pair.second) for pair in pairs])
    result = np.zeros(len(pairs), dtype=bool)
    for at in range(0, len(pairs), 128):
        chosen = order[at : at + 128]
        inputs = tokenizer(
            [pairs[i].first for i in chosen],
            [pairs[i].second for i in chosen],
            padding=True,
            truncation=True,
            return_tensors="pt",
        )
        result[chosen] = model(**inputs).seq_relationship_logits.argmax(-1).numpy() == 0
    return result


def match_overlap(pairs: list[SentencePair]) -> list[int]:
    """As many positives as negatives in each twentieth of word overlap: here overlap alone tells nothing."""
    bins: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        bins[int(20 * overlap(pair.first, pair.second)), pair.same_meaning].append(index)
    return [
        index
        for level in range(21)
        for same in (True, False)
        for index in bins[level, same][: min(len(bins[level, True]), len(bins[level, False]))]
    ]


def one_word_differs(pair: SentencePair) -> bool:
    first, second = words_of(pair.first), words_of(pair.second)
    return len(first) == len(second) and sum(a != b for a, b in zip(first, second, strict=True)) == 1


def pair_figures(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, pairs: list[SentencePair]) -> dict:
    valid = [pair for pair in pairs if pair.split == "valid"]
    test = [pair for pair in pairs if pair.split == "test"]

    def overlap_accuracy(some: list[SentencePair], threshold: float) -> float:
        return float(np.mean([(overlap(p.first, p.second) >= threshold) == p.same_meaning for p in some]))

    threshold = max((step / 50 for step in range(51)), key=lambda value: overlap_accuracy(valid, value))
    truth = np.array([pair.same_meaning for pair in test])
    right = judge(model, tokenizer, test) == truth
    subset = match_overlap(test)
    valid_subset = [valid[i] for i in match_overlap(valid)]
    matched_threshold = max((step / 50 for step in range(51)), key=lambda value: overlap_accuracy(valid_subset, value))
    groups: dict[str, list[int]] = defaultdict(list)
    for index, pair in enumerate(test):
        groups[pair.kind].append(index)
        # Most negatives are of this form, so a rule "one word differs: not the same" would fail here.
        if pair.same_meaning and one_word_differs(pair):
            groups["same meaning though one word differs"].append(index)
    by_kind = {kind: {"model": round(float(right[of].mean()), 4), "pairs": len(of)} for kind, of in groups.items()}
    return {
        "all": {"pairs": len(test), "model": round(float(right.mean()), 4),
                "word_overlap": round(overlap_accuracy(test, threshold), 4), "threshold": threshold},
        "overlap_matched": {"pairs": len(subset), "model": round(float(right[subset].mean()), 4),
                            "word_overlap": round(overlap_accuracy([test[i] for i in subset], matched_threshold), 4)},
        "model_by_kind": by_kind,
    }  # fmt: skip


def changed_word_places(
    tokenizer: PreTrainedTokenizerFast, pairs: list[SentencePair], inputs: dict
) -> tuple[Tensor, ...]:
    """(batch, query, key, tokens in B) from the one word of A that B lacks to the one word of B that A lacks."""
    batch, query, key, sizes = [], [], [], []
    for row, pair in enumerate(pairs):
        first, second = words_of(pair.first), words_of(pair.second)
        gone, new = set(first) - set(second), set(second) - set(first)
        if len(gone) != 1 or len(new) != 1:
            continue
        tokens, segments = inputs["input_ids"][row], inputs["token_type_ids"][row]
        old_id = tokenizer.convert_tokens_to_ids(next(iter(gone)))
        new_id = tokenizer.convert_tokens_to_ids(next(iter(new)))
        at = ((tokens == old_id) & (segments == 0)).nonzero()
        to = ((tokens == new_id) & (segments == 1)).nonzero()
        if old_id >= FIRST_WORD and new_id >= FIRST_WORD and len(at) == 1 and len(to) == 1:
            batch.append(row)
            query.append(int(at))
            key.append(int(to))
            sizes.append(int(((segments == 1) & (tokens >= FIRST_WORD)).sum()))
    return torch.tensor(batch), torch.tensor(query), torch.tensor(key), torch.tensor(sizes)


@torch.no_grad()
def across_figures(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, pairs: list[SentencePair]) -> dict:
    """Heads are chosen on validation pairs and measured on test pairs."""
    measured = {}
    for split in ("valid", "test"):
        some = [pair for pair in pairs if pair.split == split and pair.same_meaning][:1500]
        sums: dict[str, list] = defaultdict(list)
        for at in range(0, len(some), 100):
            block = some[at : at + 100]
            inputs = tokenizer(
                [p.first for p in block], [p.second for p in block], padding=True, truncation=True, return_tensors="pt"
            )
            patterns = patterns_of(model(**inputs, output_attentions=True).attentions)
            tokens, segments = inputs["input_ids"], inputs["token_type_ids"]
            to_second = ((segments == 1) & (tokens >= FIRST_WORD)).float()
            for name, places in (
                ("same_word", same_word_places(tokens, segments)),
                ("changed_word", changed_word_places(tokenizer, block, inputs)),
            ):
                batch, query, key, sizes = places
                if not len(batch):
                    continue
                sums[name].append(
                    (
                        mean_weight(patterns, batch, query, key),
                        (patterns[:, batch, :, query] * to_second[batch][:, None, None]).sum(-1).mean(0),
                        len(batch),
                        (1 / sizes.float()).mean(),
                    )
                )
        measured[split] = {
            name: [sum(part[i] * part[2] for part in parts) / sum(part[2] for part in parts) for i in (0, 1, 3)]
            + [sum(part[2] for part in parts)]
            for name, parts in sums.items()
        }
    figures = {}
    for name, (valid_score, *_) in measured["valid"].items():
        layer, head = divmod(int(valid_score.argmax()), valid_score.shape[1])
        score, to_second, chance, count = measured["test"][name]
        figures[name] = {
            "head": f"L{layer}H{head}",
            "attention": round(score[layer, head].item(), 4),
            "share_of_attention_to_B": round((score[layer, head] / to_second[layer, head]).item(), 4),
            "chance_share": round(chance.item(), 4),
            "places": count,
        }
    return figures


def evaluate_bert(folder: Path, data: Path) -> dict:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForPreTraining.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    pairs = sentence_pairs(data)
    examples = []
    for text in ("The doctor asked the [MASK] a question.", "She opened the [MASK] and looked out of the window.",
                 "I have never [MASK] so happy in my life.", "London is the [MASK] of England."):  # fmt: skip
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            logits = model(**inputs).prediction_logits[0, inputs["input_ids"][0].tolist().index(MASK)]
        examples.append({"text": text, "guesses": tokenizer.convert_ids_to_tokens(logits.topk(5).indices.tolist())})
    return {
        "masked_word_accuracy": masked_words(model, tokenizer, data),
        "pair_accuracy": pair_figures(model, tokenizer, pairs),
        "heads": across_figures(model, tokenizer, pairs),
        "guesses": examples,
    }
