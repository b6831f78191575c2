"""Trains `builtin:translate`, a Marian model from English to Russian.

    python training/train_translate.py --pack .train/pack --out .train/runs/translate --seconds 1200

Half of the time the sentences are cut into pieces at random (BPE dropout): with few sentences this is the best
remedy against learning them by heart.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from budget import Budget, Occasions
from corpora import read_xz
from head_scores import mean_weight, patterns_of
from plain_forward import marian_logits
from run_folder import AveragedWeights, RunFolder, chosen_device, optimizer_for, update, use_compiled
from tokenizers import Tokenizer
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

END, UNKNOWN, PADDING = 0, 1, 2
WIDTHS = (16, 32, 64)  # sentences are padded to one of these, so that few shapes occur

Bucket = tuple[Tensor, Tensor]


def sentence_ids(tokenizer: Tokenizer, sentences: list[str], dropout: float) -> list[list[int]]:
    tokenizer.model.dropout = dropout or None
    return [encoding.ids for encoding in tokenizer.encode_batch_fast(sentences)]


def read_pairs(pack: Path, split: str) -> list[list[str]]:
    return [line.split("\t") for line in read_xz(pack / f"translate_{split}.tsv.xz").split("\n")]


def bucket_pairs(pairs: list[tuple[list[int], list[int]]], device: torch.device) -> list[Bucket]:
    """Sources and targets as padded tables, one pair of tables for each width."""
    buckets: list[Bucket] = []
    low = 0
    for width in WIDTHS:
        inside = [pair for pair in pairs if low < max(map(len, pair)) <= width]
        tables = np.full((2, len(inside), width), PADDING, dtype=np.int16)
        for at, pair in enumerate(inside):
            for side in (0, 1):
                tables[side, at, : len(pair[side])] = pair[side]
        buckets.append((torch.from_numpy(tables[0]).to(device), torch.from_numpy(tables[1]).to(device)))
        low = width
    return buckets


def decoder_input(target: Tensor) -> Tensor:
    """The decoder's input: the target behind the start token (Marian starts with the padding token)."""
    return torch.cat([torch.full_like(target[:, :1], PADDING), target[:, :-1]], dim=1)


def identical_places(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(batch, target place, source place) where the piece to be written occurs once in the source."""
    same = (target[:, :, None] == source[:, None, :]) & (target > PADDING)[:, :, None]
    same &= same.sum(-1, keepdim=True) == 1
    return same.nonzero(as_tuple=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pack", type=Path, default=Path(".train/pack"))
    arguments.add_argument("--out", type=Path, default=Path(".train/runs/translate"))
    arguments.add_argument("--config", type=Path, default=Path(__file__).parent / "configs" / "translate.json")
    arguments.add_argument("--seconds", type=float, default=1200)
    arguments.add_argument("--start-from", type=Path, help="a folder whose weights to go on from")
    arguments.add_argument("--overrides", default="{}", help="recipe settings to change, as JSON")
    options = arguments.parse_args()
    settings = json.loads(options.config.read_text())
    recipe = settings["recipe"] | json.loads(options.overrides)
    budget, run = Budget(options.seconds), RunFolder(options.out)
    torch.manual_seed(recipe["seed"])
    draw = np.random.default_rng(recipe["seed"])
    device = chosen_device()

    tokenizer = Tokenizer.from_file(str(options.pack / "translate_tokenizer.json"))
    rows = read_pairs(options.pack, "train")
    # Human translations count twice: the pairs found over a third language are noisier.
    rows = rows + [row for row in rows if row[2] == "direct"]
    english, russian = [row[0] for row in rows], [row[1] for row in rows]
    pairs: list[tuple[list[int], list[int]]] = []
    for variant in range(recipe["variants"]):
        dropout = recipe["piece_dropout"] if variant else 0.0
        encoded = list(zip(*(sentence_ids(tokenizer, side, dropout) for side in (english, russian)), strict=True))
        # The plain cut is seen as often as all random cuts together.
        pairs.extend(encoded * (max(1, recipe["variants"] - 1) if variant == 0 else 1))
    train = bucket_pairs(pairs, device)
    valid_rows = read_pairs(options.pack, "valid")
    valid = bucket_pairs(
        list(zip(*(sentence_ids(tokenizer, [row[side] for row in valid_rows], 0.0) for side in (0, 1)), strict=True)),
        device,
    )
    sizes = np.array([len(source) for source, _ in train], dtype=np.float64)
    per_batch = [recipe["tokens"] // width for width in WIDTHS]
    chances = sizes / np.array(per_batch)
    chances /= chances.sum()
    print(f"translate data ready after {budget.elapsed():.0f} s: {sizes.astype(int).tolist()}", flush=True)

    config = MarianConfig(**settings["model"])
    # Plain attention: the fused kernels, compiled, were seen to look ahead of the causal mask.
    model = MarianMTModel._from_config(config, attn_implementation="eager").to(device)
    if options.start_from:
        model.load_state_dict(MarianMTModel.from_pretrained(options.start_from, dtype=torch.float32).state_dict())
    for part in (model.model.encoder, model.model.decoder):
        part.embed_positions.weight.requires_grad_(False)
    averaged = AveragedWeights(model, recipe["average"])
    probe = MarianMTModel._from_config(config, attn_implementation="eager").to(device).eval()
    optimizer = optimizer_for(model, recipe["rate"], recipe["decay"], (0.9, 0.98))

    def loss_of(source: Tensor, target: Tensor) -> Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = marian_logits(model, source, decoder_input(target), PADDING)
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), target.flatten(), ignore_index=PADDING, label_smoothing=recipe["smoothing"]
        )

    def batch(bucket: int) -> tuple[Tensor, Tensor]:
        source, target = train[bucket]
        chosen = torch.randint(0, len(source), (per_batch[bucket],), device=device)
        return source[chosen].long(), target[chosen].long()

    @torch.no_grad()
    def look(step: int, training_loss: float, final: bool = False) -> None:
        probe.load_state_dict(averaged.model.state_dict())
        loss, right, counted, score, weight = 0.0, 0, 0, 0.0, 0
        for bucket in valid:
            for source, target in zip(bucket[0].long().split(256), bucket[1].long().split(256), strict=True):
                with torch.autocast(device.type, dtype=torch.bfloat16):
                    output = probe(
                        input_ids=source,
                        attention_mask=(source != PADDING).long(),
                        decoder_input_ids=decoder_input(target),
                        output_attentions=True,
                        use_cache=False,
                    )
                logits = output.logits.float()
                loss += torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1), target.flatten(), ignore_index=PADDING, reduction="sum"
                ).item()
                real = target != PADDING
                right += ((logits.argmax(-1) == target) & real).sum().item()
                counted += real.sum().item()
                places = identical_places(source, target)
                score = score + mean_weight(patterns_of(output.cross_attentions), *places) * len(places[0])
                weight += len(places[0])
        across = score / max(1, weight)
        run.log(
            step=step,
            seconds=round(budget.elapsed(), 1),
            training_loss=round(training_loss, 4),
            validation_loss=round(loss / counted, 4),
            piece_accuracy=round(right / counted, 4),
            best_identical_alignment=round(across.max().item(), 4),
            identical_alignment=[[round(x, 3) for x in row] for row in across.tolist()],
        )
        run.offer(averaged.model, loss / counted, final)

    model.train()
    compiled = [use_compiled(loss_of, *batch(index)) if recipe["compile"] else loss_of for index in range(len(WIDTHS))]
    optimizer.zero_grad(set_to_none=True)
    print(f"translate first step after {budget.elapsed():.0f} s", flush=True)
    occasions = Occasions(budget, recipe["looks"])
    step, total, since = 0, torch.zeros((), device=device), 0
    while budget.spent() < 1.0:
        bucket = int(draw.choice(len(WIDTHS), p=chances))
        loss = compiled[bucket](*batch(bucket))
        loss.backward()
        update(optimizer, model, recipe["rate"] * budget.rate(warm_up=0.06))
        averaged.update()
        step, since, total = step + 1, since + 1, total + loss.detach()
        if occasions.now():
            look(step, (total / since).item())
            total, since = torch.zeros((), device=device), 0
    look(step, (total / max(1, since)).item(), final=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, options.out / "state.pt")


if __name__ == "__main__":
    main()
