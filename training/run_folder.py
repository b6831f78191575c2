"""What a training run leaves behind: a log in JSON lines and the best weights so far, as half-precision safetensors."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import logging

logging.disable_progress_bar()


class RunFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.log_path = folder / "training_log.jsonl"
        self.log_path.write_text("")
        self.best = float("inf")
        self.last_save = 0.0

    def log(self, **row: object) -> None:
        with self.log_path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        numbers = {name: value for name, value in row.items() if not isinstance(value, list)}
        print(self.folder.name, json.dumps(numbers), flush=True)

    def offer(self, model: PreTrainedModel, validation: float, final: bool = False) -> None:
        """Saves the weights when they are the best so far on validation data (lower is better).

        Writing is limited to one save in 20 seconds; the final offer is always considered.
        """
        if validation < self.best and (final or time.monotonic() - self.last_save > 20):
            self.best = validation
            self.last_save = time.monotonic()
            half = copy.deepcopy(model).to("cpu", torch.float16)
            half.save_pretrained(self.folder)


def use_compiled(function: Callable[..., Tensor], *example: Tensor) -> Callable[..., Tensor]:
    """The compiled function if compiling works on this machine, else the function as it is."""
    if not torch.cuda.is_available():
        return function
    try:
        compiled = torch.compile(function, dynamic=False)
        compiled(*example).backward()
        return compiled
    except Exception as error:  # whatever the compiler raises, training must go on
        print(f"not compiled: {type(error).__name__}: {str(error)[:400]}", flush=True)
        torch._dynamo.reset()
        return function


class AveragedWeights:
    """An exponential moving average of the weights, kept in a second model that is used for validation and saved."""

    def __init__(self, model: PreTrainedModel, decay: float) -> None:
        self.model = copy.deepcopy(model).eval()
        self.decay = decay
        self.steps = 0
        self.source = [parameter.data for parameter in model.parameters()]
        self.target = [parameter.data for parameter in self.model.parameters()]

    @torch.no_grad()
    def update(self) -> None:
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self.target, self.source, 1.0 - decay)


def optimizer_for(model: PreTrainedModel, rate: float, decay: float, betas: tuple[float, float]) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices only, not on biases, norms and positions."""
    matrices = [p for n, p in model.named_parameters() if p.ndim >= 2 and "position" not in n and "wpe" not in n]
    chosen = {id(parameter) for parameter in matrices}
    others = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}],
        lr=rate,
        betas=betas,
        fused=torch.cuda.is_available(),
    )


def update(optimizer: torch.optim.Optimizer, model: PreTrainedModel, rate: float) -> None:
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def chosen_device() -> torch.device:
    torch.set_float32_matmul_precision("high")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
