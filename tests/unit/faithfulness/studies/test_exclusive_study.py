"""The exclusiveness study on made-up texts: the same Transformer on both tasks, resumed, extended, and reported."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from headscope.errors import InputError, LoadError
from headscope.faithfulness import AdversaryOptions
from headscope.faithfulness.studies import ExclusiveOptions, ExclusiveResult, TaggerOptions, train_both_tasks
from headscope.faithfulness.studies.answer_comparisons import answer_needs, compare_seeds
from headscope.faithfulness.studies.answer_data import WordAnswers
from headscope.faithfulness.studies.answer_tasks import OtherAttention, answers
from headscope.faithfulness.studies.exclusive import LEVELS, STARTS, TASKS
from headscope.faithfulness.studies.stack_parts import pick, stack
from headscope.faithfulness.studies.stacked_tagger import (
    Attend,
    TaggerShape,
    draw_tagger,
    encode_below,
    read_answers,
    tag,
)
from headscope.reports.studies.exclusive import exclusive_study, frontier
from headscope.reports.studies.seed_means import mean_over_pairs, mean_over_seeds

OPTIONS = ExclusiveOptions(
    seeds=3, adversary_seeds=1, lambdas=(0.01, 1.0), epochs=2, tested=4, inputs=8,
    tagger=TaggerOptions(batch_size=8, width=16, warmup=5), adversary=AdversaryOptions(patterns=2, steps=10),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(files, opinions, tiny_bert, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("study") / "exclusive"
    exclusive_study(files, opinions, tiny_bert, place, OPTIONS)
    return place


@pytest.fixture(scope="module")
def result(folder, files, opinions, tiny_bert) -> ExclusiveResult:
    return train_both_tasks(files, opinions, tiny_bert, folder / "training", OPTIONS)


def test_both_tasks_have_the_same_lines(result) -> None:
    for task in TASKS:
        counts = [len(result.of(kind, task)) for kind in ("base", "pair", "needs", "answers", "adversary")]
        assert counts == [3, 3, 1, len(LEVELS), len(STARTS) * 2]
        for line in result.of("adversary", task):
            row = line["test"]
            assert 0 < row["jsd"] <= row["jsd_numbered"] + 1e-6 and row["jsd_numbered"] <= row["reachable"]
            assert 0 < row["tvd"] < 1 and row["kl"] > 0


def test_the_tasks_differ_in_the_last_linear_map_alone(result) -> None:
    width, n_tags = 16, 3 + 5  # three are special: padding, beginning, end
    assert result.n_parameters["tagging"] - result.n_parameters["classification"] == (width + 1) * (n_tags - 2)


def test_it_resumes_and_takes_more_seeds(folder, files, opinions, tiny_bert) -> None:
    stages: list[str] = []

    def note(progress) -> None:
        stages.append(progress.stage)

    exclusive_study(files, opinions, tiny_bert, folder, OPTIONS, progress=note)
    assert not stages  # everything was there
    study = exclusive_study(files, opinions, tiny_bert, folder, replace(OPTIONS, seeds=4), progress=note)
    assert set(stages) == {f"training {task} s3" for task in TASKS}
    assert sum(row["kind"] == "pair" for row in study.rows) == 2 * 6
    with pytest.raises(InputError, match="layers was 1, now 2"):
        exclusive_study(files, opinions, tiny_bert, folder, replace(OPTIONS, layers=2))


def test_the_report_answers_both_questions(folder) -> None:
    study = json.loads((folder / "study.json").read_text())
    for sentence in (
        "(stability ",
        "At a change of 0.05, ",
        "At the change of another seed (",
        "At a quarter of the change ",
    ):
        assert sentence in study["conclusion"]
    published = " ".join(check["published"] for check in study["checks"])
    assert "0.75 at λ = 3 [report]" in published and "JSD 0.514" in published
    page = (folder / "index.html").read_text()
    assert study["conclusion"] in page and page.count("<figure>") == 2 and "http" not in page.replace("http-equiv", "")
    assert (folder / "figures.parquet").is_file()


@pytest.mark.parametrize("layers", [1, 2])
def test_an_answer_follows_from_its_own_row(data, layers) -> None:
    """With its own rows an answer is the model's; with those of the other word, the answer of a tagger whose last layer
    attends so.
    """
    parameters = stack([draw_tagger(TaggerShape(8, 16, 4, len(data.tags), layers), seed) for seed in (1, 2)])
    batch = next(iter(WordAnswers(data).all_batches("test")))
    own = answers(parameters, batch, OPTIONS.tagger)
    for model in range(2):
        alone = pick(parameters, model)
        stream = encode_below(alone, batch.inputs, batch.mask).view(1, *batch.mask.shape, -1)
        rows = own.rows(model).pattern[None]
        logits = read_answers(alone, stream[:, batch.texts], batch.tokens, rows)
        torch.testing.assert_close(logits[0], own.logits[model])
        permuted = rows.flip(2)
        pattern = tag(alone, batch.inputs, batch.mask).pattern.clone()
        pattern.transpose(2, 3)[:, batch.texts, batch.tokens] = permuted
        expected = tag(alone, batch.inputs, batch.mask, Attend(pattern)).logits[0, batch.texts, batch.tokens]
        changed = read_answers(alone, stream[:, batch.texts], batch.tokens, permuted)[0]
        torch.testing.assert_close(changed, expected)
        assert not torch.allclose(changed, logits[0])


def test_seeds_with_the_same_heads_in_another_order_are_alike(data) -> None:
    """The second model is the first with its heads turned: same answers, same rows, other numbers."""
    base = draw_tagger(TaggerShape(8, 16, 4, len(data.tags)), 1)
    turned = {name: tensor.clone() for name, tensor in base.items()}
    for name in ("query", "key", "value"):
        turned[f"{name}.weight"] = base[f"{name}.weight"].roll(4, 1)
    turned["output.weight"] = base["output.weight"].roll(4, 0)
    line = compare_seeds(stack([base, turned]), WordAnswers(data), OPTIONS.tagger)[0]
    assert line["jsd"] == pytest.approx(0, abs=1e-6) and line["tvd"] == pytest.approx(0, abs=1e-6)
    assert line["jsd_numbered"] > 1e-4 and line["chance"] > 1e-4
    assert line["jsd_mean"] == pytest.approx(0, abs=1e-6) and line["top1"] == 1.0


def test_answers_need_what_changes_them(data) -> None:
    """Without weights for queries and keys rows are uniform already; without values attention adds nothing."""
    parameters = stack([draw_tagger(TaggerShape(8, 16, 4, len(data.tags)), 1)])
    same = {name: torch.zeros_like(tensor) if name == "query.weight" else tensor for name, tensor in parameters.items()}
    needs = answer_needs(same, WordAnswers(data), OPTIONS.tagger, n_texts=5)
    assert max(needs["uniform"], needs["permuted"]) < 1e-6 and needs["no_attention"] > 1e-3
    none = {name: torch.zeros_like(tensor) if name == "value.weight" else tensor for name, tensor in parameters.items()}
    assert max(answer_needs(none, WordAnswers(data), OPTIONS.tagger, n_texts=5).values()) < 1e-6


def test_adversaries_lower_the_objective_that_is_stated(data) -> None:
    models = stack([draw_tagger(TaggerShape(8, 16, 4, len(data.tags)), seed) for seed in (1, 2, 3)])
    bases = {name: tensor[:2].detach() for name, tensor in models.items()}
    words, settings = WordAnswers(data), replace(OPTIONS.tagger, dropout=0.0)
    batch = words.batches(8, seed=0, epoch=0)[0]
    task = OtherAttention(words, settings, bases, (0, 0, 1), (0.5, 0.5, 2.0), seed=0)
    losses = task.losses(models, batch, torch.Generator())
    own = answers(models, batch, settings)
    for model, (base, weight) in enumerate(((0, 0.5), (0, 0.5), (1, 2.0))):
        ours, theirs = own.log_rows[model], own.log_rows[base]
        seen = own.visible[:, None].expand_as(ours)
        divergence = torch.where(seen, ours.exp() * (ours - theirs), 0.0).sum(-1).mean()
        entropy = -(own.logits[base].softmax(-1) * own.logits[model].log_softmax(-1)).sum(-1).mean()
        assert float(losses[model].detach()) == pytest.approx(float((entropy - weight * divergence).detach()), rel=1e-4)


def test_distances_are_read_from_the_frontier() -> None:
    points = [(0.3, 0.6), (0.1, 0.4), (0.2, 0.3)]
    assert frontier(points, 0.1, from_base=False) == 0.4 and frontier(points, 0.05, from_base=False) is None
    assert frontier(points, 0.05, from_base=True) == pytest.approx(0.2) and frontier(points, 1.0, from_base=True) == 0.6
    worse = [*points, (0.04, 0.01)]  # another point never makes it less
    assert frontier(worse, 0.05, from_base=True) == pytest.approx(0.2)


def test_intervals_over_seeds_are_those_of_the_textbook() -> None:
    first, second = mean_over_seeds([1.0, 2.0, 3.0, 4.0, 5.0]), mean_over_seeds([2.0, 4.0, 6.0])
    assert first.interval == pytest.approx((3 - 2.776 * 2.5**0.5 / 5**0.5, 3 + 2.776 * 2.5**0.5 / 5**0.5))
    difference = first.minus(second)  # Welch: variances 0.5 and 4/3 of the means
    assert difference.mean == -1.0 and difference.error == pytest.approx((0.5 + 4 / 3) ** 0.5)
    assert difference.freedom == pytest.approx((0.5 + 4 / 3) ** 2 / (0.25 / 4 + (4 / 3) ** 2 / 2))
    assert "[" not in str(mean_over_seeds([1.0])) and str(mean_over_seeds([1.0])) == "1.000"


def test_the_jackknife_of_pairs_is_that_of_means_where_pairs_are_sums() -> None:
    """A pair's value is the sum of its seeds': the mean over pairs is twice the mean, and so is its error."""
    seeds = [0.0, 1.0, 4.0, 5.0]
    pairs = {(i, j): seeds[i] + seeds[j] for i in range(4) for j in range(i)}
    ours, plain = mean_over_pairs(pairs), mean_over_seeds(seeds)
    assert ours.mean == 2 * plain.mean and ours.error == pytest.approx(2 * plain.error)


def test_options_out_of_range_are_refused() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"seeds": 1}, "at least 2, got 1"),
        ({"seeds": 2, "adversary_seeds": 3}, "at most seeds"),
        ({"layers": 3}, "1 or 2 layers"),
        ({"lambdas": (0.0,)}, "above 0"),
        ({"tested": 0}, "tested is at least 1"),
    )
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            ExclusiveOptions(**options)


def test_a_device_that_is_not_there_is_refused(files, opinions, tiny_bert, tmp_path) -> None:
    with pytest.raises(LoadError, match="no device 'cuda:99'"):
        train_both_tasks(files, opinions, tiny_bert, tmp_path / "x", OPTIONS, device="cuda:99")
