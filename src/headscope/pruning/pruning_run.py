"""`prune`: which heads a model can do without, at several λ or for a share of heads, and the smaller model."""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from headscope import files
from headscope.errors import Cancelled, CaptureError, HeadscopeWarning, InterventionError
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps
from headscope.pruning.attention_types import layers_of
from headscope.pruning.chosen_point import choose_point
from headscope.pruning.prune_checks import Lambda, check_input, warn_of_few_steps
from headscope.pruning.prune_options import PruneOptions
from headscope.pruning.smaller_model import remove_leftovers, smaller_models_of, write_smaller_models
from headscope.pruning.sweep import UNTOUCHED, PointPlan, SweepRun
from headscope.pruning.sweep_folder import Sweep
from headscope.tasks.learning_task import LearningTask
from headscope.tasks.score import HIGHER_IS_BETTER
from headscope.tasks.task_names import Split
from headscope.tasks.trained_parameters import frozen_checksum
from headscope.tasks.training_data import data_checksum

# Where the search for a λ begins, in nats per head, and the factor by which it widens.
_FIRST_LAMBDA, _WIDER = 0.02, 4.0


def prune(
    model: Model,
    task: LearningTask,
    folder: Path | str,
    *,
    keep: float | None = None,
    lambdas: Lambda | Sequence[Lambda] = (),
    options: PruneOptions | None = None,
    smaller: bool = True,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Sweep:
    """Learn which heads a model can do without, and write the smaller model; the model itself stays as it is.

    `lambdas` are penalties in nats per open head, one or several, each a number for all types of attention or a number
    by type ("encoder", "decoder", "cross", "self"): types without a λ are not pruned. `keep` is the share of heads that
    survive instead, 0 to 1: λ is found by bisection. At each, gates are trained, hardened to 0 and 1, and the model is
    fine-tuned without the pruned heads. Baselines and all settings are in `options`.

    Scores are on test, or on dev where the task has no test. `folder` gets a folder for each point, and `baked/` and
    `slim/` of the chosen point (`smaller=False`: neither). Run again to resume, or with other λ to add points; several
    processes may work on one folder. Ctrl-C keeps the points that are finished, and the last checkpoint.

    >>> from headscope import prune, tasks  # doctest: +SKIP
    >>> task = tasks.language_modelling(train="train.txt", dev="dev.txt")  # doctest: +SKIP
    >>> prune(model, task, "pruned", keep=0.5).chosen.total()  # doctest: +SKIP
    (24, 48)
    """
    options = options or PruneOptions()
    choices = check_input(model, task, keep, lambdas, options)
    run = SweepRun(model, task, _open(model, task, folder), options, cancel=cancel, progress=progress)
    warn_of_few_steps(options, keep, choices)
    try:
        run.make([run.untouched()])
        run.make(_plans(run, _l0_plans(run, choices) if keep is None else _keep_plans(run, keep)))
    except (KeyboardInterrupt, Cancelled):
        _finish(run, keep, smaller)
        raise
    _finish(run, keep, smaller)
    return run.sweep


def sweep_plans(
    model: Model,
    task: LearningTask,
    folder: Path | str,
    lambdas: Lambda | Sequence[Lambda],
    options: PruneOptions,
    *,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> list[tuple[SweepRun, PointPlan]]:
    """What `prune` would make at several λ, for `make_points`, which makes the points of several such lists in turn."""
    choices = check_input(model, task, None, lambdas, options)
    run = SweepRun(model, task, _open(model, task, folder), options, cancel=cancel, progress=progress)
    return [(run, plan) for plan in [run.untouched(), *_plans(run, _l0_plans(run, choices))]]


def _l0_plans(run: SweepRun, choices: Sequence[Lambda]) -> list[PointPlan]:
    return [run.l0(_by_type(run, choice), seed) for choice in choices for seed in _seeds(run)]


def _keep_plans(run: SweepRun, keep: float) -> list[PointPlan]:
    return [find_keep(run, keep, seed) for seed in _seeds(run)]


def find_keep(run: SweepRun, keep: float, seed: int) -> PointPlan:
    """The plan of a point with a share of the heads: bisection of log λ on the number of open gates."""
    options, target = run.options, run.n_kept(keep)
    n_heads = run.n_kept(1.0)
    low, high, value = 0.0, math.inf, _FIRST_LAMBDA * (len(run.layers) if options.gates.penalty == "mean" else 1)
    trials: list[tuple[float, int, str]] = []
    steps = Steps("finding λ", options.keep_trials, run.progress, run.cancel)
    while len(trials) < options.keep_trials:
        value = float(f"{value:.3g}")
        plan = run.l0({layer.type: value for layer in run.layers}, seed)
        run.make([plan])
        n_open = run.n_open(run.sweep.point(plan.id).mask)
        trials.append((value, n_open, plan.id))
        steps.add(note=f"λ = {value:g} keeps {n_open} of {n_heads} heads; wanted: {target}")
        if abs(n_open - target) <= options.keep_tolerance * n_heads or options.steps_to_close() is not None:
            break  # found; or no λ can close a gate in so few steps
        low, high = (value, high) if n_open > target else (low, value)
        value = _WIDER * low if high == math.inf else high / _WIDER if low == 0.0 else math.sqrt(low * high)
    value, n_open, source = min(trials, key=lambda trial: abs(trial[1] - target))
    if abs(n_open - target) > options.keep_tolerance * n_heads:
        change = f"{n_open - target} heads were removed" if n_open > target else f"{target - n_open} heads were added"
        warnings.warn(
            f"no λ of {len(trials)} left {target} of {n_heads} heads open: {change} by log α after λ = {value:g}. "
            f"Train longer, or {_other_remedy(low, high)}.",
            HeadscopeWarning,
            stacklevel=3,
        )
    tried = [[trial_value, trial_open] for trial_value, trial_open, _ in trials]
    search = {"lambda": value, "open": n_open, "target": target, "of": n_heads, "trials": tried}
    return run.exactly(keep, source, seed, search)


def _other_remedy(low: float, high: float) -> str:
    """What helps beside more steps where λ was sought between these bounds."""
    if high == math.inf:
        return "raise the learning rate of the gates: the largest λ left too many heads open"
    if low == 0.0:
        return "lower the learning rate of the gates: the smallest λ left too few heads open"
    return "try more λ (PruneOptions: keep_trials)"


def _plans(run: SweepRun, l0_plans: Sequence[PointPlan]) -> list[PointPlan]:
    """L0 points, the same fine-tuned, and the baselines at each."""
    options, plans = run.options, list(l0_plans)
    if options.tuning is not None:
        plans += [run.tuned(plan.id, plan.seed) for plan in l0_plans]
    if options.baselines and options.tuning is not None:
        plans += [run.untouched(tuned=True, seed=seed) for seed in range(options.seeds)]
    return plans + [baseline for plan in l0_plans for baseline in baseline_plans(run, plan.id)]


def baseline_plans(run: SweepRun, like: str) -> list[PointPlan]:
    """The baselines at an L0 point: without fine-tuning (with several seeds if random), and with it for every seed."""
    options, plans, seeds = run.options, [], range(run.options.seeds)
    for method in options.baselines:
        for allocation in _allocations(run, method):
            masks = seeds if method == "random" else seeds[:1]
            plans += [run.baseline(method, allocation, like, seed=seed, tuned=False) for seed in masks]
            if options.tuning is not None:
                plans += [run.baseline(method, allocation, like, seed=seed, tuned=True) for seed in seeds]
    return plans


def _allocations(run: SweepRun, method: str) -> list[str | None]:
    """How a method shares heads out: each allocation that gives heads of its own."""
    if method == "l0":
        return [None]
    same = {"normalised"} if method == "random" else set[str]()  # a random order has no norm
    if len({layer.type for layer in run.layers}) == 1 and "own" in run.options.allocations:
        same.add("l0")  # as many of the one type are as many of all
    return [allocation for allocation in run.options.allocations if allocation not in same]


def _seeds(run: SweepRun) -> range:
    first = run.options.training.seed
    return range(first, first + run.options.l0_seeds)


def _by_type(run: SweepRun, choice: Lambda) -> dict[str, float]:
    if isinstance(choice, Mapping):
        return dict(choice)
    return {layer.type: float(choice) for layer in run.layers}


def _open(model: Model, task: LearningTask, folder: Path | str) -> Sweep:
    """The sweep in the folder, begun where there is none; refused where it is of another model, task or data."""
    data: dict[str, Any] = {}
    for split in get_args(Split):
        corpus = getattr(task, split)
        if corpus is not None:
            data[split] = {"name": corpus.name, "n": sum(1 for _ in corpus), "sha256": data_checksum(corpus)}
    return Sweep.create(
        folder,
        model=model.name,
        model_class=type(model.module).__name__,
        task=task.name,
        metric=task.metric,
        higher_is_better=HIGHER_IS_BETTER[task.metric],
        layers=layers_of(model),
        data=data,
        options={"weights": frozen_checksum(model.module, {}), "label_smoothing": task.label_smoothing},
        baseline=UNTOUCHED,
    )


def _finish(run: SweepRun, keep: float | None, smaller: bool) -> None:
    """Choose a point of those that are there, and write its smaller model."""
    folder = run.sweep.folder
    with files.lock(folder / "points"):
        remove_leftovers(folder)
        name = "" if keep is None else run.keep_name(keep)
        point = choose_point(run.sweep, keep, run.options.score_tolerance, name=name)
        if point is None:
            return
        run.sweep.choose(point.id)
        if not smaller or smaller_models_of(folder, point.id, point.mask) is not None:
            return
        try:
            write_smaller_models(run.sweep.load(run.model, point), point.mask, folder, point=point.id)
        except (InterventionError, CaptureError) as error:  # all points, and the choice, stand
            warnings.warn(
                f"no smaller model of the point {point.id} was written: {error}", HeadscopeWarning, stacklevel=3
            )
