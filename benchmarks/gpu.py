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
from gpu_check import DEVICE, check, devices, forward
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import headscope as hs
from headscope.attention import Formula, Mask, attend_fused, hopper
from headscope.choices import Record
from headscope.models.capture.session import Observer, Session

RESULTS = Path(__file__).parents[1] / ".benchmarks"
SHAPES = {"gpt2": (12, 12, 64), "llama": (32, 8, 128)}


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


def graphs(lengths: list[int], batch: int, layers: int, rounds: int, names: list[str]) -> list[dict]:
    """Short inputs as a CUDA graph on both sides: a plain pass, and one that records `heads` into pinned memory."""
    rows = []
    for name in names:
        plain = build(name, max(lengths), layers)
        model = hs.Model(build(name, max(lengths), layers), verify=False)
        for n in lengths:
            tokens = torch.randint(0, 30000, (batch, n), device=DEVICE)
            replays = {"plain": as_graph(plain_on(plain, tokens)), "heads": as_graph(heads_of(model, tokens))}
            calls = {side: lambda replay=replay: replay for side, replay in replays.items()}
            times = medians(calls, 3 * rounds)
            rows.append({"model": name, "T": n, "batch": batch, "ms": times})
            ratio = times["heads"] / times["plain"]
            print(f"graph {name} T={n} batch {batch}: plain {times['plain']:.2f} ms | heads {ratio:.3f}", flush=True)
        plain = model = None
        gc.collect()
        torch.cuda.empty_cache()
    return rows


def plain_on(module: torch.nn.Module, tokens: torch.Tensor) -> Callable[[], None]:
    """A pass of the plain model over these tokens."""
    return lambda: forward(module, tokens, use_cache=True)


class ToHost(Observer):
    """Copies records to pinned memory, the same in every pass, beside the model's own work."""

    def __init__(self):
        self.stream = torch.cuda.Stream()
        self.hosts: dict[tuple, torch.Tensor] = {}
        self.records: list = []

    def layer(self, captured) -> None:
        """Everything that a layer left, one copy for each piece of memory."""
        self.stream.wait_stream(torch.cuda.current_stream())
        for index, record in enumerate(captured.records):
            pieces = {
                tensor.untyped_storage().data_ptr(): tensor.untyped_storage()
                for tensor in record.vectors_and_figures().values()
            }
            with torch.cuda.stream(self.stream):
                for place, storage in enumerate(pieces.values()):
                    source = torch.empty(0, dtype=torch.uint8, device=DEVICE).set_(storage)
                    name = (record.site, index, place, len(source))
                    if name not in self.hosts:
                        self.hosts[name] = torch.empty(len(source), dtype=torch.uint8, pin_memory=True)
                    self.hosts[name].copy_(source, non_blocking=True)
            self.records.append(record)

    def join(self) -> None:
        """The copies become part of what the current stream waits for."""
        torch.cuda.current_stream().wait_stream(self.stream)


def heads_of(model: hs.Model, tokens: torch.Tensor) -> Callable[[], None]:
    """A pass over these tokens that records `heads` into pinned memory."""
    to_host = ToHost()

    def recorded() -> None:
        to_host.records.clear()
        with Session(model, record="heads", keep="device", observers=[to_host]):
            forward(model.module, tokens, use_cache=True)
            to_host.join()

    return recorded


def as_graph(call: Callable[[], None]) -> Callable[[], None]:
    """A call as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


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


def models(
    lengths: list[int], layers: int, rounds: int, names: list[str], records: list[Record], batch: int
) -> list[dict]:
    """Whole models: plain SDPA against recording, and the memory of both."""
    rows = []
    for name in names:
        plain = build(name, max(lengths), layers)
        model = hs.Model(build(name, max(lengths), layers), verify=False)
        for n in lengths:
            calls: dict[str, Callable] = {"plain": plain_pass(plain, n, batch)}
            calls |= {record: recorded_pass(model, record, n, batch) for record in records}
            times, peaks = medians(calls, rounds), {key: peak(call) for key, call in calls.items()}
            rows.append({"model": name, "T": n, "batch": batch, "ms": times, "peak": peaks})
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


def plain_pass(module: torch.nn.Module, length: int, batch: int = 1) -> Callable:
    """Prepares a pass of the plain model over fresh tokens."""

    def prepare() -> Callable:
        tokens = torch.randint(0, 30000, (batch, length), device=DEVICE)
        return lambda: forward(module, tokens)

    return prepare


def recorded_pass(model: hs.Model, record: Record, length: int, batch: int = 1) -> Callable:
    """Prepares a pass that records."""

    def prepare() -> Callable:
        tokens = torch.randint(0, 30000, (batch, length), device=DEVICE)

        def recorded() -> None:
            with Session(model, record=record):
                forward(model.module, tokens)

        return recorded

    return prepare


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
    parser.add_argument("parts", nargs="*", default=["check", "devices", "op", "models", "graph", "longest", "tile"])
    parser.add_argument("--lengths", type=int, nargs="+", default=[8192, 32768])
    parser.add_argument("--layers", type=int, default=8, help="layers of the Llama-8B-like model")
    parser.add_argument("--batch", type=int, default=1, help="inputs of a pass, for models and graph")
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
        elif part == "devices":
            results[part] = devices(1500)
        elif part == "graph":
            short = [n for n in options.lengths if n <= 1024] or [512, 1024]
            results[part] = graphs(short, options.batch, options.layers, options.rounds, options.models)
        elif part == "tile":
            results[part] = tiles(131072, options.rounds)
        elif part == "models":
            results[part] = models(
                options.lengths, options.layers, options.rounds, options.models, options.records, options.batch
            )
        print(f"[{part}: {time.perf_counter() - begun:.0f} s]", flush=True)
        (options.output / "gpu.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
