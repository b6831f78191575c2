"""Prunes the heads of the built-in models: curves of score against heads kept, with baselines.

    python training/prune_builtin.py translate --out .train/pruned                       # 15 minutes on a core
    python training/prune_builtin.py translate news gpt bert --size full --at-once       # a GPU
    python training/prune_builtin.py translate --table                                   # what there is so far

`translate` uses the split that the model was trained with, and tests on direct pairs alone. `news` is a second domain,
with longer sentences: WMT news until 2018 for training, 2019 and 2020 to judge; the translator is fine-tuned on it
first. `gpt` is judged by bits per byte on held-out text, `bert` by accuracy on SST-2, after training a classifier;
roles are measured on a treebank after pruning. Run again to resume: finished points stay.

`--at-once` runs all studies beside each other in several processes, which share the points. `--seconds` stops them in
time, and `--results FILE` keeps all points but their weights in one file as they come; `--read FILE` makes the folders
of sweeps of it again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import lzma
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pruning_studies import SIZES, STUDIES, adapt, curves, small_curves, write_passages

import headscope as hs
from headscope import files
from headscope.analysis import measure_all, streaming
from headscope.analysis.measures.roles import Verdict, roles
from headscope.corpora import corpus
from headscope.errors import Cancelled, HeadscopeError
from headscope.models.baking import baked_model
from headscope.pruning import PrunePoint, Sweep
from headscope.pruning.pruning_run import sweep_plans
from headscope.pruning.sweep import UNTOUCHED, PointPlan, SweepRun, make_points
from headscope.pruning.sweep_folder import copy_model
from headscope.reports.copying_scores import copying_scores
from headscope.reports.corpus_subset import corpus_subset
from headscope.reports.pruning.survivor_roles import SurvivorRoles, points_to_measure
from headscope.reports.pruning.sweep_report import prune_report, write_files
from headscope.sites import Head, parse

# Seconds between two looks at what is finished.
PAUSE = 10
TREEBANK = Path("ud_english_ewt") / "en_ewt-ud-dev.conllu.xz"


class StudyRun:
    """A study in a folder of its own, `out`/name."""

    def __init__(self, name: str, options: argparse.Namespace, started: float):
        self.name, self.started, self.study, self.size = name, started, STUDIES[name], SIZES[options.size]
        self.data, self.folder, self.is_small = options.data, options.out / name, options.size == "small"
        self.adapted_folder = options.out / f"{name}_adapted"
        self.deadline = started + options.seconds if options.seconds else None
        self.model, self.task = self.study.prepare(self.data, self.study, self.size)
        for split in ("train", "dev", "test"):
            self.task.inputs(self.model, split)
        self.note(f"read {len(list(self.task.data('train'))):,} examples")

    def note(self, text: str) -> None:
        print(f"{time.monotonic() - self.started:6.0f} s  {self.name}: {text}", flush=True)

    def adapt(self) -> None:
        """Train the model for its task, or wait for the process that does, and take its weights."""
        place = self.adapted_folder.with_name(f"{self.name}_turns")
        place.mkdir(parents=True, exist_ok=True)
        with files.lock(place):
            adapt(self.model, self.task, self.study, self.size, self.adapted_folder)
        score = self.task.evaluate(self.model, "dev", batch_size=self.size.batch_size, metric="loss")
        self.note(f"adapted; loss {score.value:.3f}")

    def work(self) -> None:
        """Make points, with any processes that do the same, until all are there or the time is up."""
        stop = threading.Event()
        if self.deadline is not None:
            timer = threading.Timer(max(0.0, self.deadline - time.monotonic()), stop.set)
            timer.daemon = True
            timer.start()
        self.model.module.to("cuda" if torch.cuda.is_available() else "cpu")
        if self.study.adapting_rate is not None:
            self.adapt()
        original = copy_model(self.model)
        original.module.to("cpu")  # roles are measured there: texts pass by themselves
        work: dict[str, Any] = {}
        for lambdas, options in (small_curves if self.is_small else curves)(self.study, self.size):
            plans = sweep_plans(self.model, self.task, self.folder, lambdas, options, cancel=stop) if lambdas else []
            tolerant = FailingPoints if self.deadline else lambda run: run
            work |= {plan.id: (tolerant(run), plan) for run, plan in plans if plan.id not in work}
        try:
            make_points(list(work.values()), cancel=stop, progress=lambda about: self.after(about.note, original))
        except Cancelled:
            self.note("out of time")
        if self.study.measures_roles and not stop.is_set():
            sweep = Sweep.open(self.folder)
            for point in points_to_measure(sweep.points):
                measure_roles(sweep, original, point, self.data / TREEBANK, self.size.role_examples)

    def after(self, name: str, original: hs.Model) -> None:
        """Say what a point scores; measure the roles of its heads where that is part of the study."""
        sweep = Sweep.open(self.folder)
        if name not in sweep.read()["points"]:
            return self.note(f"{name}: failed")
        point = sweep.point(name)
        kept_heads = " / ".join(str(n_kept) for n_kept, _ in point.counts().values())
        self.note(f"{name}: {kept_heads} heads, {point.score.metric} {point.score.value:.3f} ({point.seconds:.0f} s)")
        if self.study.measures_roles and has_roles(point):
            measure_roles(sweep, original, point, self.data / TREEBANK, self.size.role_examples)


class FailingPoints:
    """A run whose points may fail, as when the memory of the GPU is full: others go on, and it is tried again later.
    What needs a point that fails for good waits until the time is up.
    """

    TRIALS = 3

    def __init__(self, run: SweepRun):
        self.run, self.sweep = run, run.sweep
        self.n_failures: Counter[str] = Counter()

    def make_unless_taken(self, plan: PointPlan) -> bool:
        try:
            return self.run.make_unless_taken(plan)
        except Cancelled:
            raise
        except Exception:
            traceback.print_exc()
            self.n_failures[plan.id] += 1
            return self.n_failures[plan.id] >= self.TRIALS
        finally:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()  # the other processes need it


def has_roles(point: PrunePoint) -> bool:
    """Whether figure 8 shows it: the untouched model, L0's points, and random survivors, after fine-tuning."""
    if point.method in ("l0", "random"):
        is_survivor = point.lambda_ is not None or point.allocation == "l0"
        return is_survivor and point.tuning != "none" and point.start == "trained"
    return point.id == UNTOUCHED


def measure_roles(sweep: Sweep, model: hs.Model, point: PrunePoint, treebank: Path, n_examples: int) -> None:
    """Write the verdicts over the survivors into the point's folder, once; by `hs.heads`' measures and criteria."""
    folder = sweep.point_folder(point.id)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.lock(folder, wait=False))
        except HeadscopeError:
            return  # another process is at it
        if (folder / "roles.json").exists():
            return
        examples = corpus_subset(corpus(treebank), n_examples)
        pruned = baked_model(sweep.load(model, point), point.mask.interventions())
        traces = [pruned.run(example.text, truncate=True) for example in examples]
        names = [measure.name for measure in streaming(examples, pruned)]
        scores = measure_all(names, traces, skip=True, examples=examples) | copying_scores(pruned)
        survivors = set(point.mask.heads_kept())
        rows = {str(head): verdict.to_json() for head, verdict in roles(scores).items() if head in survivors}
        files.write_file(folder / "roles.json", json.dumps(rows).encode())


# Processes


def run_beside_each_other(options: argparse.Namespace, started: float) -> bool:
    """Start the processes of all studies, and keep what they finish; whether all went well."""
    command = [sys.executable, __file__, "--worker", "--data", str(options.data), "--out", str(options.out)]
    command += ["--size", options.size, *(["--seconds", str(options.seconds)] if options.seconds else [])]
    names = [name for name in options.studies for _ in range(options.at_once or STUDIES[name].workers)]
    workers, is_late = [subprocess.Popen([*command, name]) for name in names], False
    while any(worker.poll() is None for worker in workers):
        time.sleep(PAUSE)
        write_results(options)
        if options.seconds and time.monotonic() - started > options.seconds + PAUSE:
            is_late = True
            for worker in workers:  # what does not look at the clock
                worker.kill()
    write_results(options)
    return is_late or all(worker.wait() == 0 for worker in workers)


# What came out


def write_results(options: argparse.Namespace) -> None:
    """All that is finished, without weights, in one file."""
    if options.results is None:
        return
    folders = {name: options.out / name for name in options.studies if (options.out / name / "prune.json").exists()}
    texts = {
        name: {str(file.relative_to(folder)): file.read_text() for file in sorted(result_files(folder))}
        for name, folder in folders.items()
    }
    files.write_file(options.results, lzma.compress(json.dumps(texts).encode(), preset=1))


def result_files(folder: Path) -> list[Path]:
    names = ("point.json", "settings.json", "roles.json")
    return [folder / "prune.json", *(file for name in names for file in folder.glob(f"points/*/{name}"))]


def read_results(file: Path, out: Path) -> None:
    """Make the folders of sweeps of such a file; points whose weights are not there are as good for reports."""
    for name, texts in json.loads(lzma.decompress(file.read_bytes())).items():
        for path, text in texts.items():
            place = out / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            files.write_file(place, text.encode())


def table(sweep: Sweep) -> str:
    """The points of a sweep, a row each."""
    types = list(sweep.points[0].counts())
    lines = [f"| point | {' / '.join(types)} | score | 95 % | loss | seconds |", "|---|---|---|---|---|---|"]
    for point in sweep.points:
        counts = " / ".join(str(n_kept) for n_kept, _ in point.counts().values())
        low, high = point.score.interval or (float("nan"), float("nan"))
        loss = "" if point.loss is None else f"{point.loss:.3f}"
        scores = f"{point.score.value:.2f} | {low:.2f} to {high:.2f} | {loss}"
        lines.append(f"| {point.id} | {counts} | {scores} | {point.seconds:.0f} |")
    return "\n".join(lines)


def write_report(sweep: Sweep, n_examples: int) -> None:
    """`report.html` and tables of a sweep, with the roles that were measured when its points were made."""
    report, measured = prune_report(sweep), {}
    for point in sweep.points:
        file = sweep.point_folder(point.id) / "roles.json"
        if file.exists():
            rows = {parse(address): row for address, row in json.loads(file.read_text()).items()}
            verdicts = {head: Verdict.from_json(head, row) for head, row in rows.items() if isinstance(head, Head)}
            measured[point.id] = SurvivorRoles(point, verdicts)
    if measured:
        about = f"Roles on {n_examples} examples of {TREEBANK.name}."
        write_files(replace(report, roles=measured, roles_about=about))
    print(report.page)


def read_arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("studies", nargs="+", choices=tuple(STUDIES))
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments.add_argument("--out", type=Path, default=Path(".train/pruned"))
    arguments.add_argument("--size", choices=tuple(SIZES), default="small")
    beside = "Run all studies beside each other, each in so many processes. Default number: the study's, 15 in all."
    arguments.add_argument("--at-once", type=int, nargs="?", const=0, help=beside)
    arguments.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)  # of --at-once: prints no tables
    arguments.add_argument("--seconds", type=float, help="Stop after so many.")
    arguments.add_argument("--results", type=Path, help="File for all points without weights; needs --at-once.")
    arguments.add_argument("--read", type=Path, help="Make the folders of such a file, and compute nothing.")
    arguments.add_argument("--table", action="store_true", help="Print the points there are, and compute nothing.")
    arguments.add_argument("--report", action="store_true", help="Write report.html of each study.")
    arguments.add_argument("--write-passages", type=Path, help="Write the text of gpt to this folder of data alone.")
    return arguments.parse_args()


def compute(options: argparse.Namespace) -> bool:
    """Make the points of the studies; whether all went well."""
    started = time.monotonic()
    if options.at_once is not None:
        return run_beside_each_other(options, started)
    for name in options.studies:
        StudyRun(name, options, started).work()
    return True


def main() -> None:
    options, is_whole = read_arguments(), True
    torch.set_num_threads(1)
    if options.write_passages:
        return write_passages(options.data, options.write_passages)
    if options.read:
        read_results(options.read, options.out)
    elif not options.table:
        is_whole = compute(options)
    if options.worker:
        return
    for name in options.studies:
        if (options.out / name / "prune.json").exists() and (sweep := Sweep.open(options.out / name)).points:
            print(f"\n{name}\n\n{table(sweep)}", flush=True)
            if options.report:
                write_report(sweep, SIZES[options.size].role_examples)
    if not is_whole:
        sys.exit("some processes failed; run again to resume.")


if __name__ == "__main__":
    main()
