"""Figures of `builtin:vit`: accuracy on the CIFAR-10 test images, and which heads look at neighbouring patches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from evaluate_gpt import best
from head_scores import patch_neighbour, patterns_of
from train_vit import normalise, read_mosaic
from transformers import AutoModelForImageClassification


@torch.no_grad()
def evaluate_vit(folder: Path, data: Path) -> dict:
    model = AutoModelForImageClassification.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    images = torch.from_numpy(read_mosaic(data / "cifar10" / "test.webp"))
    labels = torch.from_numpy(np.load(data / "cifar10" / "labels.npz")["test"].astype(np.int64))
    guesses = torch.cat([model(normalise(part.float() / 255)).logits.argmax(-1) for part in images.split(250)])
    right = guesses == labels
    names = model.config.id2label
    patterns = patterns_of(model(normalise(images[:200].float() / 255), output_attentions=True).attentions)
    side = model.config.image_size // model.config.patch_size
    near = patch_neighbour(patterns, side)
    rows = torch.arange(side * side) // side
    uniform = torch.full((1, 1, 1, side * side + 1, side * side + 1), 1.0 / (side * side + 1))
    to_class = patterns[..., 1:, 0].mean(dim=(1, 3))
    same_row = (rows[:, None] == rows[None, :]) & ~torch.eye(side * side, dtype=torch.bool)
    among = patterns[..., 1:, 1:]
    in_row = ((among * same_row).sum(-1) / among.sum(-1).clamp_min(1e-9)).mean(dim=(1, 3))
    return {
        "test_accuracy": round(right.float().mean().item(), 4),
        "test_images": len(labels),
        "accuracy_by_class": {
            names[index]: round(right[labels == index].float().mean().item(), 3) for index in range(len(names))
        },
        "heads": {
            "patch_neighbour": best(near) | {"chance": round(patch_neighbour(uniform, side).item(), 4)},
            "same_row": best(in_row) | {"chance": round((side - 1) / (side * side), 4)},
            "patches_to_class_token": best(to_class) | {"chance": round(1 / (side * side + 1), 4)},
        },
    }
