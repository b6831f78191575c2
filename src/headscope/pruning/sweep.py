"""The points of a sweep: each is made by itself, once, by whichever process comes to it first."""

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from headscope import files
from headscope.errors import HeadscopeError, InputError, LoadError
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Progress, Steps, stop_if
from headscope.pruning.allocation import group_sizes, heads_of, keep_highest, keep_like, unit_layers
from headscope.pruning.head_mask import HeadMask
from headscope.pruning.l0_training import gated_layers, train_gates, tune
from headscope.pruning.prune_options import PruneOptions
from headscope.pruning.rankings import rank
from headscope.pruning.sweep_folder import PrunePoint, Sweep, copy_model
from headscope.scores import Scores
from headscope.tasks.learning_task import LearningTask
from headscope.tasks.score import Score

# The untouched model, and what a point says it was fine-tuned with.
UNTOUCHED, FIXED_MASK = "none", "fixed mask"
# Methods that score heads on the first examples of train.
RANKED = ("importance", "relevance", "confidence")
_SETTINGS, _FIT = "settings.json", "fit"
_REMEDY = "Remove its folder, and prune again."
# Seconds between looks at points that other processes make.
_PAUSE = 0.5


@dataclass(frozen=True, eq=False)
class PointPlan:
    """A point to be made, the settings that decide it, and the points that it needs."""

    id: str
    settings: Mapping[str, Any]
    make: Callable[[], PrunePoint]
    needs: tuple[str, ...] = ()
    seed: int = 0


class SweepRun:
    """Makes the points of a sweep. `model` is the original; it stays as it is."""

    def __init__(
        self,
        model: Model,
        task: LearningTask,
        sweep: Sweep,
        options: PruneOptions,
        *,
        cancel: Cancel | None = None,
        progress: OnProgress | None = None,
    ):
        self.model, self.task, self.sweep, self.options = model, task, sweep, options
        self.cancel, self.progress = cancel, progress
        self.layers, self.whole = gated_layers(model, options), HeadMask.full(model)
        self.split: Any = "test" if task.test is not None else "dev"
        self._scores: dict[tuple[str, int], Scores] = {}

    # Making points

    def make(self, plans: Sequence[PointPlan]) -> None:
        """Make the points that are not there yet. Several processes may do so at once: each takes free points."""
        make_points([(self, plan) for plan in plans], progress=self.progress, cancel=self.cancel)

    def make_unless_taken(self, plan: PointPlan) -> bool:
        """Make a point unless it is there; False where another process is making it."""
        stop_if(self.cancel)
        folder = self.sweep.point_folder(plan.id)
        files.make_folder(folder)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(files.lock(folder, wait=False))
            except LoadError:
                raise
            except HeadscopeError:
                return False
            files.remove_unfinished(folder, is_locked=True)
            self._check_settings(plan)
            if plan.id not in self.sweep.read()["points"]:
                started = time.monotonic()
                point = plan.make()
                self.sweep.add(replace(point, seconds=time.monotonic() - started))
            shutil.rmtree(folder / _FIT, ignore_errors=True)  # checkpoints that nothing needs any more
        return True

    def _check_settings(self, plan: PointPlan) -> None:
        """Refuse a point, finished or not, that was begun with other settings."""
        file = self.sweep.point_folder(plan.id) / _SETTINGS
        settings = json.loads(json.dumps(plan.settings))
        if not file.exists():
            files.write_file(file, json.dumps(files.with_checksum(settings), indent=1).encode())
            return
        before = files.read_json(file, _REMEDY)
        if not files.take_checksum(before, file, _REMEDY):
            raise LoadError(f"{file} is damaged: its checksum is missing. {_REMEDY}")
        changed = [name for name, value in settings.items() if before.get(name) != value]
        if changed:
            name = changed[0]
            raise InputError(
                f"{self.sweep.folder} has the point {plan.id} with other settings ({name} was {before.get(name)}, now "
                f"{settings.get(name)}): prune with the same, or choose another folder."
            )

    # Plans

    def untouched(self, *, tuned: bool = False, seed: int = 0) -> PointPlan:
        """The model as it came; or fine-tuned for as long as baselines are, with all its heads."""
        trained = "-encoder" if self.options.tuned_parameters() == "encoder" else ""
        name = f"{UNTOUCHED}-tuned{trained}-{self.baseline_steps()}-s{seed}" if tuned else UNTOUCHED
        return self._fixed(name, UNTOUCHED, lambda: self.whole, seed=seed, tuned=tuned)

    def l0(self, lambda_by_type: Mapping[str, float], seed: int) -> PointPlan:
        """L0 training at a λ."""
        options = self.options
        types = {layer.type for layer in self.layers}
        name = f"l0-{_lambda_name(lambda_by_type, types)}{_variant(options)}-s{seed}"

        def make() -> PrunePoint:
            model = copy_model(self.model)
            settings = {"folder": self.sweep.point_folder(name) / _FIT, "seed": seed, **self._hooks(name)}
            trained = train_gates(model, self.task, lambda_by_type, options, **settings)
            point = self._point(name, "l0", trained.mask, model)
            about = {"parameters": options.parameters, "start": options.training.start, "seed": seed}
            gates = {"log_alpha": trained.log_alpha, "p_open": trained.p_open, "history": trained.history}
            gates |= {"dev": self._on_dev(model, trained.mask, point.score)}
            return replace(point, lambda_=dict(lambda_by_type), steps=options.training.steps, **about, **gates)

        return PointPlan(name, options.l0_settings(lambda_by_type, seed), make, seed=seed)

    def exactly(self, keep: float, source: str, seed: int, search: Mapping[str, Any]) -> PointPlan:
        """An L0 point with heads added or removed by log α until exactly `keep` of them survive."""
        name = f"{self.keep_name(keep)}{seed}"

        def make() -> PrunePoint:
            point = self.sweep.point(source)
            assert point.log_alpha is not None
            scores = {
                site.head(index): value for site, row in point.log_alpha.items() for index, value in enumerate(row)
            }
            sizes = group_sizes(self.layers, self.options.gates.per)
            mask = keep_highest(self.whole, scores, self.n_kept(keep), group_sizes=sizes)
            model = self.sweep.load(self.model, point)
            score, loss = self._evaluate(model, mask)
            changed = {"removed": len(_lost(point.mask, mask)), "added": len(_lost(mask, point.mask))}
            about = {"score": score, "loss": loss, "dev": self._on_dev(model, mask, score)}
            return replace(point, id=name, mask=mask, keep=keep, search={**search, **changed}, **about)

        settings = {"keep": keep, "source": source}
        return PointPlan(name, settings, make, (source,), seed)

    def tuned(self, source: str, seed: int) -> PointPlan:
        """The weights of an L0 point fine-tuned with its mask fixed."""
        name, options = f"{source}-tuned", self.options
        assert options.tuning is not None
        steps = options.tuning.steps

        def make() -> PrunePoint:
            point = self.sweep.point(source)
            model = copy_model(self.sweep.load(self.model, point))
            history = self._tune(model, name, point.mask, steps, seed)
            pruned = self._point(name, "l0", point.mask, model)
            about = {"start": point.start, "parameters": point.parameters, "lambda_": point.lambda_}
            about |= {"keep": point.keep, "search": point.search, "seed": seed, "like": source}
            about |= {"dev": self._on_dev(model, point.mask, pruned.score)}
            return replace(pruned, tuning=FIXED_MASK, steps=point.steps + steps, history=history, **about)

        return PointPlan(name, self._tuning_settings(steps, seed), make, (source,), seed)

    def baseline(self, method: str, allocation: str | None, like: str, *, seed: int, tuned: bool) -> PointPlan:
        """As many heads as an L0 point has, chosen in another way on the weights from before."""
        chosen = f"{method}-{allocation}" if allocation else f"{method}-mask"
        name = f"{chosen}-like-{like}-s{seed}{'-tuned' if tuned else ''}"
        fields = {"allocation": allocation, "like": like, "normalised": allocation == "normalised"}
        return self._fixed(
            name, method, lambda: self._choose(method, allocation, like, seed), seed=seed, tuned=tuned, **fields
        )

    def _fixed(
        self, name: str, method: str, choose: Callable[[], HeadMask], *, seed: int, tuned: bool, **fields: Any
    ) -> PointPlan:
        """A mask on the model's own weights, fine-tuned or not."""
        steps = self.baseline_steps() if tuned else 0

        def make() -> PrunePoint:
            mask, model = choose(), copy_model(self.model) if tuned else self.model
            history = self._tune(model, name, mask, steps, seed) if tuned else ()
            trained = {"parameters": self.options.tuned_parameters() if tuned else "none"}
            trained |= {"tuning": FIXED_MASK if tuned else "none", "steps": steps, "history": history, "seed": seed}
            point = self._point(name, method, mask, model)
            if name == UNTOUCHED:  # what chosen points are compared with
                trained |= {"dev": self._on_dev(model, mask, point.score)}
            return replace(point, **trained, **fields)

        settings: dict[str, Any] = {"method": method}
        if method in RANKED:
            settings |= {"examples": self.options.ranking_examples}
        if tuned:
            settings |= self._tuning_settings(steps, seed)
        like = fields.get("like")
        return PointPlan(name, settings, make, () if like is None else (like,), seed)

    # Parts of points

    def keep_name(self, keep: float) -> str:
        """What the ids of the points with this share of heads begin with; a seed follows."""
        return f"l0-keep{keep:g}{_variant(self.options)}-s"

    def n_kept(self, keep: float) -> int:
        """How many heads survive where this share of those with gates does."""
        return round(keep * len(heads_of(self.layers)))

    def n_open(self, mask: HeadMask) -> int:
        """How many of the heads with gates survive."""
        return len(set(mask.heads_kept()) & set(heads_of(self.layers)))

    def baseline_steps(self) -> int:
        """Fine-tuning of baselines is as long as all training of the weights of L0 points."""
        assert self.options.tuning is not None
        return self.options.tuning.steps + (0 if self.options.parameters == "gates" else self.options.training.steps)

    def _choose(self, method: str, allocation: str | None, like: str, seed: int) -> HeadMask:
        """As many heads as an L0 point has, of the types of attention that had gates there."""
        source = self.sweep.point(like)
        if method == "l0":
            return source.mask
        key = (method, seed if method == "random" else 0)
        if key not in self._scores:
            settings = {"n_examples": self.options.ranking_examples, "seed": seed, **self._hooks()}
            self._scores[key] = rank(method, self.model, self.task, **settings)
        layers = [layer for layer in self.layers if source.lambda_ is None or layer.type in source.lambda_]
        scores = {head: self._scores[key][head] for head in heads_of(layers)}
        sizes = group_sizes(layers, self.options.gates.per)
        if allocation == "l0":
            return keep_like(self.whole, scores, source.mask, group_sizes=sizes)
        scores = unit_layers(scores) if allocation == "normalised" else scores
        return keep_highest(self.whole, scores, len(set(source.mask.heads_kept()) & set(scores)), group_sizes=sizes)

    def _tune(self, model: Model, name: str, mask: HeadMask, steps: int, seed: int) -> tuple[dict[str, Any], ...]:
        settings = {"folder": self.sweep.point_folder(name) / _FIT, "steps": steps, "seed": seed, **self._hooks(name)}
        return tune(model, self.task, mask, self.options, **settings)

    def _tuning_settings(self, steps: int, seed: int) -> dict[str, Any]:
        assert self.options.tuning is not None
        tuning = self.options.tuning.to_json() | {"steps": steps, "seed": seed}
        return {"tuning": tuning, "trained": self.options.tuned_parameters(), "dev_metric": self.options.dev_metric}

    def _point(self, name: str, method: str, mask: HeadMask, model: Model) -> PrunePoint:
        """A point with its score, and its weights where they are not the original's."""
        score, loss = self._evaluate(model, mask)
        changed = _changed(self.model, model)
        weights: dict[str, Any] = self.sweep.write_weights(name, changed) if changed else {}
        return PrunePoint(name, method, mask, score, self.split, loss=loss, **weights)

    def _evaluate(self, model: Model, mask: HeadMask) -> tuple[Score, float]:
        settings: dict[str, Any] = {"batch_size": self.options.training.batch_size, **self._hooks()}
        edits = mask.interventions()
        score = self.task.evaluate(model, self.split, edits, interval=True, **settings)
        if self.task.metric == "loss":
            return score, score.value
        return score, self.task.evaluate(model, self.split, edits, metric="loss", **settings).value

    def _on_dev(self, model: Model, mask: HeadMask, score: Score) -> Score:
        """The score on dev, by which a point is chosen; `score` is that of the split that is reported."""
        if self.split == "dev":
            return score
        settings: dict[str, Any] = {"batch_size": self.options.training.batch_size, **self._hooks()}
        return self.task.evaluate(model, "dev", mask.interventions(), **settings)

    def _hooks(self, name: str = "") -> dict[str, Any]:
        """How to stop, and whom to tell about progress: with the name of the point that is trained."""
        progress = self.progress if not name or self.progress is None else _with_name(self.progress, name)
        return {"cancel": self.cancel, "progress": progress}


def make_points(
    work: Sequence[tuple[SweepRun, PointPlan]],
    *,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> None:
    """Make the points of one or several runs in one folder: the first that is free and has what it needs, again and
    again. Several processes may do so at once.
    """
    steps, waiting = Steps("points", len(work), progress, cancel), list(work)
    while waiting:
        stop_if(cancel)
        finished = set(waiting[0][0].sweep.read()["points"])
        ready = [(run, plan) for run, plan in waiting if finished.issuperset(plan.needs)]
        free = next(((run, plan) for run, plan in ready if run.make_unless_taken(plan)), None)
        if free is None:  # other processes make all that can be made now
            time.sleep(_PAUSE)
            continue
        waiting.remove(free)
        steps.add(note=free[1].id)


def _with_name(progress: OnProgress, name: str) -> OnProgress:
    """Progress whose notes begin with the name of a point."""

    def report(about: Progress) -> None:
        progress(replace(about, note=f"{name}, {about.note}") if about.note else about)

    return report


def _changed(original: Model, model: Model) -> dict[str, torch.Tensor]:
    """The parameters and buffers of a model that are not those of the original."""
    before = original.module.state_dict()
    own = dict(model.module.named_parameters()) | dict(model.module.named_buffers())
    return {name: tensor for name, tensor in own.items() if name in before and not torch.equal(tensor, before[name])}


def _lost(before: HeadMask, after: HeadMask) -> set:
    return set(before.heads_kept()) - set(after.heads_kept())


def _lambda_name(lambda_by_type: Mapping[str, float], types: set[str]) -> str:
    """One number where all types that may be pruned have the same λ, else each with its name."""
    values = set(lambda_by_type.values())
    if len(values) == 1 and types == set(lambda_by_type):
        return f"{values.pop():g}"
    return "+".join(f"{name}{value:g}" for name, value in lambda_by_type.items())


def _variant(options: PruneOptions) -> str:
    """What tells points of a folder apart beside λ: start, what was trained, and the types with gates."""
    parts = ["scratch"] if options.training.start == "scratch" else []
    parts += [] if options.parameters == "all" else [options.parameters]
    parts += [] if options.types is None else [f"only-{'+'.join(options.types)}"]
    return "".join(f"-{part}" for part in parts)
