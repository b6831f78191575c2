"""What an atlas costs, as ratios: against the plain forward pass, umap-learn, and fewer heads.

    python benchmarks/atlas.py [forward] [umap] [memory] [picture]

Times are those of the processor, in one thread, so that another program on the machine does not count; medians.
"""

import argparse
import json
import lzma
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import headscope as hs
from headscope.atlases.atlas_index import MapName, map_file, read_steps, write_map
from headscope.atlases.nearest_neighbours import trustworthiness
from headscope.atlases.projection import principal_components
from headscope.atlases.umap_layout import umap_layout

SHARED = Path(__file__).parents[2] / "shared"
MODEL = SHARED / "weights" / "all-minilm-l6-v2-fp16"
N_TEXTS, N_POINTS = 200, 4000


def texts() -> list[str]:
    """Sentences of Wikipedia, each once."""
    with lzma.open(SHARED / "data" / "wiki_auto_valid" / "valid.tsv.xz", "rt", encoding="utf-8") as lines:
        return list(dict.fromkeys(line.split("\t")[0] for line in lines))[:N_TEXTS]


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def plain_forward(model: hs.Model, corpus: list[str]) -> None:
    """The model alone, in batches of like length, as a run makes them."""
    lines = sorted(corpus, key=lambda text: len(model.processor(text)["input_ids"]))
    with torch.inference_mode():
        for first in range(0, len(lines), 64):
            batch = model.processor(lines[first : first + 64], padding=True, return_tensors="pt")
            model.module(**batch)


def forward(n: int = 5) -> dict[str, float]:
    """Corpus to the PCA map of all heads, capture included, over the plain batched forward."""
    model, corpus = hs.load(MODEL), texts()
    plain, whole = [], []
    for _ in range(n + 1):  # the first warms up
        plain.append(seconds(lambda: plain_forward(model, corpus)))
        with tempfile.TemporaryDirectory() as folder:
            whole.append(seconds(lambda: hs.atlas(model, corpus, Path(folder) / "a", points=None, scores=False)))
    ratios = [all_of / alone for all_of, alone in zip(whole[1:], plain[1:], strict=True)]
    return {
        "plain forward, s": statistics.median(plain[1:]),
        "corpus to PCA maps, s": statistics.median(whole[1:]),
        "ratio (promise: 2.5)": statistics.median(ratios),
    }


def umap() -> dict[str, float]:
    """One head after another with umap-learn, over ours; and how far both keep neighbours."""
    warnings.simplefilter("ignore")
    from umap import UMAP

    model = hs.load(MODEL)
    atlas = hs.atlas(model, texts(), points=N_POINTS, scores=False, map=None)
    clouds = [atlas.vectors(head).points() for head in ("L0H0", "L2H5", "L4H7")]
    UMAP(random_state=0, n_jobs=1).fit_transform(clouds[0][:300].numpy())  # compiles
    umap_layout(clouds[0][:300], principal_components(clouds[0][:300], 2))
    ours, theirs, kept_by_ours, kept_by_theirs = [], [], [], []
    for points in clouds:
        maps: dict[str, torch.Tensor] = {}

        def lay_out(points: torch.Tensor = points, maps: dict = maps) -> None:
            maps["ours"] = umap_layout(points, principal_components(points, 2))

        def reference(points: torch.Tensor = points, maps: dict = maps) -> None:
            maps["theirs"] = torch.from_numpy(UMAP(random_state=0, n_jobs=1).fit_transform(points.float().numpy()))

        ours.append(seconds(lay_out))
        theirs.append(seconds(reference))
        kept_by_ours.append(trustworthiness(points, maps["ours"]))
        kept_by_theirs.append(trustworthiness(points, maps["theirs"]))
    return {
        "points": float(len(clouds[0])),
        "ours, s a head": statistics.median(ours),
        "umap-learn, s a head": statistics.median(theirs),
        "ratio in one thread (promise on 2 cores: 6)": statistics.median(
            [b / a for a, b in zip(ours, theirs, strict=True)]
        ),
        "trustworthiness, ours": statistics.mean(kept_by_ours),
        "trustworthiness, umap-learn": statistics.mean(kept_by_theirs),
        "largest loss of trustworthiness of a head": max(
            b - a for a, b in zip(kept_by_ours, kept_by_theirs, strict=True)
        ),
    }


def peak(heads: str) -> float:
    """The most memory (MB) of a process that makes an atlas of some heads."""
    done = subprocess.run([sys.executable, __file__, "--one", heads], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def memory() -> dict[str, float]:
    few, all_heads = peak("L0"), peak("all")
    return {"12 heads, MB": few, "72 heads, MB": all_heads, "ratio (promise: 1.3)": all_heads / few}


def make_atlas(heads: str) -> None:
    """What `peak` measures."""
    chosen = None if heads == "all" else [heads]
    hs.atlas(hs.load(MODEL), texts(), points=None, scores=False, heads=chosen)
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def picture() -> dict[str, float]:
    """From the folder to the 16-bit points of 144 heads × 20,000 points."""
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        files = [map_file(Path(folder), MapName(), f"L{head // 12}H{head % 12}") for head in range(144)]
        for file in files:
            write_map(file, generator.normal(size=(20_000, 2)))
        start = time.perf_counter()
        for file in files:
            read_steps(file)
        wall = time.perf_counter() - start
    return {"s to read 144 × 20,000 points (promise for the first picture: 2)": wall}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help="forward, umap, memory, picture; all by default")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.one:
        make_atlas(arguments.one)
        return
    parts = {"forward": forward, "umap": umap, "memory": memory, "picture": picture}
    for name in arguments.parts or parts:
        print(name)
        for label, value in parts[name]().items():
            print(f"  {label:66} {value:10.3f}")


if __name__ == "__main__":
    main()
