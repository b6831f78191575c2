"""What watching costs on one GPU: medians of CUDA events over fresh random inputs, after a comparison with float64.

What is compared takes turns, so that the swings of the card's clock fall on both. A model's time ends when its records
are in pinned memory on the host.

python benchmarks/gpu.py                     # everything, about five minutes on an H200
python benchmarks/gpu.py check op            # correctness, and the attention operation alone
python benchmarks/gpu.py models --lengths 8192 --layers 32
"""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import headscope as hs
from headscope.attention import (
    Bias,
    Formula,
    Mask,
    attend_fused,
    expand_heads,
    hopper,
    log_denominator,
    scores,
    softmax,
)
from headscope.attention.summaries import N_TOP, cell
from headscope.models.capture.session import Session

RESULTS = Path(__file__).parents[1] / ".benchmarks"
SHAPES = {"gpt2": (12, 12, 64), "llama": (32, 8, 128)}
DEVICE = "cuda"


def medians(calls: dict[str, Callable], rounds: int, hold: int = 0) -> dict[str, float]:
    """Milliseconds of each call, taking turns; each prepares fresh inputs outside the clock.

    `hold` keeps the GPU busy for so many cycles before, so that it never waits for a launch.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            timed = call()
            gc.collect()
            torch.cuda.synchronize()
            torch.cuda._sleep(hold)  # launches queue up behind it
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            timed()
            end.record()
            end.synchronize()
            if turn:  # the first warms up
                times[name].append(begin.elapsed_time(end))
    return {name: statistics.median(values) for name, values in times.items()}


# Correctness


def formulas(n: int, heads: int) -> dict[str, Formula]:
    """Every kind of mask and term."""
    at = torch.arange(n, device=DEVICE)
    causal, start = Mask.causal(n, n, device=DEVICE), (at - 70).clamp_min(0)[None]
    blind = (at + 1).masked_fill(at % 17 == 3, 0)[None]
    dense = torch.rand(1, heads, n, n, device=DEVICE) < 0.3
    random = torch.randn(1, heads, 2 * n - 1, device=DEVICE)
    return {
        "none": Formula(0.125),
        "causal": Formula(0.125, mask=causal),
        "window": Formula(0.125, mask=Mask(n, n, start=start, stop=(at + 1)[None])),
        "padding": Formula(0.125, mask=Mask(n, n, keys=(at >= n // 3)[None])),
        "blind": Formula(0.125, mask=Mask(n, n, stop=blind)),
        "dense": Formula(0.125, mask=Mask(n, n, dense=dense)),
        "softcap": Formula(0.125, softcap=5.0, mask=causal),
        "sinks": Formula(0.125, sinks=torch.randn(heads, device=DEVICE), mask=causal),
        "key bias": Formula(0.125, mask=causal, bias=Bias("key", random[..., :n].contiguous(), n, n)),
        "offset bias": Formula(0.125, bias=Bias("offset", random, n, n)),
        "dense bias": Formula(0.125, bias=Bias("dense", torch.randn(1, 1, n, n, device=DEVICE), n, n)),
    }


def reference(query, key, value, formula: Formula) -> dict[str, torch.Tensor]:
    """Every figure from the whole pattern in float64."""
    n_heads, n, n_keys = query.shape[1], query.shape[2], key.shape[2]
    wide = scores(query.double(), expand_heads(key, n_heads).double(), formula)
    pattern = softmax(wide, formula.sinks)[0]
    away = (torch.arange(n, device=DEVICE)[:, None] - torch.arange(n_keys, device=DEVICE)).abs()
    extra = [-length % cell(length) for length in (n, n_keys)]
    padded = F.pad(pattern, (0, extra[1], 0, extra[0]))
    lowest = torch.finfo(torch.float32).min
    return {
        "mixed": (pattern @ expand_heads(value, n_heads)[0].double()),
        "lse": log_denominator(wide.float(), formula.sinks)[0].clamp_min(lowest),
        "entropy": -torch.special.xlogy(pattern, pattern).sum(-1),
        "max": pattern.amax(-1),
        "distance": (pattern * away).sum(-1) / pattern.sum(-1).clamp_min(1e-30),
        "argmax": pattern.argmax(-1),
        "top_weights": pattern.topk(min(N_TOP, n_keys)).values,
        "received": pattern.mean(1),
        "map": padded.unflatten(2, (-1, cell(n_keys))).unflatten(1, (-1, cell(n))).amax((2, 4)),
        "pattern": pattern,
    }


def errors(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> dict[str, float]:
    """Relative error of each figure; of places, the weight that was missed."""
    pattern = want.pop("pattern")
    report = {}
    for name, expected in want.items():
        actual = got[name].double()
        if name == "argmax":
            chosen = pattern.gather(-1, got[name].long()[..., None])[..., 0]
            report[name] = ((want["max"] - chosen) / want["max"].clamp_min(1e-30)).max().item()
        elif name == "lse":
            report[name] = ((actual - expected.double()).abs() / expected.abs().clamp_min(1)).max().item()
        else:
            actual = actual[..., : expected.shape[-1]]
            report[name] = ((actual - expected.double()).norm() / expected.double().norm().clamp_min(1e-2)).item()
    chosen = pattern.gather(-1, got["top_keys"][..., : want["top_weights"].shape[-1]].long().clamp_min(0))
    report["top_keys"] = (want["top_weights"] - chosen).abs().max().item()
    return report


LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 8e-3}


def jobs() -> list[tuple[int, torch.dtype, str]]:
    """Head sizes, dtypes and formulas to compare; each is compiled anew."""
    every = list(formulas(1, 1))
    some = ["causal", "window", "offset bias"]
    of_some = [(dim, torch.float32) for dim in (64, 128, 256)] + [(80, torch.float16), (16, torch.bfloat16)]
    of_some += [(256, torch.bfloat16)]
    return [(dim, torch.bfloat16, name) for dim in (64, 128) for name in every] + [
        (dim, dtype, name) for dim, dtype in of_some for name in some
    ]


def check(share: tuple[int, int], names: list[str] | None) -> list[dict]:
    """Compare with float64 at ragged lengths: every so many of the jobs, or those of some formulas."""
    rows, n_bad = [], 0
    hopper.DELAYED_FROM = 4096  # so that float64 fits beside it
    # Hopper's kernel takes scores within 4e-6 of each other for equal when it looks for the largest.
    limits = {"argmax": 2e-3}
    chosen = [job for job in jobs() if names is None or job[2] in names]
    for dim, dtype, name in chosen[share[0] :: share[1]]:
        limits["mixed"] = LIMITS[dtype]
        is_delayed = name in ("none", "causal") and dtype == torch.bfloat16 and dim < 256
        for n in (1, 200, 1031, 4500) if is_delayed else (1, 200, 1031):
            sizes = (4, 2, 2)
            query, key, value = (torch.randn(1, h, n, dim, device=DEVICE).to(dtype) for h in sizes)
            query = query * (3 if n == 1031 else 1)
            if n == 4500:  # scores that jump far above all before them
                key[:, :, ::97] *= 30
            formula = formulas(n, 4)[name]
            mixed, summaries = attend_fused(query, key, value, formula, rows_only=False)
            report = errors({"mixed": mixed[0], **summaries[0].tensors()}, reference(query, key, value, formula))
            bad = [figure for figure, error in report.items() if not error <= limits.get(figure, 5e-5)]
            n_bad += len(bad)
            rows.append({"T": n, "dim": dim, "dtype": str(dtype), "formula": name, **report})
            if bad:
                print(
                    f"BAD {name} T={n} d={dim} {dtype}:",
                    *(f"{figure} {report[figure]:.1e}" for figure in bad),
                    flush=True,
                )
    worst = {figure: max(row[figure] for row in rows) for figure in report}
    print(f"{len(rows)} cases, {n_bad} figures off; worst:", *(f"{k} {v:.0e}" for k, v in worst.items()), flush=True)
    return rows


# Speed


def op(lengths: list[int], rounds: int) -> list[dict]:
    """The attention operation alone, causal, against what SDPA picks."""
    rows = []
    for name, (heads, groups, dim) in SHAPES.items():
        for n in lengths:
            formula = Formula(dim**-0.5, mask=Mask.causal(n, n, device=DEVICE))

            def inputs(n=n, heads=heads, groups=groups, dim=dim):
                sizes = (heads, groups, groups)
                return [torch.randn(1, n, h, dim, device=DEVICE, dtype=torch.bfloat16).transpose(1, 2) for h in sizes]

            def sdpa():
                q, k, v = inputs()
                return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

            def fused(rows_only: bool, formula=formula):
                q, k, v = inputs()
                return lambda: attend_fused(q, k, v, formula, rows_only=rows_only)

            calls = {"sdpa": sdpa, "rows": lambda: fused(True), "summary": lambda: fused(False)}
            calls["rows, plain kernels"] = lambda: plain_kernels(fused(True))
            times = medians(calls, rounds, hold=4_000_000)
            rows.append({"shape": name, "T": n, **times})
            ratios = " ".join(f"{k} {v / times['sdpa']:.2f}" for k, v in times.items() if k != "sdpa")
            print(f"op {name} T={n}: sdpa {times['sdpa'] * 1e3:.0f} µs | {ratios}", flush=True)
    return rows


def plain_kernels(call: Callable) -> Callable:
    """The same without the kernel for Hopper."""

    def plain() -> None:
        with plainly():
            call()

    return plain


@contextmanager
def plainly() -> Iterator[None]:
    """The kernels that run on any GPU."""
    applies, hopper.applies = hopper.applies, lambda *_: False
    try:
        yield
    finally:
        hopper.applies = applies


def longest(lengths: list[int]) -> list[dict]:
    """How long an input of the GPT-2-small shape may be."""
    rows = []
    for n in lengths:
        model = hs.Model(build("gpt2", n, 12), verify=False)
        call = recorded_pass(model, "rows", n)
        begun = time.perf_counter()
        bytes_used = peak(call)
        rows.append({"T": n, "peak": bytes_used, "seconds": time.perf_counter() - begun})
        print(f"longest T={n}: {bytes_used / 2**30:.1f} GiB, {rows[-1]['seconds']:.1f} s", flush=True)
        model = None
        gc.collect()
        torch.cuda.empty_cache()
    return rows


def tiles(length: int, rounds: int) -> list[dict]:
    """A rectangle of a head's pattern from queries and keys that stayed on the GPU."""
    config = GPT2Config(n_positions=length, n_layer=1, attn_implementation="sdpa", dtype=torch.bfloat16)
    with torch.device(DEVICE):
        model = hs.Model(GPT2LMHeadModel(config).to(torch.bfloat16).eval(), verify=False)
    with Session(model, record="heads", keep="device") as session:
        forward(model.module, torch.randint(0, 30000, (1, length), device=DEVICE))
    record = next(iter(session.captured.values())).records[0]
    square = [slice(length - 1024, length - 512), slice(length // 2, length // 2 + 512)]
    times = medians({"tile": lambda: lambda: record.pattern(5, *square).cpu()}, rounds)
    print(f"tile of 512 × 512 at T={length}: {times['tile']:.2f} ms", flush=True)
    return [{"T": length, **times}]


def build(name: str, length: int, layers: int) -> torch.nn.Module:
    """A model with random weights."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(DEVICE):
        if name == "gpt2":
            module = GPT2LMHeadModel(GPT2Config(n_positions=length, attn_implementation="sdpa"))
        else:
            config = LlamaConfig(
                vocab_size=32000, hidden_size=4096, num_hidden_layers=layers, num_attention_heads=32,
                num_key_value_heads=8, intermediate_size=14336, max_position_embeddings=length,
                attn_implementation="sdpa",
            )  # fmt: skip
            module = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return module.eval()


def models(lengths: list[int], layers: int, rounds: int, names: list[str], records: list[str]) -> list[dict]:
    """Whole models: plain SDPA against recording, and the memory of both."""
    rows = []
    for name in names:
        plain = build(name, max(lengths), layers)
        model = hs.Model(build(name, max(lengths), layers), verify=False)
        for n in lengths:
            calls: dict[str, Callable] = {"plain": plain_pass(plain, n)}
            calls |= {record: recorded_pass(model, record, n) for record in records}
            times, peaks = medians(calls, rounds), {key: peak(call) for key, call in calls.items()}
            rows.append({"model": name, "T": n, "ms": times, "peak": peaks})
            ratios = " ".join(
                f"{key} {times[key] / times['plain']:.3f} (memory {peaks[key] / peaks['plain']:.2f})" for key in records
            )
            print(
                f"{name} T={n}: plain {times['plain']:.2f} ms, {peaks['plain'] / 2**30:.1f} GiB | {ratios}", flush=True
            )
        plain = model = None
        gc.collect()
        torch.cuda.empty_cache()
    return rows


def plain_pass(module: torch.nn.Module, length: int) -> Callable:
    """Prepares a pass of the plain model over fresh tokens."""

    def prepare() -> Callable:
        tokens = torch.randint(0, 30000, (1, length), device=DEVICE)
        return lambda: forward(module, tokens)

    return prepare


def recorded_pass(model: hs.Model, record: str, length: int) -> Callable:
    """Prepares a pass that records."""

    def prepare() -> Callable:
        tokens = torch.randint(0, 30000, (1, length), device=DEVICE)

        def recorded() -> None:
            with Session(model, record=record):
                forward(model.module, tokens)

        return recorded

    return prepare


@torch.no_grad()
def forward(module: torch.nn.Module, tokens: torch.Tensor) -> None:
    """One pass as generation begins it: the logits of the last position."""
    module(input_ids=tokens, use_cache=False, logits_to_keep=1)


def peak(call: Callable) -> int:
    """Peak bytes on the device while it runs."""
    timed = call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    timed()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


def main() -> None:
    """Measure, print, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["check", "op", "models", "longest", "tile"])
    parser.add_argument("--lengths", type=int, nargs="+", default=[8192, 32768])
    parser.add_argument("--layers", type=int, default=8, help="layers of the Llama-8B-like model")
    parser.add_argument("--models", nargs="+", default=["gpt2", "llama"])
    parser.add_argument("--records", nargs="+", default=["rows", "summary"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), help="check every Nth case from the Ith: I N")
    parser.add_argument("--formulas", nargs="+", help="check these alone, such as causal")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True, parents=True)
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    results: dict[str, list[dict]] = {}
    for part in options.parts:
        begun = time.perf_counter()
        if part == "check":
            results[part] = check(tuple(options.share), options.formulas)
        elif part == "op":
            results[part] = op(options.lengths, options.rounds)
        elif part == "longest":
            results[part] = longest([131072, 262144])
        elif part == "tile":
            results[part] = tiles(131072, options.rounds)
        elif part == "models":
            results[part] = models(options.lengths, options.layers, options.rounds, options.models, options.records)
        print(f"[{part}: {time.perf_counter() - begun:.0f} s]", flush=True)
        (options.output / "gpu.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
