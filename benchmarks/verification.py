"""What verification at load costs, as a ratio to the model's own eager forward of 32 tokens (or one image).

Promise: at most 2.5. Models of a millisecond a pass may cost more: there it is the fixed work that is measured.

python benchmarks/verification.py                       # the built-in models
python benchmarks/verification.py MODEL [MODEL ...]
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch

import headscope as hs
from headscope.models.capture.probe_inputs import probe_inputs
from headscope.models.capture.verification import verify_at_load, verify_decoding
from headscope.models.capture.verification_runs import own_attention

RATIO, N_TOKENS, N_ROUNDS = 2.5, 32, 15
BUILTIN = ("builtin:gpt", "builtin:bert", "builtin:translate", "builtin:vit")


def seconds(call: Callable[[], object]) -> float:
    """Processor time of one call."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def forward_inputs(model: hs.Model) -> dict[str, torch.Tensor]:
    """32 tokens where the model has positions for them."""
    inputs = probe_inputs(model.module) or {}
    if "input_ids" in inputs:
        positions = getattr(model.config, "max_position_embeddings", None) or N_TOKENS
        length = min(N_TOKENS, positions)
        inputs["input_ids"] = inputs["input_ids"].repeat(1, N_TOKENS)[:, :length]
    return {name: model.to_device(tensor) for name, tensor in inputs.items()}


def measure(name: str) -> float:
    """Print one model's line; gives its ratio."""
    model = hs.load(name)
    inputs = forward_inputs(model)

    rounds = []
    for _ in range(N_ROUNDS):
        with own_attention(model, "eager"), torch.no_grad():
            plain = seconds(lambda: model.module(**inputs))
        rounds.append((plain, seconds(lambda: verify_at_load(model)), seconds(lambda: verify_decoding(model))))
    plain, verifying, decoding = (statistics.median(column) for column in zip(*rounds, strict=True))
    times = f"forward {plain * 1e3:.1f} ms, verification {verifying / plain:.2f} ×, decoding {decoding / plain:.2f} ×"
    print(f"{name}: {model.verification.line}; {times}")
    return verifying / plain


def main() -> None:
    """One line a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=BUILTIN)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    ratios = {name: measure(name) for name in arguments.models}
    above = [name for name, ratio in ratios.items() if ratio > RATIO]
    print(f"promised: at most {RATIO} ×; above it: {', '.join(above) or 'none'}")


if __name__ == "__main__":
    main()
