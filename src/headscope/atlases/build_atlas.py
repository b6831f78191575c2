"""Making an atlas: a sample of the corpus through the model, its tokens, maps and scores; resumed where it stopped."""

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from headscope.analysis.measures.catalogue import MEASURES
from headscope.analysis.measures.corpus_contents import Inventory
from headscope.atlases.atlas_folder import Atlas
from headscope.atlases.atlas_index import (
    RUN,
    TOKENS,
    AtlasPlace,
    Cloud,
    check_options,
    places_json,
    write_index,
)
from headscope.atlases.atlas_vectors import VectorFiles
from headscope.atlases.distance_correlation import Pairs, distance_correlation
from headscope.atlases.example_sample import ExampleSample, sample_examples
from headscope.atlases.point_capture import PointCapture
from headscope.atlases.projection import project
from headscope.atlases.token_table import joined_rows, write_table
from headscope.choices import AtlasSpace, Coordinates, KeyScale, MapMethod
from headscope.corpora import Corpus, corpus
from headscope.errors import InputError
from headscope.files import write_file
from headscope.models import Model
from headscope.progress import Cancel, OnProgress
from headscope.runs.corpus_run import Run, run
from headscope.runs.engine import Source, as_model
from headscope.runs.shard import Shard
from headscope.sites import Site, find, parse

# Tokens of a shard: what is held of all heads at a time.
_SHARD_TOKENS = 2048
# Beside vectors, what anomalies are found by.
_MEASURES = ("first_token", "entropy")


def atlas(
    model: Source,
    source: Any,
    folder: str | Path | None = None,
    *,
    map: MapMethod | None = "pca",
    dims: int = 2,
    coordinates: Coordinates = "scaled",
    points: int | None = 4000,
    space: AtlasSpace = "query_key",
    scale: KeyScale = "norms",
    heads: Sequence[str] | None = None,
    scores: bool = True,
    seed: int = 0,
    truncate: bool = False,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Atlas:
    """The queries and keys of a corpus as points, for every head: capture, maps and scores, kept in `folder`.

    `source` is a corpus or whatever `hs.corpus` takes. A head has at most `points` points (queries and keys together);
    examples are drawn at random until there are enough, and None takes all. `map=None` draws no maps yet. Stopped by
    Ctrl-C or killed, the same call goes on. Without a folder the atlas is temporary.

    >>> import headscope as hs
    >>> atlas = hs.atlas("builtin:gpt", ["The doctor asked the nurse a question.", "She did not answer."], scores=False)
    >>> atlas.map("L3H2").shape
    (30, 2)
    """
    _check(points, space, scale, map, coordinates)
    loaded = as_model(model)
    addresses = None if heads is None else _heads_of(loaded, heads)
    options = {"space": space, "scale": scale, "points": points, "heads": addresses, "seed": seed, "truncate": truncate}
    examples = source if isinstance(source, Corpus) else corpus(source)
    if folder is None:
        finished = _temporary_atlas(loaded, examples, options, progress, cancel)
    else:
        finished = _captured_atlas(loaded, examples, Path(folder).expanduser(), options, progress, cancel)
    if map is not None:
        finished.draw(map, dims=dims, coordinates=coordinates, progress=progress, cancel=cancel)
    if scores:
        finished.scores(progress=progress, cancel=cancel)
    return finished


def _temporary_atlas(model: Model, source: Corpus, *arguments: Any) -> Atlas:
    """An atlas without maps, in a folder that is deleted with it."""
    place = Path(tempfile.mkdtemp(prefix="headscope-atlas-"))
    try:
        finished = _captured_atlas(model, source, place, *arguments)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    weakref.finalize(finished, shutil.rmtree, place, ignore_errors=True)
    return finished


def _captured_atlas(
    model: Model,
    source: Corpus,
    folder: Path,
    options: dict[str, Any],
    progress: OnProgress | None,
    cancel: Cancel | None,
) -> Atlas:
    """An atlas without maps."""
    check_options(folder, options)
    points, is_joint = options["points"], options["space"] == "query_key"
    # A token is two points, a query and a key, or one of another space.
    most = points // 2 if points is not None and is_joint else points
    sample = sample_examples(model, source, most, seed=options["seed"], truncate=options["truncate"])
    _capture(model, source, sample, folder, options, progress, cancel)
    return Atlas(folder)


def compile_kernels() -> None:
    """Compile what UMAP and scores run: some seconds, once per installation, then read from numba's cache.

    For a server, before anybody clicks. (Where the cache cannot be written, it takes as long in every process.)
    """
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(32, 3)))
    project(points, "umap")
    starts = np.array([0, len(points)])
    vectors = points.numpy()
    distance_correlation(vectors, vectors, vectors, vectors, Pairs(starts, starts, is_causal=False))


def _check(points: int | None, *choices: Any) -> None:
    kinds = (AtlasSpace, KeyScale, MapMethod, Coordinates)
    for value, kind in zip(choices, kinds, strict=True):
        if value is not None and value not in get_args(kind):
            raise InputError(f"{value!r} is none of {', '.join(get_args(kind))}.")
    if points is not None and points < 2:
        raise InputError(f"an atlas has at least 2 points a head, got {points}.")


def _heads_of(model: Model, heads: Sequence[str]) -> list[str]:
    known = model.heads
    return sorted({str(head) for address in heads for head in find(address, known)})


def _capture(
    model: Model,
    source: Corpus,
    sample: ExampleSample,
    folder: Path,
    options: dict[str, Any],
    progress: OnProgress | None,
    cancel: Cancel | None,
) -> None:
    """Run the sample through the model, and write tokens and index."""
    measures = [
        PointCapture(str(folder / RUN), options["space"], options["heads"], scale=options["scale"]),
        *(MEASURES[name].over(Inventory()) for name in _MEASURES),
    ]
    mean_length = sample.n_tokens / len(sample.examples)
    done = run(
        model,
        sample.corpus(source),
        measures,
        folder / RUN,
        shard_size=max(1, min(256, int(_SHARD_TOKENS / mean_length))),
        seed=options["seed"],
        truncate=options["truncate"],
        progress=progress,
        cancel=cancel,
    )
    files = VectorFiles(folder / RUN)
    rows = _token_rows(files)
    tokens, file = write_table(rows), folder / TOKENS
    if not file.is_file() or file.read_bytes() != tokens:  # missing, or damaged
        write_file(file, tokens)
    write_index(folder, _index(done, files, rows, source, sample, options))


def _token_rows(files: VectorFiles) -> list[dict[str, Any]]:
    parts = []
    for path in files.paths("tokens", "parquet"):
        with Shard(path).open() as parquet:
            parts.append(parquet.read().to_pylist())
    return joined_rows(parts)


def _index(
    done: Run,
    files: VectorFiles,
    rows: list[dict[str, Any]],
    source: Corpus,
    sample: ExampleSample,
    options: dict[str, Any],
) -> dict[str, Any]:
    n_tokens: dict[str, int] = {}
    for row in rows:
        n_tokens[row["stack"]] = n_tokens.get(row["stack"], 0) + 1
    sites: dict[str, Any] = {}
    absent: dict[str, str] = {}
    for about in files.about():
        for site, seen in about["sites"].items():
            is_whole = seen["is_whole"] and sites.get(site, seen)["is_whole"]
            sites[site] = {**seen, "is_whole": is_whole}
        absent |= about["absent"]
    places = _places(sites, absent, files.shapes(), options)
    if not places:
        reasons = "; ".join(f"{site}: {reason}" for site, reason in absent.items()) or "no layer was seen"
        raise InputError(f"there is nothing to draw of {done.manifest['model']['name']}: {reasons}.")
    return {
        "model": done.manifest["model"],
        "corpus": {
            "name": source.name,
            "kind": source.kind,
            "about": source.about,
            "n_examples": sample.n_in_corpus,
            "n_sampled": len({row["example"] for row in rows}),
            "sha256": sample.sha256,
        },
        "options": options,
        "n_tokens": n_tokens,
        "places": places_json(places),
        "sites": {site: {"scaling": about["scaling"], "is_whole": about["is_whole"]} for site, about in sites.items()},
        "absent": absent,
        "has_vectors": True,
    }


def _places(
    sites: dict[str, Any], absent: dict[str, str], shapes: dict[str, tuple[int, ...]], options: dict[str, Any]
) -> list[AtlasPlace]:
    """Every head (or depth) with where its vectors are: heads of a group share their keys."""
    space, places = options["space"], []
    for address, about in sites.items():
        site = parse(address)
        if address in absent or not isinstance(site, Site):
            continue
        own, other = site.stack, about["key_stack"]
        if space == "residual":
            places.append(AtlasPlace(address, address, (Cloud("residual", own, f"{address}/residual", 0),)))
            continue
        if space == "query_key":
            n_heads, n_groups = shapes[f"{address}/query"][0], shapes[f"{address}/key"][0]
        else:
            n_heads, n_groups = shapes[f"{address}/{space}"][0], 1
        for index in range(n_heads):
            head = str(site.head(index))
            if options["heads"] is not None and head not in options["heads"]:
                continue
            group = index * n_groups // n_heads
            joint = (Cloud("query", own, f"{address}/query", index), Cloud("key", other, f"{address}/key", group))
            alone = (Cloud(space, other if space == "value" else own, f"{address}/{space}", index),)
            places.append(AtlasPlace(head, address, joint if space == "query_key" else alone, about["is_causal"]))
    return places
