"""Sweeps end to end on small models: what is trained, what is chosen, resuming, and everything that may go wrong."""

import errno
import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_models import SENTENCES, tiny_bert_tokenizer
from tiny_tasks import PAIRS, SIZES, bert, gpt, language_task, marian, wrap
from torch import Tensor
from transformers import AlbertConfig, AlbertForMaskedLM

import headscope as hs
from headscope import files, tasks
from headscope.errors import Cancelled, HeadscopeError, HeadscopeWarning, InputError, LoadError
from headscope.pruning import GateOptions, HeadMask, PruneOptions, PrunePoint, Sweep
from headscope.pruning.chosen_point import choose_point, chosen_on
from headscope.pruning.head_gates import HeadGates
from headscope.pruning.pruning_run import baseline_plans
from headscope.pruning.smaller_model import SmallerModels
from headscope.pruning.sweep import SweepRun
from headscope.tasks import FitOptions, Score, read_fit

TRAINING = FitOptions(steps=4, batch_size=2, rate=1e-3, evaluate_every=2)
OPTIONS = PruneOptions(
    gates=GateOptions(rate=1.5), training=TRAINING, tuning=replace(TRAINING, steps=2), ranking_examples=2
)
# A penalty that nothing withstands.
HUGE = 50.0


def weights(model: hs.Model) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.module.named_parameters()}


def unchanged(model: hs.Model, before: dict[str, Tensor]) -> bool:
    return all(torch.equal(parameter, before[name]) for name, parameter in model.module.named_parameters())


def pairs_task(**options) -> tasks.LearningTask:
    return tasks.translation(train=PAIRS, dev=PAIRS[:2], metric="loss", **options)


def run(folder: Path, model: hs.Model | None = None, task: tasks.LearningTask | None = None, **settings) -> Sweep:
    settings = {"options": OPTIONS, "smaller": False} | settings
    return hs.prune(model or gpt(), task or language_task(), folder, **settings)


class StopAt:
    """Acts when a stage has done so many steps, the nth time."""

    def __init__(self, stage: str, step: int, action, *, times: int = 1) -> None:
        self.stage, self.step, self.action, self.times = stage, step, action, times

    def __call__(self, progress: hs.Progress) -> None:
        if progress.stage == self.stage and progress.done == self.step:
            self.times -= 1
            if self.times == 0:
                self.action()


# What comes out


def test_without_a_penalty_all_heads_stay_and_quality_too(tmp_path: Path) -> None:
    sweep = run(tmp_path, lambdas=0.0, options=replace(OPTIONS, gates=GateOptions()))
    before, after, tuned = sweep.points
    assert [point.id for point in sweep.points] == ["none", "l0-0-s0", "l0-0-s0-tuned"]
    assert after.total() == (4, 4) and after.score.value <= before.score.value * 1.001
    assert tuned.score.value <= after.score.value and tuned.like == after.id
    assert sweep.chosen in (after, tuned)


def test_a_huge_penalty_closes_every_gate_and_the_score_is_that_of_no_heads(tmp_path: Path) -> None:
    model = marian()
    before = weights(model)
    sweep = run(tmp_path, model, pairs_task(), lambdas=HUGE)
    point = sweep.point("l0-50-s0")
    assert point.counts() == {"encoder": (0, 2), "decoder": (0, 2), "cross": (0, 2)}
    assert point.log_alpha is not None and all(value <= 0 for row in point.log_alpha.values() for value in row)
    silenced = [hs.silence(layer.site) for layer in sweep.layers]
    again = pairs_task().evaluate(sweep.load(model, point), "dev", silenced)
    assert again.value == pytest.approx(point.score.value, rel=1e-6)
    assert unchanged(model, before)  # copies are trained
    assert [row["step"] for row in point.history] == [0, 2, 4]
    assert point.history[0]["open"] == {"encoder": 2, "decoder": 2, "cross": 2}
    assert point.history[-1]["open"] == {"encoder": 0, "decoder": 0, "cross": 0}


def test_each_type_of_attention_has_its_own_penalty(tmp_path: Path) -> None:
    sweep = run(tmp_path, marian(), pairs_task(), lambdas={"encoder": HUGE, "cross": HUGE / 2}, options=no_tuning())
    point = sweep.points[-1]
    assert point.counts() == {"encoder": (0, 2), "decoder": (2, 2), "cross": (0, 2)}
    assert point.lambda_ == {"encoder": HUGE, "cross": HUGE / 2} and point.id == "l0-encoder50+cross25-s0"
    assert point.log_alpha is not None and len(point.log_alpha) == 2  # the decoder has no gates


def no_tuning(**options) -> PruneOptions:
    return replace(OPTIONS, tuning=None, **options)


@pytest.mark.parametrize(("parameters", "trained"), [("gates", ()), ("encoder", ("model.encoder.layers",))])
def test_what_is_frozen_stays_as_it_is(tmp_path: Path, parameters, trained: tuple[str, ...]) -> None:
    model = marian()
    sweep = run(tmp_path, model, pairs_task(), lambdas=HUGE, options=no_tuning(parameters=parameters))
    point = sweep.points[-1]
    changed = sweep.weights(point)
    assert bool(changed) == bool(trained) and all(name.startswith(trained) for name in changed)
    if parameters == "encoder":  # only its heads have gates
        assert point.counts() == {"encoder": (0, 2), "decoder": (2, 2), "cross": (2, 2)}


def test_from_scratch_and_in_mixed_precision(tmp_path: Path) -> None:
    training = replace(TRAINING, start="scratch", precision="bf16", steps=2)
    point = run(tmp_path, lambdas=0.1, options=no_tuning(training=training)).points[-1]
    assert point.id == "l0-0.1-scratch-s0" and point.start == "scratch" and point.weights is not None


def test_keep_gives_exactly_that_many_heads_and_says_how(tmp_path: Path) -> None:
    task = tasks.masked_language_modelling(train=[*SENTENCES], dev=[*SENTENCES[:2]])
    settings = {"options": replace(OPTIONS, keep_tolerance=0.8), "smaller": True}
    chosen = run(tmp_path, bert(), task, keep=0.25, **settings).chosen
    assert {path.name for path in tmp_path.iterdir()} >= {"baked", "slim", "smaller.json"}
    assert chosen is not None and chosen.total() == (1, 4) and chosen.keep == 0.25 and chosen.tuning == "fixed mask"
    assert chosen.search is not None and chosen.search["target"] == 1 and chosen.search["of"] == 4
    trials = chosen.search["trials"]
    assert 1 <= len(trials) <= OPTIONS.keep_trials
    closest = min(trials, key=lambda trial: abs(trial[1] - 1))
    assert [chosen.search["lambda"], chosen.search["open"]] == closest
    assert closest[1] - chosen.search["removed"] + chosen.search["added"] == 1


def test_a_point_is_chosen_on_dev_and_reported_on_test(tmp_path: Path) -> None:
    task = tasks.language_modelling(train=[*SENTENCES], dev=[*SENTENCES[:2]], test=[*SENTENCES[2:4]])
    sweep = run(
        tmp_path, gpt(), task, lambdas=0.1, options=replace(OPTIONS, baselines=("random",), allocations=("l0",))
    )
    by_id = {point.id: point for point in sweep.points}
    assert [name for name, point in by_id.items() if point.dev is not None] == ["none", "l0-0.1-s0", "l0-0.1-s0-tuned"]
    tuned = by_id["l0-0.1-s0-tuned"]
    for split, score in (("test", tuned.score), ("dev", tuned.dev)):
        expected = task.evaluate(sweep.load(gpt(), tuned), split, tuned.mask.interventions())
        assert score is not None and score.value == pytest.approx(expected.value, rel=1e-6), split
    assert chosen_on(sweep.points) == "dev" and chosen_on([*sweep.points, replace(tuned, dev=None)]) == "test"


def test_with_several_seeds_each_point_is_fine_tuned_with_its_own(tmp_path: Path) -> None:
    sweep = run(tmp_path, lambdas=0.1, options=replace(OPTIONS, l0_seeds=2))
    assert {point.id: point.seed for point in sweep.points} == {
        "none": 0,
        "l0-0.1-s0": 0,
        "l0-0.1-s0-tuned": 0,
        "l0-0.1-s1": 1,
        "l0-0.1-s1-tuned": 1,
    }
    settings = json.loads((tmp_path / "points" / "l0-0.1-s1-tuned" / "settings.json").read_text())
    assert settings["tuning"]["seed"] == 1


def albert() -> hs.Model:
    torch.manual_seed(0)
    config = AlbertConfig(vocab_size=len(tiny_bert_tokenizer()), max_position_embeddings=32, embedding_size=8, **SIZES)
    return wrap(AlbertForMaskedLM(config), tiny_bert_tokenizer())


def test_a_model_whose_heads_cannot_be_baked_is_chosen_without_a_smaller_model(tmp_path: Path) -> None:
    task = tasks.masked_language_modelling(train=[*SENTENCES], dev=[*SENTENCES[:2]])
    settings = {"options": no_tuning(keep_tolerance=1.0), "smaller": True, "keep": 0.25}
    for _ in range(2):  # also when it is run again
        with pytest.warns(
            HeadscopeWarning, match=r"no smaller model of the point .* was written: .*share their weights"
        ):
            sweep = run(tmp_path, albert(), task, **settings)
    assert sweep.chosen is not None and sweep.chosen.keep == 0.25
    assert not (tmp_path / "baked").exists() and not (tmp_path / "smaller.json").exists()


def test_the_chosen_point_is_known_without_its_model_and_a_stopped_copy_is_written_again(tmp_path: Path) -> None:
    settings = {"options": no_tuning(keep_tolerance=1.0)}
    run(tmp_path, keep=0.75, smaller=True, **settings)
    assert SmallerModels.open(tmp_path).point == "l0-keep0.75-s0"
    sweep = run(tmp_path, keep=0.25, **settings)
    assert sweep.chosen is not None and sweep.chosen.id == "l0-keep0.25-s0"
    assert SmallerModels.open(tmp_path).point == "l0-keep0.75-s0"  # smaller=False
    leftover = tmp_path / ".headscope-0123.partial"
    (leftover / "baked").mkdir(parents=True)
    (tmp_path / "points" / "none" / ".headscope-0123.partial").touch()
    run(tmp_path, keep=0.25, smaller=True, **settings)
    assert SmallerModels.open(tmp_path).point == "l0-keep0.25-s0"
    assert not [*tmp_path.glob("**/.headscope-*.partial")]


def test_a_search_that_ends_far_off_warns(tmp_path: Path) -> None:
    options = no_tuning(gates=GateOptions(log_alpha=-3.0, rate=1e-6), keep_trials=2)  # closed, and they stay so
    with pytest.warns(HeadscopeWarning, match=r"no λ of 2 left 2 of 4 heads open.*2 heads were added"):
        sweep = run(tmp_path, keep=0.5, options=options)
    assert sweep.points[-1].total() == (2, 4)


def test_too_few_steps_for_any_gate_to_close_are_said_at_once(tmp_path: Path) -> None:
    gates = GateOptions(rate=0.1)  # log α falls from 2 by at most 0.1 in each of 4 steps
    few = PruneOptions(training=replace(TRAINING, steps=4, schedule="constant"), gates=gates)
    assert few.gates_fall() == pytest.approx(0.4) and few.steps_to_close() == 21
    assert replace(few, training=replace(few.training, steps=21)).steps_to_close() is None
    assert replace(few, gates=GateOptions(rate=0.1, log_alpha="glorot")).steps_to_close() is None
    options = no_tuning(training=few.training, gates=gates)
    with pytest.warns(HeadscopeWarning) as caught:
        sweep = run(tmp_path, keep=0.5, options=options)
    first, second = (str(warning.message) for warning in caught)
    assert first.startswith("no gate can close in 4 steps: log α begins at 2 and falls by at most 0.4.")
    assert "no λ of 1 left 2 of 4 heads open" in second
    assert [point.id for point in sweep.points] == ["none", "l0-0.02-s0", "l0-keep0.5-s0"]  # no other λ was tried


def baselines(folder: Path, lambda_by_type: dict[str, float], **options) -> list[PrunePoint]:
    """The baselines of an L0 point without the first head of the encoder and the first of cross-attention."""
    model, settings = marian(), replace(OPTIONS, **options)
    sweep = run(folder, model, pairs_task(), lambdas=0.0, options=no_tuning(training=replace(TRAINING, steps=1)))
    survivors = [head for head in HeadMask.full(model).heads() if str(head) not in ("encoder.L0H0", "cross.L0H0")]
    source = PrunePoint("source", "l0", HeadMask.of(model, survivors), Score("loss", 1.0, 2), "dev")
    sweep.add(replace(source, lambda_=lambda_by_type))
    runner = SweepRun(model, pairs_task(), sweep, settings)
    runner.make(baseline_plans(runner, "source"))
    return [point for point in sweep.points if point.like == "source"]


def test_baselines_have_as_many_heads_with_and_without_fine_tuning(tmp_path: Path) -> None:
    ways = {"baselines": ("l0", "random"), "allocations": ("own", "l0"), "seeds": 2}
    short = {"training": replace(TRAINING, steps=2), "tuning": replace(TRAINING, steps=1)}
    points = baselines(tmp_path, {"encoder": 0.1, "decoder": 0.1, "cross": 0.1}, **ways, **short)
    assert len(points) == (1 + 2) + 2 * (2 + 2)
    for point in points:
        assert point.total() == (4, 6) and point.lambda_ is None
        if point.allocation != "own":
            assert point.counts() == {"encoder": (1, 2), "decoder": (2, 2), "cross": (1, 2)}
        is_tuned = point.tuning == "fixed mask"
        assert point.steps == (3 if is_tuned else 0) and bool(point.weights) == is_tuned
        assert point.parameters == ("all" if is_tuned else "none")
    own = {str(point.mask.to_json()) for point in points if point.method == "random" and point.allocation == "own"}
    assert len(own) == 2  # a mask for each seed


def test_baselines_prune_only_types_that_had_gates(tmp_path: Path) -> None:
    ways = {"baselines": ("importance",), "allocations": ("own", "normalised"), "tuning": None}
    points = baselines(tmp_path, {"encoder": 0.1, "cross": 0.1}, **ways)
    assert [point.counts()["decoder"] for point in points] == [(2, 2), (2, 2)]
    assert [point.total() for point in points] == [(4, 6), (4, 6)] and points[1].normalised


def test_with_one_type_of_attention_no_baseline_is_made_twice(tmp_path: Path) -> None:
    options = replace(
        OPTIONS, tuning=None, baselines=("importance", "random"), allocations=("own", "normalised", "l0"), seeds=2
    )
    sweep = run(tmp_path, lambdas=0.1, options=options)
    names = [(point.method, point.allocation, point.seed) for point in sweep.points if point.like is not None]
    ranked = [("importance", "own", 0), ("importance", "normalised", 0)]
    assert names == [*ranked, ("random", "own", 0), ("random", "own", 1)]


# Interrupted


@pytest.mark.parametrize(("step", "times"), [(3, 1), (1, 2)], ids=["in L0 training", "in fine-tuning"])
def test_a_resumed_sweep_equals_one_that_was_not_interrupted(tmp_path: Path, step: int, times: int) -> None:
    whole = run(tmp_path / "whole", lambdas=0.5)
    cancel = threading.Event()
    with pytest.raises(Cancelled):
        run(tmp_path / "cut", lambdas=0.5, cancel=cancel, progress=StopAt("training", step, cancel.set, times=times))
    assert len(Sweep.open(tmp_path / "cut").points) < 3
    resumed = run(tmp_path / "cut", lambdas=0.5)
    for expected, point in zip(whole.points, resumed.points, strict=True):
        assert replace(point, seconds=0) == replace(expected, seconds=0)  # weights by their checksum
    assert not list((tmp_path / "cut").glob("points/*/fit"))


def test_ctrl_c_keeps_the_points_that_are_finished(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, lambdas=[0.0, 0.5], options=no_tuning(), progress=StopAt("training", 3, interrupt, times=2))
    sweep = Sweep.open(tmp_path)
    assert [point.id for point in sweep.points] == ["none", "l0-0-s0"]
    assert sweep.chosen is not None and sweep.chosen.id == "l0-0-s0"
    assert read_fit(tmp_path / "points" / "l0-0.5-s0" / "fit").step == 2


def test_a_finished_sweep_is_read_and_more_points_are_added(tmp_path: Path) -> None:
    stages: list[str] = []
    run(tmp_path, lambdas=0.0, options=no_tuning())
    again = run(tmp_path, lambdas=0.0, options=no_tuning(), progress=lambda progress: stages.append(progress.stage))
    assert set(stages) == {"points"} and len(again.points) == 2
    assert len(run(tmp_path, lambdas=[0.0, HUGE], options=no_tuning()).points) == 3
    with pytest.raises(InputError, match=r"has the point l0-0-s0 with other settings \(gates was"):
        run(tmp_path, lambdas=0.0, options=no_tuning(gates=GateOptions(tau=0.5)))
    with pytest.raises(InputError, match="with other settings"):
        run(tmp_path, gpt(seed=3), lambdas=0.0, options=no_tuning())


@pytest.mark.filterwarnings("ignore:no gate can close:headscope.errors.HeadscopeWarning")
def test_runs_that_differ_in_what_is_pruned_or_ranked_share_a_folder(tmp_path: Path) -> None:
    quick = no_tuning(training=replace(TRAINING, steps=1))
    model, task = marian(), pairs_task()
    encoder = replace(quick, types=("encoder",))
    runs = [
        (0.05, quick),
        ({"encoder": 0.05}, quick),
        (0.05, encoder),
        (0.05, replace(quick, parameters="encoder")),
        (0.05, replace(quick, ranking_examples=1)),  # nothing is ranked
    ]
    for lambdas, options in runs:
        sweep = run(tmp_path, model, task, lambdas=lambdas, options=options)
    names = ["none", "l0-0.05-s0", "l0-encoder0.05-s0", "l0-0.05-only-encoder-s0", "l0-0.05-encoder-s0"]
    assert [point.id for point in sweep.points] == names


def test_a_point_that_another_process_makes_is_left_to_it(tmp_path: Path) -> None:
    sweep = run(tmp_path, lambdas=0.0, options=no_tuning())
    runner = SweepRun(gpt(), language_task(), sweep, no_tuning())
    plan = runner.l0({"self": 0.25}, 0)
    (tmp_path / "points" / plan.id).mkdir()
    with files.lock(tmp_path / "points" / plan.id):
        assert not runner.make_unless_taken(plan)
        cancel = threading.Event()
        runner.cancel = cancel
        timer = threading.Timer(0.2, cancel.set)
        timer.start()
        with pytest.raises(Cancelled):  # who waits can be stopped
            runner.make([plan])
        timer.join()
    runner.cancel = None
    assert plan.id not in [point.id for point in sweep.points]
    assert runner.make_unless_taken(plan) and sweep.points[-1].id == plan.id


def test_progress_says_loss_score_and_heads_open(tmp_path: Path) -> None:
    notes: list[str] = []

    def listen(progress: hs.Progress) -> None:
        if progress.stage == "training":
            notes.append(progress.note)

    run(tmp_path, marian(), pairs_task(), lambdas=HUGE, options=no_tuning(), progress=listen)
    assert notes[-1].startswith("l0-50-s0, loss ") and ", dev loss " in notes[-1]
    assert notes[0].endswith("open encoder 2/2, decoder 2/2, cross 2/2")
    assert notes[-1].endswith("open encoder 0/2, decoder 0/2, cross 0/2")


def test_the_search_for_a_share_of_heads_says_how_far_it_is(tmp_path: Path) -> None:
    notes: list[str] = []

    def listen(progress: hs.Progress) -> None:
        if progress.stage == "finding λ":
            notes.append(progress.note)

    options = replace(no_tuning(), gates=GateOptions(rate=3.0), keep_trials=2, keep_tolerance=0.0)
    with pytest.warns(HeadscopeWarning, match="no λ"):
        run(tmp_path, keep=0.25, options=options, progress=listen)
    trials = Sweep.open(tmp_path).points[-1].search["trials"]
    assert notes == [f"λ = {value:g} keeps {n_open} of 4 heads; wanted: 1" for value, n_open in trials]


# Bad input


def test_what_cannot_work_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    def refused(match: str, error: type[Exception] = InputError, **settings) -> None:
        with pytest.raises(error, match=match):
            run(tmp_path / "refused", **({"lambdas": 0.1} | settings))
        assert not (tmp_path / "refused").exists()

    refused("there is no dev data", task=tasks.language_modelling(train=[*SENTENCES]))
    refused("there is no train data", task=tasks.language_modelling(dev=[*SENTENCES]))
    refused("has no metric 'bleu'", options=replace(OPTIONS, dev_metric="bleu"))
    refused("translation needs an encoder-decoder", task=pairs_task())
    refused("λ is a penalty.*at least 0, got -0.1", lambdas=-0.1)
    refused("λ is a penalty", lambdas=[0.1, float("nan")])
    refused("λ is a penalty", lambdas={"self": float("inf")})
    refused("a λ for 'cross', and no gates: the heads of .* are of type self", lambdas={"cross": 0.1})
    refused("the dev data .* have no examples", task=tasks.language_modelling(train=[*SENTENCES], dev=[]))
    refused("the test data .* have no examples", task=language_task(test=[]))
    halves = gpt()
    halves.module.bfloat16()
    refused("weights of .* are bfloat16", model=halves)
    refused("weights of .* are bfloat16", model=halves, options=replace(OPTIONS, parameters="gates"))
    refused("no attention of type 'cross': it has self", options=replace(OPTIONS, types=("cross",)))
    refused("keep is a share of the heads, from 0 to 1, got 1.5", lambdas=(), keep=1.5)
    refused("keep is a share", lambdas=(), keep=float("nan"))
    refused("either keep=", lambdas=())
    refused("either keep=", keep=0.5)
    refused("has no encoder beside a decoder", options=replace(OPTIONS, parameters="encoder"))
    with pytest.raises(InputError, match="has no metric"):
        tasks.language_modelling(train=[*SENTENCES], dev=[*SENTENCES], metric="accuracy of words")
    wrong = [{"baselines": ("magnitude",)}, {"parameters": "decoder"}, {"seeds": 0}, {"allocations": ("x",)}]
    scratch = FitOptions(start="scratch")
    for options in (*wrong, {"tuning": scratch}, {"training": scratch, "parameters": "gates"}):
        with pytest.raises(InputError):
            PruneOptions(**options)  # type: ignore[arg-type]


def test_nan_names_the_step_and_the_last_good_state_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    penalty = HeadGates.penalty

    def failing(self: HeadGates, lambda_by_type, step: int) -> Tensor:
        return penalty(self, lambda_by_type, step) * (float("nan") if step == 3 else 1.0)

    whole = run(tmp_path / "whole", lambdas=0.5, options=no_tuning())
    monkeypatch.setattr(HeadGates, "penalty", failing)
    model = gpt()
    before = weights(model)
    with pytest.raises(HeadscopeError, match=r"the loss is nan at step 4.*the checkpoint of step 2"):
        run(tmp_path / "nan", model, lambdas=0.5, options=no_tuning())
    assert unchanged(model, before)
    fit = read_fit(tmp_path / "nan" / "points" / "l0-0.5-s0" / "fit")
    assert fit.step == 2 and all(bool(torch.isfinite(tensor).all()) for tensor in fit.parameters().values())
    monkeypatch.undo()
    resumed = run(tmp_path / "nan", lambdas=0.5, options=no_tuning())
    assert resumed.points[-1].weights_sha256 == whole.points[-1].weights_sha256


def test_a_full_disk_at_a_checkpoint_leaves_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = files.write_file

    def full(path: Path, data: bytes) -> None:
        if "00000004" in path.name:
            raise LoadError(f"could not write {path}: {os.strerror(errno.ENOSPC)}.")
        write(path, data)

    monkeypatch.setattr(files, "write_file", full)
    with pytest.raises(LoadError, match=r"at step 4: could not write .*No space left.*checkpoint of step 2 is whole"):
        run(tmp_path, lambdas=0.0, options=no_tuning())
    monkeypatch.undo()
    assert read_fit(tmp_path / "points" / "l0-0-s0" / "fit").step == 2
    assert run(tmp_path, lambdas=0.0, options=no_tuning()).points[-1].id == "l0-0-s0"


# Which point is chosen


def test_the_smallest_point_that_costs_little_is_chosen(tmp_path: Path) -> None:
    sweep = run(tmp_path, lambdas=0.0, options=no_tuning())
    base = sweep.points[0].score.value  # bits per byte: less is better

    def add(name: str, heads: int, value: float, **fields) -> None:
        mask = HeadMask.of(gpt(), HeadMask.full(gpt()).heads()[:heads])
        score = Score("bits_per_byte", value, 2)
        sweep.add(PrunePoint(name, "l0", mask, score, "dev", **({"lambda_": {"self": 0.1}} | fields)))

    add("three", 3, base * 1.01)
    add("two", 2, base * 1.019)
    add("one", 1, base * 1.5, keep=0.25)
    add("random", 0, base, lambda_=None, parameters="none")
    assert (choose_point(sweep, None, 0.02) or sweep.points[0]).id == "two"
    assert (choose_point(sweep, None, 0.015) or sweep.points[0]).id == "three"
    assert (choose_point(sweep, 0.25, 0.02) or sweep.points[0]).id == "one"
    assert choose_point(sweep, 0.5, 0.02) is None
    add("mask", 0, base, lambda_=None, like="one", tuning="fixed mask")  # baseline "l0", fine-tuned
    assert (choose_point(sweep, None, 0.02) or sweep.points[0]).id == "two"
    add("scratch", 1, base, keep=0.25, start="scratch")  # of another run of the folder
    assert (choose_point(sweep, 0.25, 0.02, name="one") or sweep.points[0]).id == "one"


def test_test_scores_decide_nothing(tmp_path: Path) -> None:
    sweep = run(tmp_path, lambdas=0.0, options=no_tuning(training=replace(TRAINING, steps=1)))
    untouched = sweep.points[0]

    def add(name: str, on_test: float, on_dev: float) -> None:
        mask = HeadMask.of(gpt(), HeadMask.full(gpt()).heads()[:2])
        scores = [Score("bits_per_byte", untouched.score.value * factor, 2) for factor in (on_test, on_dev)]
        sweep.add(PrunePoint(name, "l0", mask, scores[0], "test", lambda_={"self": 0.1}, dev=scores[1]))

    add("good on test", 0.9, 1.5)
    add("good on dev", 1.5, 1.01)
    assert (choose_point(sweep, None, 0.02) or untouched).id == "good on dev"
