"""Augments a batch of small images on the device: geometry, colour, cut-out, and mixing of two images."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def uniform(images: Tensor, low: float, high: float, share: float, neutral: float) -> Tensor:
    """A random value per image in [low, high] for a share of the images, the neutral value for the rest."""
    count = images.shape[0]
    value = torch.empty(count, device=images.device).uniform_(low, high)
    chosen = torch.rand(count, device=images.device) < share
    return torch.where(chosen, value, torch.full_like(value, neutral))


def move(images: Tensor) -> Tensor:
    """Flip, shift by up to 4 pixels, and for some images turn, shear and scale: one resampling for all."""
    side = images.shape[-1]
    turn = uniform(images, -0.35, 0.35, 0.25, 0.0)
    shear_x = uniform(images, -0.25, 0.25, 0.25, 0.0)
    shear_y = uniform(images, -0.25, 0.25, 0.15, 0.0)
    scale = uniform(images, 0.8, 1.2, 0.25, 1.0)
    flip = torch.where(torch.rand_like(turn) < 0.5, -1.0, 1.0)
    # Whole pixels: an image that is only shifted and flipped stays sharp.
    shift = torch.randint(-4, 5, (2, images.shape[0]), device=images.device).float() * 2 / side
    cosine, sine = turn.cos() * scale, turn.sin() * scale
    first = torch.stack([(cosine + shear_x * sine) * flip, -sine + shear_x * cosine, shift[0]], dim=1)
    second = torch.stack([(sine + shear_y * cosine) * flip, cosine - shear_y * sine, shift[1]], dim=1)
    grid = functional.affine_grid(torch.stack([first, second], dim=1), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def recolour(images: Tensor) -> Tensor:
    """Brightness, contrast and saturation, and now and then posterising, solarising or a stretched range."""

    def column(value: Tensor) -> Tensor:
        return value[:, None, None, None]

    images = images * column(uniform(images, 0.6, 1.4, 0.4, 1.0))
    grey = images.mean(dim=(1, 2, 3), keepdim=True)
    images = grey + (images - grey) * column(uniform(images, 0.5, 1.6, 0.4, 1.0))
    shade = images.mean(dim=1, keepdim=True)
    images = shade + (images - shade) * column(uniform(images, 0.2, 1.8, 0.4, 1.0))
    images = images.clamp(0, 1)
    coarse = (images * 15).round() / 15
    images = torch.where(column(uniform(images, 1, 1, 0.1, 0)) > 0, coarse, images)
    threshold = column(uniform(images, 0.4, 1.0, 0.1, 2.0))
    images = torch.where(images > threshold, 1 - images, images)
    low, high = images.amin(dim=(2, 3), keepdim=True), images.amax(dim=(2, 3), keepdim=True)
    stretched = (images - low) / (high - low).clamp_min(0.1)
    return torch.where(column(uniform(images, 1, 1, 0.15, 0)) > 0, stretched, images)


def box(images: Tensor, height: Tensor, width: Tensor) -> Tensor:
    """A true rectangle [image, 1, side, side] around a random centre, cut at the border."""
    side = images.shape[-1]
    at = torch.arange(side, device=images.device)
    row = torch.rand(images.shape[0], device=images.device) * side
    column = torch.rand(images.shape[0], device=images.device) * side
    inside_row = (at - row[:, None]).abs() < height[:, None] / 2
    inside_column = (at - column[:, None]).abs() < width[:, None] / 2
    return (inside_row[:, :, None] & inside_column[:, None, :])[:, None]


def cut_out(images: Tensor, share: float = 0.3) -> Tensor:
    size = torch.empty(2, images.shape[0], device=images.device).uniform_(4, 14)
    hole = box(images, size[0], size[1]) & (torch.rand_like(size[0]) < share)[:, None, None, None]
    return torch.where(hole, torch.rand_like(images), images)


def mix(images: Tensor, targets: Tensor, cut_share: float, blend_share: float) -> tuple[Tensor, Tensor]:
    """For some images a patch of another image is pasted in, others are blended; targets follow the areas."""
    count, side = images.shape[0], images.shape[-1]
    other = torch.randperm(count, device=images.device)
    choice = torch.rand(count, device=images.device)
    weight = torch.rand(count, device=images.device)
    edge = side * (1 - weight).sqrt()
    pasted = box(images, edge, edge) & (choice < cut_share)[:, None, None, None]
    blend = torch.distributions.Beta(0.8, 0.8).sample((count,)).to(images.device)
    blend = torch.where((choice >= cut_share) & (choice < cut_share + blend_share), blend, torch.ones_like(blend))
    result = torch.where(pasted, images[other], images)
    result = result * blend[:, None, None, None] + images[other] * (1 - blend[:, None, None, None])
    own = (1 - pasted.float().mean(dim=(1, 2, 3))) * blend
    return result, targets * own[:, None] + targets[other] * (1 - own[:, None])
