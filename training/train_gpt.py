"""Trains `builtin:gpt`, a GPT-2 on English prose with a share of repeated segments.

    python training/train_gpt.py --pack .train/pack --out .train/runs/gpt --seconds 1200

A fifth of the rows carry a segment that occurs twice, half of them random tokens. Text alone repeats too rarely for
a model of this size to grow induction heads in minutes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from budget import Budget, Occasions
from corpora import DOCUMENT_END, read_xz
from head_scores import induction, patterns_of, previous_token, random_repeated
from plain_forward import gpt_logits
from run_folder import AveragedWeights, RunFolder, chosen_device, optimizer_for, update, use_compiled
from tokenizers import Tokenizer
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

START = 0  # <|endoftext|>
SHORT_DOCUMENT = 20_000  # characters; the novels are longer, everything else is shorter and is read twice an epoch


def token_stream(pack: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """All documents as one stream, each after <|endoftext|>, and the places where paragraphs start."""
    tokenizer = Tokenizer.from_file(str(pack / "gpt_tokenizer.json"))
    line_end = tokenizer.encode("\n", add_special_tokens=False).ids
    parts: list[np.ndarray] = []
    starts: list[int] = []
    at = 0
    for document in read_xz(pack / f"documents_{split}.txt.xz").split(DOCUMENT_END):
        lines = document.split("\n")
        encoded = tokenizer.encode_batch_fast(lines, add_special_tokens=False)
        for _ in range(2 if split == "train" and len(document) < SHORT_DOCUMENT else 1):
            for index, line in enumerate(encoded):
                lead = [START] if index == 0 else line_end
                starts.append(at + len(lead))
                parts.append(np.array(lead + line.ids, dtype=np.uint16))
                at += len(parts[-1])
    return np.concatenate(parts), np.array(starts, dtype=np.int64)


class Rows:
    """Draws rows of text on the device; some carry a repeated segment."""

    def __init__(self, stream: np.ndarray, starts: np.ndarray, width: int, vocabulary: int, device: torch.device):
        self.stream = torch.from_numpy(stream.astype(np.int32)).to(device)
        self.starts = torch.from_numpy(starts).to(device)
        self.width, self.vocabulary, self.device = width, vocabulary, device

    def draw(self, rows: int, repeated_share: float) -> tuple[Tensor, Tensor]:
        """Inputs and labels [rows, width]. Half the rows start at a paragraph, three quarters after a start token."""
        device, width = self.device, self.width
        place = torch.randint(0, len(self.stream) - width - 2, (rows,), device=device)
        paragraph = self.starts[(torch.searchsorted(self.starts, place, right=True) - 1).clamp_min(0)]
        place = torch.where(torch.rand(rows, device=device) < 0.5, paragraph, place)
        place = place.clamp_max(len(self.stream) - width - 2)
        text = self.stream[place[:, None] + torch.arange(width + 1, device=device)].long()
        led = torch.rand(rows, device=device) < 0.75
        shifted = torch.cat([torch.full((rows, 1), START, device=device), text[:, :-1]], dim=1)
        text = torch.where(led[:, None], shifted, text)

        # A segment [first, first + length) is copied to [second, second + length), text or random tokens.
        length = torch.randint(20, 201, (rows,), device=device)
        room = width + 1 - 2 * length
        first = 1 + (torch.rand(rows, device=device) * (room - 1)).long()
        second = first + length + (torch.rand(rows, device=device) * (width + 1 - first - 2 * length)).long()
        at = torch.arange(width + 1, device=device)[None]
        repeated = (torch.rand(rows, device=device) < repeated_share)[:, None]
        random_row = (torch.rand(rows, device=device) < 0.5)[:, None] & repeated
        in_first = (at >= first[:, None]) & (at < (first + length)[:, None])
        in_second = (at >= second[:, None]) & (at < (second + length)[:, None]) & repeated
        noise = torch.randint(1, self.vocabulary, text.shape, device=device)
        text = torch.where(in_first & random_row, noise, text)
        source = torch.where(in_second, at - (second - first)[:, None], at.expand_as(text))
        text = text.gather(1, source)
        labels = text[:, 1:].clone()
        # Nobody can predict the first copy of a random segment: learning from it would be noise.
        labels[(in_first & random_row)[:, 1:]] = -100
        return text[:, :-1].contiguous(), labels


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pack", type=Path, default=Path(".train/pack"))
    arguments.add_argument("--out", type=Path, default=Path(".train/runs/gpt"))
    arguments.add_argument("--config", type=Path, default=Path(__file__).parent / "configs" / "gpt.json")
    arguments.add_argument("--seconds", type=float, default=1200)
    arguments.add_argument("--start-from", type=Path, help="a folder whose weights to go on from")
    arguments.add_argument("--overrides", default="{}", help="recipe settings to change, as JSON")
    options = arguments.parse_args()
    settings = json.loads(options.config.read_text())
    recipe = settings["recipe"] | json.loads(options.overrides)
    budget, run = Budget(options.seconds), RunFolder(options.out)
    torch.manual_seed(recipe["seed"])
    device = chosen_device()

    config = GPT2Config(**settings["model"])
    width = config.n_positions
    train = Rows(*token_stream(options.pack, "train"), width, config.vocab_size, device)
    valid_stream, _ = token_stream(options.pack, "valid")
    count = min(len(valid_stream) // width, recipe["valid_rows"])
    places = np.linspace(0, len(valid_stream) - width - 1, count).astype(np.int64)
    valid = torch.from_numpy(
        np.stack([valid_stream[place : place + width + 1] for place in places]).astype(np.int64)
    ).to(device)
    print(f"gpt data ready after {budget.elapsed():.0f} s: {len(train.stream)} tokens", flush=True)

    # Plain attention: the fused kernels, compiled, were seen to look ahead of the causal mask.
    model = GPT2LMHeadModel._from_config(config, attn_implementation="eager").to(device)
    if options.start_from:
        model.load_state_dict(GPT2LMHeadModel.from_pretrained(options.start_from, dtype=torch.float32).state_dict())
    averaged = AveragedWeights(model, recipe["average"])
    probe = GPT2LMHeadModel._from_config(config, attn_implementation="eager").to(device).eval()
    repeated = random_repeated(config.vocab_size, 16, 100, seed=1, start=START).to(device)
    optimizer = optimizer_for(model, recipe["rate"], recipe["decay"], (0.9, 0.95))

    def loss_of(tokens: Tensor, labels: Tensor) -> Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = gpt_logits(model, tokens)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=-100)

    @torch.no_grad()
    def look(step: int, training_loss: float, final: bool = False) -> None:
        probe.load_state_dict(averaged.model.state_dict())
        losses = []
        with torch.autocast(device.type, dtype=torch.bfloat16):
            for rows in valid.split(16):
                logits = probe(rows[:, :-1], use_cache=False).logits
                losses.append(torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten()))
            patterns = patterns_of(probe(repeated, output_attentions=True, use_cache=False).attentions)
        validation = torch.stack(losses).mean().item()
        before, copying = previous_token(patterns), induction(patterns, 100)
        run.log(
            step=step,
            seconds=round(budget.elapsed(), 1),
            tokens=step * recipe["rows"] * width,
            training_loss=round(training_loss, 4),
            validation_loss=round(validation, 4),
            best_previous_token=round(before.max().item(), 4),
            best_induction=round(copying.max().item(), 4),
            previous_token=[[round(x, 3) for x in row] for row in before.tolist()],
            induction=[[round(x, 3) for x in row] for row in copying.tolist()],
        )
        run.offer(averaged.model, validation, final)

    model.train()
    compiled = use_compiled(loss_of, *train.draw(recipe["rows"], recipe["repeated_share"]))
    optimizer.zero_grad(set_to_none=True)
    print(f"gpt first step after {budget.elapsed():.0f} s", flush=True)
    occasions = Occasions(budget, recipe["looks"])
    step, total, since = 0, torch.zeros((), device=device), 0
    while budget.spent() < 1.0:
        loss = compiled(*train.draw(recipe["rows"], recipe["repeated_share"]))
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
