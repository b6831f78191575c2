"""Trains `builtin:vit`, a ViT with patches of 4 x 4 pixels, on CIFAR-10.

python training/train_vit.py --pack .train/pack --out .train/runs/vit --seconds 1200
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from budget import Budget, Occasions
from head_scores import patch_neighbour, patterns_of
from image_augmentation import cut_out, mix, move, recolour
from PIL import Image
from plain_forward import vit_logits
from run_folder import AveragedWeights, RunFolder, chosen_device, optimizer_for, update, use_compiled
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
VALIDATION_IMAGES = 2_000


def read_mosaic(path: Path) -> np.ndarray:
    """10,000 images [image, channel, row, column] from a mosaic of 100 x 100 tiles."""
    mosaic = np.asarray(Image.open(path).convert("RGB"))
    tiles = mosaic.reshape(100, 32, 100, 32, 3).transpose(0, 2, 4, 1, 3)
    return tiles.reshape(10_000, 3, 32, 32)


def training_images(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    images = np.concatenate([read_mosaic(folder / f"train_{part}.webp") for part in range(1, 6)])
    return images, np.load(folder / "labels.npz")["train"].astype(np.int64)


def normalise(images: Tensor) -> Tensor:
    mean = torch.tensor(MEAN, device=images.device)[None, :, None, None]
    return (images - mean) / torch.tensor(DEVIATION, device=images.device)[None, :, None, None]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pack", type=Path, default=Path(".train/pack"))
    arguments.add_argument("--out", type=Path, default=Path(".train/runs/vit"))
    arguments.add_argument("--config", type=Path, default=Path(__file__).parent / "configs" / "vit.json")
    arguments.add_argument("--seconds", type=float, default=1200)
    arguments.add_argument("--start-from", type=Path, help="a folder whose weights to go on from")
    arguments.add_argument("--overrides", default="{}", help="recipe settings to change, as JSON")
    options = arguments.parse_args()
    settings = json.loads(options.config.read_text())
    recipe = settings["recipe"] | json.loads(options.overrides)
    budget, run = Budget(options.seconds), RunFolder(options.out)
    torch.manual_seed(recipe["seed"])
    device = chosen_device()

    images, labels = training_images(options.pack / "cifar10")
    names = (options.pack / "cifar10" / "classes.txt").read_text().split()
    config = ViTConfig(
        **settings["model"],
        id2label=dict(enumerate(names)),
        label2id={name: index for index, name in enumerate(names)},
    )
    order = np.random.default_rng(0).permutation(len(images))
    validation, training = order[:VALIDATION_IMAGES], order[VALIDATION_IMAGES:]
    train_images = torch.from_numpy(images[training]).to(device)
    targets = torch.eye(len(names), device=device)[torch.from_numpy(labels[training]).to(device)]
    targets = targets * (1 - recipe["smoothing"]) + recipe["smoothing"] / len(names)
    valid_images = normalise(torch.from_numpy(images[validation]).to(device).float() / 255)
    valid_labels = torch.from_numpy(labels[validation]).to(device)
    print(f"vit data ready after {budget.elapsed():.0f} s", flush=True)

    model = ViTForImageClassification(config).to(device)
    if options.start_from:
        trained = ViTForImageClassification.from_pretrained(options.start_from, dtype=torch.float32)
        model.load_state_dict(trained.state_dict())
    averaged = AveragedWeights(model, recipe["average"])
    probe = ViTForImageClassification._from_config(config, attn_implementation="eager").to(device).eval()
    optimizer = optimizer_for(model, recipe["rate"], recipe["decay"], (0.9, 0.99))
    rows = recipe["rows"]

    def loss_of(pixels: Tensor, wanted: Tensor) -> Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = vit_logits(model, pixels, recipe["drop_depth"])
        return -(wanted * logits.float().log_softmax(-1)).sum(-1).mean()

    @torch.no_grad()
    def batches() -> list[tuple[Tensor, Tensor]]:
        """Several batches augmented in one go: the many small operations cost the same for all together."""
        chosen = torch.randint(0, len(train_images), (rows * recipe["batches_at_once"],), device=device)
        pixels = cut_out(recolour(move(train_images[chosen].float() / 255)))
        # The last tenth of the time is on whole images: the model is used on whole images.
        late = budget.first_step is not None and budget.spent() > 0.92
        wanted = targets[chosen]
        pixels = normalise(pixels)
        result = []
        for part, goal in zip(pixels.split(rows), wanted.split(rows), strict=True):
            result.append((part, goal) if late else mix(part, goal, recipe["cut_share"], recipe["blend_share"]))
        return result

    @torch.no_grad()
    def look(step: int, training_loss: float, final: bool = False) -> None:
        probe.load_state_dict(averaged.model.state_dict())
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = torch.cat([probe(part).logits.float() for part in valid_images.split(500)])
            patterns = patterns_of(probe(valid_images[:64], output_attentions=True).attentions)
        accuracy = (logits.argmax(-1) == valid_labels).float().mean().item()
        near = patch_neighbour(patterns, config.image_size // config.patch_size)
        run.log(
            step=step,
            seconds=round(budget.elapsed(), 1),
            epochs=round(step * rows / len(train_images), 2),
            training_loss=round(training_loss, 4),
            validation_loss=round(torch.nn.functional.cross_entropy(logits, valid_labels).item(), 4),
            validation_accuracy=round(accuracy, 4),
            best_patch_neighbour=round(near.max().item(), 4),
            patch_neighbour=[[round(x, 3) for x in row] for row in near.tolist()],
        )
        run.offer(averaged.model, 1.0 - accuracy, final)

    model.train()
    compiled = use_compiled(loss_of, *batches()[0])
    optimizer.zero_grad(set_to_none=True)
    print(f"vit first step after {budget.elapsed():.0f} s", flush=True)
    occasions = Occasions(budget, recipe["looks"])
    step, total, since = 0, torch.zeros((), device=device), 0
    while budget.spent() < 1.0:
        for pixels, wanted in batches():
            loss = compiled(pixels, wanted)
            loss.backward()
            update(optimizer, model, recipe["rate"] * budget.rate(warm_up=0.05))
            averaged.update()
            step, since, total = step + 1, since + 1, total + loss.detach()
        if occasions.now():
            look(step, (total / since).item())
            total, since = torch.zeros((), device=device), 0
    look(step, (total / max(1, since)).item(), final=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, options.out / "state.pt")


if __name__ == "__main__":
    main()
