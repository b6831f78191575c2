"""What watching costs: a GPT-2-small shape with random weights on the CPU, against its own plain SDPA and eager passes.

Promises (ratios of one run; the machine's speed cancels out): a summary at T=4,096 takes at most 1.3 × the plain SDPA
forward and at most 1 GB above its peak memory; T=16,384 completes under 6 GB in all; at T=512 `heads` takes at most
1.3 × eager with output_attentions. Import of headscope: at most 0.3 s.

python benchmarks/capture.py            # everything, a few minutes
python benchmarks/capture.py --quick    # T=512 and T=2,048
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parents[1] / ".benchmarks"


def measure_mode(mode: str, length: int, repeats: int) -> dict:
    """Time and peak memory of one mode, in a process of its own."""
    command = [sys.executable, __file__, "--child", mode, str(length), str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{mode} at {length} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def child(mode: str, length: int, repeats: int) -> None:
    """Run one mode and print what it took."""
    import resource
    import warnings

    warnings.simplefilter("ignore")
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(n_positions=length, attn_implementation="eager" if mode == "eager" else "sdpa")
    module = GPT2LMHeadModel(config).eval()
    ids = torch.randint(0, config.vocab_size, (1, length))
    if mode in ("sdpa", "eager"):

        def run():
            with torch.no_grad():
                return module(ids, logits_to_keep=1, use_cache=False, output_attentions=mode == "eager")
    else:
        import headscope as hs

        model = hs.Model(module)

        def run():
            return model.run(inputs={"input_ids": ids}, record=mode)

    if repeats > 1:
        run()  # warm up
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": min(times), "peak": peak}))


def import_time() -> float:
    """The fastest of five fresh imports."""
    times = []
    for _ in range(5):
        code = "import time; t = time.perf_counter(); import headscope; print(time.perf_counter() - t)"
        times.append(
            float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        )
    return min(times)


def main() -> None:
    """Measure, print a table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="T=512 and T=2,048 only")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], int(options.child[1]), int(options.child[2]))
        return
    plan = [("heads", 512, "eager", 5), ("summary", 512, "sdpa", 5), ("summary", 2048, "sdpa", 3)]
    if not options.quick:
        plan += [("summary", 4096, "sdpa", 2), ("heads", 4096, "sdpa", 2), ("summary", 16384, None, 1)]
    rows = []
    print(f"{'record':<10}{'T':>7}  {'against':<8}{'time':>8}{'ratio':>8}{'peak':>10}{'above':>10}")
    for mode, length, against, repeats in plan:
        cost = measure_mode(mode, length, repeats)
        peer = measure_mode(against, length, repeats) if against else None
        row = {"record": mode, "length": length, "against": against, **cost}
        if peer:
            row |= {"ratio": cost["seconds"] / peer["seconds"], "above": cost["peak"] - peer["peak"]}
        rows.append(row)
        ratio = f"{row['ratio']:.2f}" if peer else "-"
        above = f"{row['above'] / 1e9:.2f} GB" if peer else "-"
        print(
            f"{mode:<10}{length:>7}  {against or '-':<8}{cost['seconds']:>7.2f}s{ratio:>8}"
            f"{cost['peak'] / 1e9:>7.2f} GB{above:>10}",
            flush=True,
        )
    seconds = import_time()
    print(f"import headscope: {seconds:.3f} s")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "capture.json").write_text(json.dumps({"runs": rows, "import_seconds": seconds}, indent=1))


if __name__ == "__main__":
    main()
