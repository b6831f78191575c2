"""t-SNE of every head's 20,000 points on a GPU: how long 144 heads take, and how near their KL is to openTSNE's.

Promise: at most 5 minutes for 144 heads, and a KL divergence at most 5 % above openTSNE's on three heads. Points are
queries and keys of six heads of `builtin:bert` on sentences of Wikipedia; openTSNE draws three of them on a processor.

python benchmarks/atlas_tsne.py points.safetensors            # here: the points, and openTSNE's maps (10 minutes)
python benchmarks/atlas_tsne.py points.safetensors --seconds 60   # on a machine with a GPU: needs torch alone
"""

import argparse
import json
import lzma
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from headscope.atlases.exact_tsne import divergence, exact_tsne, joint_affinities
from headscope.atlases.projection import PERPLEXITY, principal_components, project

SHARED = Path(__file__).parents[2] / "shared"
HEADS = ("L0H0", "L2H3", "L4H6", "L1H5", "L3H0", "L5H7")
N_POINTS, N_COMPARED, N_HEADS = 20_000, 3, 144


def prepare(file: Path) -> None:
    """Write the points of six heads, and openTSNE's maps of three."""
    import headscope as hs

    with lzma.open(SHARED / "data" / "wiki_auto_valid" / "valid.tsv.xz", "rt", encoding="utf-8") as lines:
        texts = list(dict.fromkeys(line.split("\t")[0] for line in lines))
    atlas = hs.atlas("builtin:bert", texts, points=N_POINTS, heads=HEADS, map=None, scores=False, truncate=True)
    tensors = {head: atlas.vectors(head).points("scaled").half() for head in HEADS}
    for head in HEADS[:N_COMPARED]:
        tensors[f"{head}.map"] = project(tensors[head].double(), "tsne")
        save_file(tensors, file)


def measure(file: Path, limit: float) -> None:
    tensors = load_file(file)
    ratios, times = {}, []
    begun = time.perf_counter()
    for number in range(N_HEADS):
        head = HEADS[number % len(HEADS)]
        start = time.perf_counter()
        points = tensors[head].float().cuda()
        drawn = exact_tsne(points, principal_components(points, 2), perplexity=PERPLEXITY)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        if number < N_COMPARED:
            affinities = joint_affinities(points, PERPLEXITY)
            other = tensors[f"{head}.map"].float().cuda()
            ratios[head] = divergence(drawn, affinities) / divergence(other, affinities)
            print(head, f"{times[-1]:.2f} s, KL over openTSNE's {ratios[head]:.3f}", flush=True)
        if time.perf_counter() - begun > limit:
            break
    per_head = sum(times[1:]) / max(1, len(times) - 1)  # the first compiles
    print(json.dumps({
        "points": {head: len(tensors[head]) for head in HEADS}, "heads drawn": len(times), "first, s": times[0],
        "per head, s": per_head, "144 heads, s": times[0] + per_head * (N_HEADS - 1), "KL over openTSNE's": ratios,
    }))  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0, help="stop after this many")
    options = parser.parse_args()
    if torch.cuda.is_available():
        measure(options.file, options.seconds)
    else:
        prepare(options.file)
