"""Damaged folders of every kind that is read back: what is read is the truth, or the damage is refused in words."""

import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_sweep
import pytest
import torch
from hostile.damaged_files import damaged
from hostile.trial import SEED, Section, size

import headscope as hs
from headscope.errors import HeadscopeError, HeadscopeWarning
from headscope.pruning import Sweep

TEXTS = ["the cat sat on the mat.", "it was late.", "a bird sang in the tree."]


def write_trace(folder: Path, model: hs.Model) -> None:
    model.run(TEXTS[0], record="full").save(folder)


def read_trace(folder: Path) -> Any:
    trace = hs.load_trace(folder)
    patterns = [trace.pattern(head).tolist() for head in trace.heads]
    return patterns, [token.text for token in trace.tokens["main"]]


def write_edits(folder: Path, model: hs.Model) -> None:
    del model
    edits = [hs.silence("L0H1"), hs.replace_pattern("L1H0", torch.full((4, 4), 0.25).tril())]
    hs.save_interventions(edits, folder / "edits.json")


def read_edits(folder: Path) -> Any:
    return [repr(edit) + str(vars(edit.edit)) for edit in hs.load_interventions(folder / "edits.json")]


def write_report(folder: Path, model: hs.Model) -> None:
    hs.reports.heads(model, TEXTS, folder, relevance=False, importance=False)


def read_report(folder: Path) -> Any:
    report = hs.reports.HeadsReport.load(folder)
    return {name: repr(scores.to_json()) for name, scores in report.scores.items()}


def write_atlas(folder: Path, model: hs.Model) -> None:
    hs.atlas(model, TEXTS, folder, heads=["L0H0", "L4H3"]).draw("pca")


def read_atlas(folder: Path) -> Any:
    atlas = hs.open_atlas(folder)
    maps = {name: atlas.map(name).tolist() for name in atlas.addresses}
    tokens = atlas.sql("select * from tokens order by all").fetchall()
    return maps, repr(tokens), repr(dict(atlas.scores())), atlas.vectors(atlas.addresses[0]).vectors[0].tolist()


def write_sweep(folder: Path, model: hs.Model) -> None:
    sweep = made_sweep.begin(folder, model, task="language_modelling", metric="bits_per_byte", higher_is_better=False)
    points = [
        made_sweep.made_point(f"p{n}", made_sweep.first_heads(model, self=n), 1.0 + n / 10, metric="bits_per_byte")
        for n in (12, 24, 48)
    ]
    made_sweep.add_points(sweep, points)


def read_sweep(folder: Path) -> Any:
    return [(point.id, point.counts(), repr(point.score), repr(point.mask)) for point in Sweep.open(folder).points]


KINDS: dict[str, tuple[Callable[[Path, hs.Model], None], Callable[[Path], Any]]] = {
    "trace": (write_trace, read_trace),
    "edits": (write_edits, read_edits),
    "report": (write_report, read_report),
    "atlas": (write_atlas, read_atlas),
    "sweep": (write_sweep, read_sweep),
}


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_folders(kind: str, section: Section, tmp_path: Path) -> None:
    write, read = KINDS[kind]
    whole, folder = tmp_path / "whole", tmp_path / "damaged"
    write(whole, hs.load("builtin:gpt"))
    truth, chance = read(whole), random.Random(f"{SEED} {kind}")
    names = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    for _ in range(size(12, 300)):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        name = chance.choice(names)
        (folder / name).write_bytes(damaged((whole / name).read_bytes(), chance))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                is_true = read(folder) == truth
            except HeadscopeError:
                section.outcomes["refused"] += 1
                continue
            except Exception as error:
                section.problem(f"{name}: {type(error).__name__}: {str(error)[:200]}")
                continue
        if is_true:
            section.outcomes["read as it was"] += 1
        elif any(issubclass(warning.category, HeadscopeWarning) for warning in caught):
            section.outcomes["read with a warning"] += 1
        else:
            section.problem(f"{name}: other numbers, and no word")
