"""What pruning saves: a GPT-2-small shape with random weights, two thirds of its heads removed, beside the original.

Promise: at T=512 and batch 16 on a CPU, the slim model makes at least 1.15 × as many forward passes in the same time.
"evenly" leaves 4 heads in each of 12 layers; "unevenly" as many in all, from none to 8 a layer, as L0 leaves them.
Both models run in one process with Transformers' own SDPA and take turns; medians. "all" computes the logits of every
token, "last" of the last token alone, as generation does.

python benchmarks/pruned_speed.py                     # a few minutes on two cores
python benchmarks/pruned_speed.py --clock cpu --threads 1    # on a machine with other work
"""

import argparse
import json
import time
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from headscope.models import Model
from headscope.models.slimming import slim_module
from headscope.pruning.size_and_speed import forward_flops, forward_seconds, n_parameters

RESULTS = Path(__file__).parents[1] / ".benchmarks"
N_LAYERS, N_HEADS = 12, 12
LEFT = {"evenly": [4] * N_LAYERS, "unevenly": [0, 1, 2, 3, 4, 6, 8, 8, 6, 5, 3, 2]}
BAR = 1.15
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def main() -> None:
    """Measure, print a table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of torch. Default: 2.")
    parser.add_argument("--rounds", type=int, default=5, help="Rounds in which the models take turns. Default: 5.")
    parser.add_argument("--length", type=int, default=512, help="Tokens of an input. Default: 512.")
    parser.add_argument("--batch", type=int, nargs="+", default=[16, 1], help="Batch sizes. Default: 16 1.")
    parser.add_argument("--logits", nargs="+", choices=["all", "last"], default=["all", "last"], help="Default: both.")
    parser.add_argument(
        "--device", nargs="+", choices=["cpu", "cuda"], help="Default: cpu, and cuda where there is one."
    )
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="Time that counts. Default: wall.")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    original = Model(GPT2LMHeadModel(GPT2Config(n_positions=options.length)).eval(), verify=False)
    slim_models = {name: slim_model(original, counts) for name, counts in LEFT.items()}
    setup = f"{options.threads} threads, {options.rounds} rounds, {options.clock} time"
    print(f"{date.today():%d %B %Y}, torch {torch.__version__}, {setup}")
    print(f"{'device':<7}{'batch':>6}{'logits':>7}  {'pruned':<10}{'original':>10}{'slim':>10}{'times':>7}")
    rows = []
    for device in options.device or (["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]):
        for model in [original, *slim_models.values()]:
            model.module.to(device)
        for batch in options.batch:
            for logits in options.logits:
                rows += measure(original, slim_models, batch, logits, options)
    ratios = {name: flops_ratio(original, model, options.length) for name, model in slim_models.items()}
    for name, model in slim_models.items():
        shares = f"{n_parameters(model) / n_parameters(original):.3f} of the parameters"
        print(f"{name}: {shares}; the original needs {ratios[name]:.3f} x the operations (logits of every token)")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "pruned_speed.json").write_text(json.dumps({"runs": rows, "flops": ratios}, indent=1))
    promised = [row["times"] for row in rows if row["device"] == "cpu" and row["batch"] == 16]
    if promised:
        print(f"the promise of {BAR} x at batch 16 on the CPU is {'kept' if min(promised) >= BAR else 'NOT kept'}")


def slim_model(original: Model, counts: list[int]) -> Model:
    """The original with so many heads in each layer: heads of random places, as the weights are random too."""
    generator = torch.Generator().manual_seed(0)
    heads = [
        layer.site.head(int(place))
        for layer, count in zip(original.layout.layers, counts, strict=True)
        for place in torch.randperm(N_HEADS, generator=generator)[:count]
    ]
    return Model(slim_module(original, heads), verify=False)


def measure(
    original: Model, slim_models: dict[str, Model], batch: int, logits: str, options: Any
) -> list[dict[str, Any]]:
    """Time the original and both slim models in turns, and print a row for each slim model."""
    models = [original, *slim_models.values()]
    for model in models:
        use_attention(model, "sdpa")  # nothing of Headscope is in what is timed
    ids = torch.randint(0, 50257, (batch, options.length), generator=torch.Generator().manual_seed(1))
    inputs: dict[str, Any] = {"input_ids": ids.to(original.device), "use_cache": False}
    inputs["logits_to_keep"] = 0 if logits == "all" else 1
    seconds = forward_seconds(models, inputs, rounds=options.rounds, clock=CLOCKS[options.clock])
    rows = []
    for name, own_seconds in zip(slim_models, seconds[1:], strict=True):
        row = {"device": original.device.type, "batch": batch, "logits": logits, "pruned": name}
        row |= {"original": seconds[0], "slim": own_seconds, "times": seconds[0] / own_seconds}
        rows.append(row)
        print(
            f"{row['device']:<7}{batch:>6}{logits:>7}  {name:<10}{seconds[0]:>9.3f}s{own_seconds:>9.3f}s"
            f"{row['times']:>7.2f}",
            flush=True,
        )
    return rows


def use_attention(model: Model, name: str) -> None:
    """Have Transformers call this attention function."""
    module: Any = model.module
    module.set_attn_implementation(name)


def flops_ratio(original: Model, model: Model, length: int) -> float:
    """How many times as many operations the original needs for one example."""
    for own in (original, model):
        use_attention(own, "headscope")  # which tells the lengths that attention sees
    inputs = {"input_ids": torch.zeros(1, length, dtype=torch.long, device=original.device)}
    return forward_flops(original, inputs).total / forward_flops(model, inputs).total


if __name__ == "__main__":
    main()
