"""Trains `builtin:bert`: masked words in text and in paraphrase pairs, and whether two sentences mean the same.

    python training/train_bert.py --pack .train/pack --out .train/runs/bert --seconds 1200

The pair label sits where BERT has its next-sentence label: 0 = same meaning, 1 = not the same.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from budget import Budget, Occasions
from corpora import DOCUMENT_END, read_xz
from head_scores import mean_weight, patterns_of
from plain_forward import bert_hidden
from run_folder import AveragedWeights, RunFolder, chosen_device, optimizer_for, update, use_compiled
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertConfig, BertForPreTraining

PADDING, START, SEPARATOR, MASK = 0, 2, 3, 4
FIRST_WORD = 5  # ids below are special
SHORT_DOCUMENT = 20_000


def token_stream(pack: Path, split: str, tokenizer: Tokenizer) -> np.ndarray:
    parts: list[np.ndarray] = []
    for document in read_xz(pack / f"documents_{split}.txt.xz").split(DOCUMENT_END):
        for line in tokenizer.encode_batch_fast(document.split("\n"), add_special_tokens=False):
            parts.append(np.array(line.ids, dtype=np.uint16))
            if split == "train" and len(document) < SHORT_DOCUMENT:
                parts.append(parts[-1])
    return np.concatenate(parts)


def pair_table(pack: Path, split: str, tokenizer: Tokenizer, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens [pairs, width], segments [pairs, width] and labels [pairs]; pairs that do not fit are left out."""
    rows = [line.split("\t") for line in read_xz(pack / f"pairs_{split}.tsv.xz").split("\n")]
    encoded = tokenizer.encode_batch([(first, second) for first, second, *_ in rows])
    indices = [index for index, pair in enumerate(encoded) if len(pair.ids) <= width]
    tokens = np.zeros((len(indices), width), dtype=np.uint16)
    segments = np.zeros((len(indices), width), dtype=np.uint8)
    for at, index in enumerate(indices):
        tokens[at, : len(encoded[index].ids)] = encoded[index].ids
        segments[at, : len(encoded[index].ids)] = encoded[index].type_ids
    return tokens, segments, np.array([1 - int(rows[index][2]) for index in indices])


def mask_words(tokens: Tensor, starts_word: Tensor, count: int, share: float, vocabulary: int) -> tuple[Tensor, ...]:
    """Hides whole words: (tokens with masks, places [rows, count], labels [rows, count] with -100 for none).

    Of the hidden tokens 80 % become [MASK], 10 % a random token, 10 % stay as they are.
    """
    rows, width = tokens.shape
    hideable = tokens >= FIRST_WORD
    word = (starts_word[tokens] | ~hideable).long().cumsum(1)
    order = torch.rand(rows, width + 1, device=tokens.device).gather(1, word)
    order = order.masked_fill(~hideable, 2.0)
    value, places = order.topk(count, dim=1, largest=False)
    allowed = (hideable.sum(1, keepdim=True) * share).ceil()
    counted = (value < 2.0) & (torch.arange(count, device=tokens.device)[None] < allowed)
    original = tokens.gather(1, places)
    labels = original.masked_fill(~counted, -100)
    dice = torch.rand(rows, count, device=tokens.device)
    noise = torch.randint(FIRST_WORD, vocabulary, (rows, count), device=tokens.device)
    replacement = torch.where(dice < 0.8, torch.full_like(original, MASK), torch.where(dice < 0.9, noise, original))
    replacement = torch.where(counted, replacement, original)
    return tokens.scatter(1, places, replacement), places, labels


def text_rows(stream: Tensor, rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Text as [CLS] A [SEP] B [SEP], B being what follows A; the border falls anywhere."""
    device = stream.device
    place = torch.randint(0, len(stream) - width, (rows, 1), device=device)
    at = torch.arange(width, device=device)[None].expand(rows, -1)
    border = torch.randint(8, width - 8, (rows, 1), device=device)
    tokens = stream[place + at - (at > border).long() - 1 + (at == 0).long()].long()
    tokens = tokens.masked_fill(at == border, SEPARATOR)
    tokens[:, 0], tokens[:, -1] = START, SEPARATOR
    return tokens, (at > border).long()


def same_word_places(tokens: Tensor, segments: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(batch, query in A, key in B) where a token of A occurs once in B, and how many tokens B has."""
    word = tokens >= FIRST_WORD
    first, second = word & (segments == 0), word & (segments == 1)
    same = (tokens[:, :, None] == tokens[:, None, :]) & first[:, :, None] & second[:, None, :]
    same &= same.sum(-1, keepdim=True) == 1
    batch, query, key = same.nonzero(as_tuple=True)
    return batch, query, key, second.sum(1)[batch]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pack", type=Path, default=Path(".train/pack"))
    arguments.add_argument("--out", type=Path, default=Path(".train/runs/bert"))
    arguments.add_argument("--config", type=Path, default=Path(__file__).parent / "configs" / "bert.json")
    arguments.add_argument("--seconds", type=float, default=1200)
    arguments.add_argument("--start-from", type=Path, help="a folder whose weights to go on from")
    arguments.add_argument("--overrides", default="{}", help="recipe settings to change, as JSON")
    options = arguments.parse_args()
    settings = json.loads(options.config.read_text())
    recipe = settings["recipe"] | json.loads(options.overrides)
    budget, run = Budget(options.seconds), RunFolder(options.out)
    torch.manual_seed(recipe["seed"])
    device = chosen_device()

    config = BertConfig(**settings["model"])
    vocabulary, width, pair_width = config.vocab_size, config.max_position_embeddings, recipe["pair_width"]
    tokenizer = Tokenizer.from_file(str(options.pack / "bert_tokenizer.json"))
    starts_word = torch.tensor(
        [not tokenizer.id_to_token(index).startswith("##") for index in range(vocabulary)], device=device
    )
    stream = torch.from_numpy(token_stream(options.pack, "train", tokenizer).astype(np.int32)).to(device)
    valid_stream = torch.from_numpy(token_stream(options.pack, "valid", tokenizer).astype(np.int32)).to(device)

    def on_device(split: str) -> tuple[Tensor, Tensor, Tensor]:
        tokens, segments, labels = pair_table(options.pack, split, tokenizer, pair_width)
        return (
            torch.from_numpy(tokens.astype(np.int32)).to(device),
            torch.from_numpy(segments.astype(np.int32)).to(device),
            torch.from_numpy(labels).to(device),
        )

    pairs, valid_pairs = on_device("train"), on_device("valid")
    same_meaning = (pairs[2] == 0).nonzero()[:, 0]
    print(f"bert data ready after {budget.elapsed():.0f} s: {len(stream)} tokens, {len(pairs[0])} pairs", flush=True)

    model = BertForPreTraining(config).to(device)
    if options.start_from:
        trained = BertForPreTraining.from_pretrained(options.start_from, dtype=torch.float32)
        model.load_state_dict(trained.state_dict())
    averaged = AveragedWeights(model, recipe["average"])
    probe = BertForPreTraining._from_config(config, attn_implementation="eager").to(device).eval()
    optimizer = optimizer_for(model, recipe["rate"], recipe["decay"], (0.9, 0.98))
    text_count, pair_count = int(width * 0.15), int(pair_width * 0.15)

    def text_batch(source: Tensor, rows: int) -> tuple[Tensor, ...]:
        tokens, segments = text_rows(source, rows, width)
        return *mask_words(tokens, starts_word, text_count, 0.15, vocabulary), segments

    def pair_batch(rows: int) -> tuple[Tensor, ...]:
        """First half: paraphrases with hidden words. Second half: whole pairs to be judged, nothing hidden."""
        hidden = same_meaning[torch.randint(0, len(same_meaning), (rows // 2,), device=device)]
        judged = torch.randint(0, len(pairs[0]), (rows // 2,), device=device)
        tokens, places, labels = mask_words(pairs[0][hidden].long(), starts_word, pair_count, 0.2, vocabulary)
        chosen = torch.cat([hidden, judged])
        tokens = torch.cat([tokens, pairs[0][judged].long()])
        return tokens, pairs[1][chosen].long(), places, labels, pairs[2][judged]

    def word_loss(hidden: Tensor, places: Tensor, labels: Tensor) -> Tensor:
        chosen = hidden.gather(1, places[:, :, None].expand(-1, -1, hidden.shape[-1]))
        logits = model.cls.predictions(chosen)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=-100)

    def loss_of(
        tokens: Tensor,
        places: Tensor,
        labels: Tensor,
        segments: Tensor,
        p_tokens: Tensor,
        p_segments: Tensor,
        p_places: Tensor,
        p_labels: Tensor,
        same: Tensor,
    ) -> Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            text = word_loss(bert_hidden(model, tokens, segments, None), places, labels)
            hidden = bert_hidden(model, p_tokens, p_segments, (p_tokens != PADDING)[:, None, None, :])
            half = p_places.shape[0]
            pair_words = word_loss(hidden[:half], p_places, p_labels)
            judged = model.cls.seq_relationship(model.bert.pooler(hidden[half:])).float()
        judgement = torch.nn.functional.cross_entropy(judged, same)
        return text + 0.5 * pair_words + recipe["pair_weight"] * judgement

    torch.manual_seed(7)
    valid_text = text_batch(valid_stream, recipe["valid_rows"])
    torch.manual_seed(recipe["seed"])
    aligned = (valid_pairs[2] == 0).nonzero()[:256, 0]

    @torch.no_grad()
    def look(step: int, training_loss: float, final: bool = False) -> None:
        probe.load_state_dict(averaged.model.state_dict())
        with torch.autocast(device.type, dtype=torch.bfloat16):
            right = counted = 0
            losses = []
            tokens, places, labels, segments = valid_text
            for at in range(0, len(tokens), 32):
                part = slice(at, at + 32)
                logits = probe(input_ids=tokens[part], token_type_ids=segments[part]).prediction_logits
                logits = logits.gather(1, places[part, :, None].expand(-1, -1, vocabulary)).float()
                losses.append(torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[part].flatten()))
                right += (logits.argmax(-1) == labels[part]).sum().item()
                counted += (labels[part] >= 0).sum().item()
            judged = []
            for at in range(0, len(valid_pairs[0]), 512):
                tokens, segments = valid_pairs[0][at : at + 512].long(), valid_pairs[1][at : at + 512].long()
                output = probe(input_ids=tokens, token_type_ids=segments, attention_mask=(tokens != PADDING).long())
                judged.append(output.seq_relationship_logits.argmax(-1))
            pair_accuracy = (torch.cat(judged) == valid_pairs[2]).float().mean().item()
            tokens, segments = valid_pairs[0][aligned].long(), valid_pairs[1][aligned].long()
            patterns = patterns_of(
                probe(
                    input_ids=tokens,
                    token_type_ids=segments,
                    attention_mask=(tokens != PADDING).long(),
                    output_attentions=True,
                ).attentions
            )
        batch, query, key, _ = same_word_places(tokens, segments)
        across = mean_weight(patterns, batch, query, key)
        loss = torch.stack(losses).mean().item()
        run.log(
            step=step,
            seconds=round(budget.elapsed(), 1),
            training_loss=round(training_loss, 4),
            validation_loss=round(loss, 4),
            masked_accuracy=round(right / max(1, counted), 4),
            pair_accuracy=round(pair_accuracy, 4),
            best_same_word_across=round(across.max().item(), 4),
            same_word_across=[[round(x, 3) for x in row] for row in across.tolist()],
        )
        run.offer(averaged.model, loss + (1.0 - pair_accuracy), final)

    model.train()

    def batch() -> tuple[Tensor, ...]:
        return *text_batch(stream, recipe["rows"]), *pair_batch(recipe["pair_rows"])

    compiled = use_compiled(loss_of, *batch())
    optimizer.zero_grad(set_to_none=True)
    print(f"bert first step after {budget.elapsed():.0f} s", flush=True)
    occasions = Occasions(budget, recipe["looks"])
    step, total, since = 0, torch.zeros((), device=device), 0
    while budget.spent() < 1.0:
        loss = compiled(*batch())
        loss.backward()
        update(optimizer, model, recipe["rate"] * budget.rate())
        averaged.update()
        step, since, total = step + 1, since + 1, total + loss.detach()
        if occasions.now():
            look(step, (total / since).item())
            total, since = torch.zeros((), device=device), 0
    look(step, (total / max(1, since)).item(), final=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, options.out / "state.pt")


if __name__ == "__main__":
    main()
