"""The report of a sweep: curves and sentences of points whose answer is known, tables, and roles measured again."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from made_sweep import add_points, begin, first_heads, made_point
from tiny_models import tiny_bert_tokenizer
from tiny_tasks import SIZES, gpt, marian, wrap
from transformers import AlbertConfig, AlbertForMaskedLM

from headscope.errors import Cancelled, InputError, LoadError
from headscope.progress import Cancel
from headscope.pruning import HeadMask, PrunePoint, Sweep, layers_of
from headscope.reports.pruning import prune_report
from headscope.reports.pruning.conclusions import (
    cost,
    layers_conclusion,
    roles_conclusion,
    scratch_conclusion,
    types_conclusion,
)
from headscope.reports.pruning.curves import panels_of, tuned_where_there_are
from headscope.reports.pruning.role_survival import RoleSurvival, role_survival
from headscope.reports.pruning.survivor_roles import SurvivorRoles, points_to_measure
from headscope.reports.pruning.sweep_page import data_of
from headscope.sites import Head, Site
from headscope.tasks.trained_parameters import frozen_checksum

TRANSLATOR: dict[str, Any] = {"task": "translation", "metric": "bleu"}
WRITER: dict[str, Any] = {"task": "language_modelling", "metric": "bits_per_byte", "higher_is_better": False}
TEXTS = ["the cat sat", "a dog sat on it", "she was tired"]
TUNED: dict[str, Any] = {"tuning": "fixed mask"}


def row(*bits: int) -> tuple[bool, ...]:
    return tuple(bit == 1 for bit in bits)


def translator_mask(encoder: tuple, decoder: tuple, cross: tuple) -> HeadMask:
    return HeadMask(
        {
            Site("encoder", 0): row(*encoder),
            Site("decoder", 0): row(*decoder),
            Site("decoder", 0, "cross"): row(*cross),
        }
    )


WHOLE = translator_mask((1, 1), (1, 1), (1, 1))
LITTLE = translator_mask((0, 0), (0, 1), (1, 1))


def l0(name: str, mask: HeadMask, value: float, **fields: Any) -> PrunePoint:
    settings: dict[str, Any] = {"lambda_": {"encoder": 0.1}} | fields
    return made_point(name, mask, value, **settings)


def random_point(name: str, mask: HeadMask, value: float, like: str, **fields) -> PrunePoint:
    return made_point(name, mask, value, method="random", allocation="l0", like=like, **fields)


# Curves


def test_points_that_differ_in_their_seed_alone_are_averaged() -> None:
    other = translator_mask((1, 0), (0, 1), (1, 1))
    points = [
        made_point("none", WHOLE, 40.0, method="none"),
        l0("a-s0", LITTLE, 30.0),
        l0("a-s1", other, 34.0, seed=1),
        random_point("r-s0", LITTLE, 20.0, "a-s0"),
        random_point("r-s1", LITTLE, 26.0, "a-s0", seed=1),
    ]
    (panel,) = panels_of(points)
    assert panel.types == ("encoder", "decoder") and panel.total == 4  # no cross head is ever pruned
    gated, drawn = panel.series
    assert (gated.label, drawn.label) == (
        "L0 gates, weights trained with gates",
        "random, L0's counts per type, not fine-tuned",
    )
    assert [(setting.heads, setting.score, setting.extremes) for setting in gated.curve] == [(1.5, 32.0, (30.0, 34.0))]
    assert [(setting.heads, setting.score) for setting in drawn.curve] == [(1.0, 23.0)]


def test_pruning_the_encoder_beside_a_frozen_decoder_has_a_panel_with_its_baselines() -> None:
    mask = translator_mask((1, 0), (1, 1), (1, 1))
    points = [
        l0("enc", mask, 39.0, parameters="encoder"),
        random_point("r", mask, 38.0, "enc", parameters="none"),
        l0("all", LITTLE, 30.0),
    ]
    everything, encoder = panels_of(points)
    assert (encoder.key, encoder.types, len(encoder.series)) == ("encoder", ("encoder",), 2)
    assert (everything.key, len(everything.series)) == ("all", 1)


def test_scores_that_are_not_numbers_are_left_out() -> None:
    assert panels_of([l0("a", LITTLE, float("nan"))]) == []


def test_the_mask_of_l0_on_the_original_weights_has_a_mark_of_its_own(tmp_path: Path) -> None:
    sweep = begin(tmp_path, marian(), **TRANSLATOR)
    add_points(sweep, [l0("a", LITTLE, 30.0), l0("m", LITTLE, 20.0, lambda_=None, like="a")])
    series = data_of(prune_report(sweep))["panels"][0]["series"]
    assert [(line["method"], line["label"]) for line in series] == [
        ("l0", "L0 gates, weights trained with gates"),
        ("l0-mask", "L0 gates, its mask on the original weights, not fine-tuned"),
    ]


def test_as_much_fine_tuning_is_of_the_weights_that_the_panel_trains(tmp_path: Path) -> None:
    sweep = begin(tmp_path, marian(), **TRANSLATOR)
    mask = translator_mask((1, 0), (1, 1), (1, 1))
    whole: dict[str, Any] = {"method": "none", **TUNED}
    points = [l0("all", LITTLE, 30.0), l0("enc", mask, 39.0, parameters="encoder")]
    points += [made_point(f"t{seed}", WHOLE, 40.0 + 2 * seed, seed=seed, **whole) for seed in range(2)]
    points += [made_point("e", WHOLE, 41.5, parameters="encoder", **whole)]
    add_points(sweep, points)
    panels = {panel["key"]: panel["tuned_baseline"] for panel in data_of(prune_report(sweep))["panels"]}
    assert panels == {
        "all": {"value": 41.0, "low": 40.0, "high": 42.0, "n": 2},
        "encoder": {"value": 41.5, "low": 41.5, "high": 41.5, "n": 1},
    }


def test_as_many_heads_chosen_in_other_ways_are_a_table(tmp_path: Path) -> None:
    sweep, other = begin(tmp_path, marian(), **TRANSLATOR), translator_mask((1, 0), (0, 0), (1, 1))
    own: dict[str, Any] = {"method": "random", "allocation": "own", "like": "a"}
    points = [
        made_point("none", WHOLE, 40.0, method="none"),
        l0("a", LITTLE, 30.0),
        l0("alone", WHOLE, 39.0),
        random_point("r-s0", LITTLE, 20.0, "a"),
        random_point("r-s1", LITTLE, 26.0, "a", seed=1),
        random_point("r-s0-tuned", LITTLE, 29.0, "a", **TUNED),
        made_point("o-s0", LITTLE, 10.0, **own),
        made_point("o-s1", other, 12.0, seed=1, **own),
        l0("m", LITTLE, 25.0, lambda_=None, like="a"),
        l0("a-tuned", LITTLE, 31.0, like="a", **TUNED),
    ]
    add_points(sweep, points)
    (group,) = data_of(prune_report(sweep))["alternatives"]
    assert (group["id"], group["heads"], group["untuned"]) == ("a", 3, "weights trained with gates")
    counts = {"encoder": 0, "decoder": 1, "cross": 2}
    assert [tuple(row.values()) for row in group["rows"]] == [
        ("L0 gates", counts, "30.0", "31.0", True),
        ("L0 gates, its mask on the original weights", counts, "25.0", "", False),
        ("random", None, "11.0 (10.0 to 12.0, 2 seeds)", "", False),
        ("random, L0's counts per type", counts, "23.0 (20.0 to 26.0, 2 seeds)", "29.0", False),
    ]


# Conclusions


def test_the_cost_is_stated_with_its_interval_and_compared_with_random_heads() -> None:
    base = made_point("none", WHOLE, 40.0, method="none", interval=(39.0, 41.0))
    points = [
        base,
        l0("a", LITTLE, 36.0, interval=(35.0, 37.0)),
        l0("a-tuned", LITTLE, 38.5, interval=(37.5, 39.5), like="a", **TUNED),
        random_point("r0", LITTLE, 38.0, "a", **TUNED),
        random_point("r1", LITTLE, 38.4, "a", seed=1, **TUNED),
    ]
    (panel,) = panels_of(points)
    assert cost(panel, base) == (
        "With 1 of 4 encoder and decoder heads kept (L0 gates, fine-tuned), BLEU is 38.5 (one seed; 95 % interval over "
        "examples 37.5 to 39.5); the untouched model 40.0 (39.0 to 41.0): −1.5. L0 is better than every seed of "
        "“random, L0's counts per type, fine-tuned” at 1 of 1 point (at least 2 seeds each)."
    )
    worse = [*points[:4], random_point("r1", LITTLE, 38.6, "a", seed=1, **TUNED)]
    assert "at 0 of 1 point" in cost(panels_of(worse)[0], base)
    assert "was not evaluated" in cost(panel, None)


def test_weights_trained_with_gates_are_not_compared_with_random_heads_on_the_original_weights() -> None:
    base = made_point("none", WHOLE, 40.0, method="none")
    drawn = [random_point(f"r{n}", LITTLE, 30.0 + n, "a", seed=n, parameters="none") for n in range(2)]
    points = [l0("a", LITTLE, 36.0), *drawn]
    assert "cannot be compared with weights that were trained with gates: add l0" in cost(panels_of(points)[0], base)
    mask = made_point("mask", LITTLE, 30.5, like="a", parameters="none")
    sentence = cost(panels_of([*points, mask])[0], base)
    assert "“L0 gates, its mask on the original weights, not fine-tuned” is better than every seed of" in sentence
    assert "at 0 of 1 point" in sentence
    alone = [l0("a", LITTLE, 36.0, parameters="gates"), *drawn]
    assert "L0 is better than every seed of “random" in cost(panels_of(alone)[0], base)


def test_a_fine_tuned_point_takes_the_place_of_its_own_source_alone() -> None:
    points = [
        l0("a", LITTLE, 36.0),
        l0("b", LITTLE, 37.0, lambda_={"encoder": 0.2}),
        l0("b-tuned", LITTLE, 38.0, like="b", lambda_={"encoder": 0.2}, **TUNED),
        random_point("ra", LITTLE, 30.0, "a"),
        random_point("rb", LITTLE, 30.0, "b"),
        random_point("rb-tuned", LITTLE, 31.0, "b", **TUNED),
    ]
    assert [point.id for point in tuned_where_there_are(points)] == ["a", "b-tuned", "ra", "rb-tuned"]
    assert [point.id for point in points_to_measure(points)] == ["a", "b-tuned", "ra", "rb-tuned"]


def test_the_type_that_is_lost_first_is_told_with_how_often() -> None:
    first = translator_mask((0, 0), (0, 1), (1, 1))
    second = translator_mask((0, 1), (0, 0), (1, 1))
    assert types_conclusion([l0("a", first, 1.0), l0("b", translator_mask((0, 1), (1, 1), (1, 1)), 2.0)]) == (
        "Heads kept on average over 2 points: encoder 25 %, decoder 75 %, cross-attention 100 %. Encoder has the "
        "smallest share in 2 of 2, cross-attention the largest in 2 (one seed)."
    )
    assert "Encoder has the smallest share in 1 of 2" in types_conclusion([l0("a", first, 1.0), l0("b", second, 2.0)])
    assert "no order" in types_conclusion([l0("a", WHOLE, 1.0)])
    assert "one type" in types_conclusion([l0("a", HeadMask({Site("main", 0): row(1, 0)}), 1.0)])


def test_halves_of_the_layers_are_compared_without_the_middle_one() -> None:
    mask = HeadMask({Site("main", 0): row(1, 1), Site("main", 1): row(0, 0), Site("main", 2): row(0, 1)})
    sentence = layers_conclusion([l0("a", mask, 1.0, seed=3)], "self")
    assert "lower half of the layers keeps 100 %" in sentence and "upper half 50 %" in sentence
    assert "keeps more in 1, as many in 0" in sentence
    assert "no point" in layers_conclusion([l0("a", translator_mask((1, 0), (1, 1), (1, 1)), 1.0)], "encoder")


def test_trained_and_from_scratch_are_compared_and_other_numbers_of_heads_are_said() -> None:
    pairs = [(l0("a", LITTLE, 30.0), l0("b", LITTLE, 29.0, start="scratch")), (l0("c", WHOLE, 30.0), None)]
    assert scratch_conclusion(pairs).startswith("From the trained model is better than from scratch in 1 of 1 row")
    assert "differ" not in scratch_conclusion(pairs)
    assert "No row" in scratch_conclusion(pairs[1:])
    uneven = [(l0("a", LITTLE, 30.0), l0("b", WHOLE, 29.0, start="scratch"))]
    assert "Numbers of heads differ in 1." in scratch_conclusion(uneven)


def test_a_row_says_how_many_heads_training_from_scratch_kept(tmp_path: Path) -> None:
    sweep = begin(tmp_path, marian(), **TRANSLATOR)
    far, near = translator_mask((1, 1), (1, 1), (1, 1)), translator_mask((1, 0), (0, 1), (1, 1))
    scratch = [l0(name, mask, 29.0, start="scratch") for name, mask in (("far", far), ("near", near))]
    other = l0("other", LITTLE, 28.0, start="scratch", lambda_={"encoder": 0.7})
    add_points(sweep, [l0("a", LITTLE, 30.0), *scratch, other])
    rows = {tuple(row["ids"]): row["scratch_heads"] for row in data_of(prune_report(sweep))["table"]["rows"]}
    assert rows == {(None, "far"): "", ("a", "near"): "1 / 1 / 2", (None, "other"): ""}


def with_roles(point: PrunePoint, n_with_role: int) -> SurvivorRoles:
    from headscope.analysis.measures.roles import Finding, Verdict

    finding = Finding("names", "names", "names", 0.9, 0.1, None, None, 30, "≥ 0.5", "ours")
    heads = point.mask.heads_kept()
    return SurvivorRoles(
        point, {head: Verdict(head, (finding,) if at < n_with_role else ()) for at, head in enumerate(heads)}
    )


def test_roles_of_survivors_are_compared_with_those_of_random_survivors() -> None:
    chosen = with_roles(l0("a-tuned", LITTLE, 1.0, like="a", **TUNED), 2)
    drawn = [with_roles(random_point(f"r{n}", LITTLE, 1.0, "a", **TUNED), n) for n in (0, 1)]
    whole = with_roles(made_point("none", WHOLE, 2.0, method="none"), 3)  # both of the encoder, one of the decoder
    assert roles_conclusion(whole, [chosen], drawn) == (
        "Of 3 survivors of L0 2 have a role, of as many random survivors 0 to 1 (2 seeds). L0's survivors have a role "
        "more often than under every random seed at 1 of 1 point, less often at 0. In the untouched model 3 of 6 have "
        "one. Of 3 survivors of L0 0 had a role before pruning; of as many heads of each layer, drawn at random, 0.5 "
        "would (P = 1)."
    )
    assert "no random survivors" in roles_conclusion(None, [chosen], [])


def test_chance_keeps_as_many_heads_of_each_layer() -> None:
    """Two layers of four heads, two of the first with a role. Both survive beside another two of the second layer:
    chance leaves both in 1 of 6 draws of the first, and the second adds none."""

    def point(first: tuple, second: tuple) -> PrunePoint:
        return l0("a", HeadMask({Site("main", 0): row(*first), Site("main", 1): row(*second)}), 1.0)

    whole = with_roles(point((1, 1, 1, 1), (1, 1, 1, 1)), 2)
    assert role_survival(whole, point((1, 1, 0, 0), (0, 0, 1, 1))) == RoleSurvival(4, 2, 1.0, pytest.approx(1 / 6))
    assert role_survival(whole, point((1, 0, 1, 0), (0, 0, 0, 0))) == RoleSurvival(2, 1, 1.0, pytest.approx(5 / 6))
    assert role_survival(whole, point((0, 0, 1, 1), (1, 1, 1, 1))) == RoleSurvival(6, 0, 1.0, pytest.approx(1.0))


# The report


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """A sweep of a translator in progress: fine-tuned and not, a seed, from scratch."""
    sweep, half = begin(tmp_path, marian(), **TRANSLATOR), translator_mask((1, 0), (0, 1), (1, 1))
    values = {site: (0.5, -1.25) for site in LITTLE.survivors}
    add_points(
        sweep,
        [
            made_point("none", WHOLE, 40.0, method="none", interval=(39.0, 41.0)),
            l0("l0-a", LITTLE, 36.0, log_alpha=values, p_open=values),
            l0("l0-b", half, 38.0, lambda_={"encoder": 0.05}),
            l0("l0-scratch", half, 37.0, start="scratch", lambda_={"encoder": 0.05}),
            random_point("r0", LITTLE, 30.0, "l0-a"),
        ],
    )
    sweep.choose("l0-b")
    return sweep


def test_the_report_has_page_and_tables(sweep: Sweep) -> None:
    import pyarrow.parquet as pq

    report = prune_report(sweep)
    text = report.page.read_text()
    assert text.count("<script") == 2 and "src=" not in text and "<link" not in text
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert data["table"]["rows"][0]["ids"] == ["l0-b", "l0-scratch"]
    assert [point["id"] for point in data["points"] if point["is_chosen"]] == ["l0-b"]
    assert "Point l0-b was chosen on dev. Scores are on dev too: there is no test data" in text
    assert "l0-a" in data["csv"].splitlines()[2]
    points = pq.read_table(sweep.folder / "points.parquet").to_pylist()
    assert [row["point"] for row in points] == ["none", "l0-a", "l0-b", "l0-scratch", "r0"]
    assert points[1]["kept_encoder"] == 0 and points[1]["kept_cross"] == 2 and points[1]["heads_kept"] == 3
    heads = pq.read_table(sweep.folder / "heads.parquet").to_pylist()
    assert len(heads) == 5 * 6
    first = next(row for row in heads if row["point"] == "l0-a" and row["head"] == "decoder.L0H1")
    assert first["survives"] and first["log_alpha"] == -1.25 and first["role"] is None


def test_a_sweep_without_points_or_with_one_stack_has_a_report(tmp_path: Path) -> None:
    empty = begin(tmp_path / "empty", gpt(), **WRITER)
    assert data_of(prune_report(empty))["panels"] == []
    small = begin(tmp_path / "small", gpt(), **WRITER)
    add_points(small, [l0("a", first_heads(gpt(), self=1), 2.5, metric="bits_per_byte", lambda_={"self": 1.0})])
    data = data_of(prune_report(small))
    assert data["baseline"] is None and data["panels"][0]["axis"] == "Heads kept, of 4"
    assert data["layers_figure"][0]["rows"] == [
        {"site": "L0", "heads": 2, "kept": [1]},
        {"site": "L1", "heads": 2, "kept": [0]},
    ]


def test_roles_are_measured_on_the_pruned_model_and_kept(tmp_path: Path) -> None:
    model, mask = gpt(), HeadMask.of(gpt(), [Head("main", 1, 0)])
    sweep = begin(tmp_path, model, **WRITER)
    points = [
        made_point("none", HeadMask.full(model), 2.0, method="none"),
        l0("a", mask, 2.5, lambda_={"self": 1.0}),
        random_point("r", mask, 2.6, "a"),
        made_point("importance", mask, 2.6, method="importance", allocation="own", like="a"),
    ]
    add_points(sweep, points)
    assert [point.id for point in points_to_measure(points)] == ["none", "a", "r"]
    report = prune_report(sweep, model, TEXTS)
    assert list(report.roles) == ["none", "a", "r"]
    assert list(report.roles["a"].verdicts) == [Head("main", 1, 0)] and len(report.roles["none"].verdicts) == 4
    manifests = {
        name: json.loads(next((sweep.point_folder(name) / "roles").glob("*/manifest.json")).read_text())
        for name in ("none", "a")
    }
    assert manifests["none"]["model"]["weights"] != manifests["a"]["model"]["weights"]
    shards = {file: file.stat().st_mtime_ns for file in sweep.folder.rglob("roles/**/*.parquet")}
    again = prune_report(sweep, model, TEXTS)
    assert len(shards) == 3 and all(file.stat().st_mtime_ns == time for file, time in shards.items())
    assert again.roles["a"].verdicts == report.roles["a"].verdicts
    with pytest.raises(InputError, match="both the original model and a corpus"):
        prune_report(sweep, model)


def test_when_stopped_while_roles_are_measured_there_is_a_report(tmp_path: Path) -> None:
    sweep, cancel = begin(tmp_path, gpt(), **WRITER), Cancel()
    add_points(sweep, [made_point("none", HeadMask.full(gpt()), 2.0, metric="bits_per_byte", method="none")])
    cancel.set()
    with pytest.raises(Cancelled):
        prune_report(sweep, gpt(), TEXTS, cancel=cancel)
    assert "Measuring roles was cut short" in (tmp_path / "report.html").read_text()


def test_roles_that_cannot_be_measured_leave_the_rest_of_the_report(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = AlbertConfig(vocab_size=len(tiny_bert_tokenizer()), max_position_embeddings=32, embedding_size=8, **SIZES)
    model = wrap(AlbertForMaskedLM(config), tiny_bert_tokenizer())  # its layers share their weights
    sweep = begin(tmp_path, model, task="masked_language_modelling", metric="loss", higher_is_better=False)
    add_points(sweep, [l0("a", HeadMask.of(model, [Head("main", 1, 0)]), 2.5, metric="loss", lambda_={"self": 1.0})])
    report = prune_report(sweep, model, TEXTS)
    assert not report.roles and "Not measured at 1 of 1 points: L0 and L1 share their weights" in report.roles_about


def test_another_model_of_the_same_shape_is_refused(tmp_path: Path) -> None:
    about = {"task": "language_modelling", "metric": "loss", "higher_is_better": False, "data": {}}
    options = {"weights": frozen_checksum(gpt().module, {})}
    sweep = Sweep.create(
        tmp_path, model="gpt", model_class="GPT2LMHeadModel", layers=layers_of(gpt()), options=options, **about
    )
    sweep.check_weights(gpt())
    with pytest.raises(LoadError, match="with other weights: prune it again"):
        prune_report(sweep, gpt(seed=1), TEXTS)
