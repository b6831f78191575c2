"""Pruned heads in a browser: the slider over a sweep, marks that are no colours, saved pages, the report."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_tasks
from made_sweep import add_points, begin, first_heads, made_point, some_heads
from playwright.sync_api import Browser, expect

import headscope as hs
from browser.axe import violations
from browser.server import Server
from browser.workbench import Workbench
from headscope.pruning import Sweep
from headscope.reports import prune_report
from headscope.reports.pruning import PruneReport

SHE = "The doctor asked the nurse a question. She"


@pytest.fixture(scope="module")
def sweep(gpt: hs.Model, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """Two points of builtin:gpt; the smaller has weights of its own."""
    folder = tmp_path_factory.mktemp("sweep") / "pruned"
    sweep = begin(folder, gpt, task="language_modelling", metric="bits_per_byte", higher_is_better=False)
    weights = {"transformer.ln_f.bias": dict(gpt.module.named_parameters())["transformer.ln_f.bias"] + 0.5}
    settings = {"metric": "bits_per_byte", "lambda_": {"self": 0.1}}
    few = first_heads(gpt, self=12)
    add_points(
        sweep,
        [
            made_point("none", first_heads(gpt), 1.2, metric="bits_per_byte", method="none", interval=(1.1, 1.3)),
            made_point("most", first_heads(gpt, self=36), 1.3, **settings),
            made_point("few", few, 1.6, interval=(1.5, 1.7), **settings, **sweep.write_weights("few", weights)),
        ],
    )
    return sweep


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory, sweep: Sweep) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "log", "--sweep", str(sweep.folder)) as running:
        yield running


def test_the_arrow_keys_move_the_slider_on_and_on(own_bench: Workbench) -> None:
    bench, page = own_bench, own_bench.page
    bench.open(text=SHE)
    slider = page.get_by_role("slider", name="Point of the sweep")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # while the first is under way
    bench.links_to(model="sweep:pruned/few", text=SHE)
    bench.ready()
    expect(slider).to_be_focused()
    page.keyboard.press("ArrowLeft")
    bench.links_to(model="sweep:pruned/most", text=SHE)
    expect(slider).to_have_value("1")


def test_the_slider_runs_the_input_with_fewer_heads(own_bench: Workbench, gpt: hs.Model, sweep: Sweep) -> None:
    bench, page = own_bench, own_bench.page
    bench.open(text=SHE)
    bar, slider = page.get_by_role("group", name="Pruned heads"), page.get_by_role("slider", name="Point of the sweep")
    expect(bar).to_contain_text("Not pruned: 48 of 48 heads kept, bits per byte 1.200 (untouched model)")
    before = bench.stage()
    slider.press("End")
    expect(bar).to_contain_text(
        "Pruned: 12 of 48 heads kept, bits per byte 1.600 (few: L0 gates, weights trained with gates)"
    )
    bench.links_to(model="sweep:pruned/few", text=SHE)
    bench.ready()
    assert bench.stage() != before
    expect(bench.status).to_contain_text("pruned (hatched): 36 of 48 heads")
    # With the weights of the point, not with its mask alone.
    point = sweep.point("few")
    prediction = sweep.load(gpt, point).run(SHE, point.mask.interventions()).predictions()[0]
    expect(page.get_by_role("complementary", name="The head in focus")).to_contain_text(prediction.text.strip())
    # Heads of the head view say it too, in words and struck through.
    bench.open(model="sweep:pruned/few", text=SHE, view="head", at="L4H0")
    expect(bench.status).to_contain_text("pruned (grey and dashed): L4H0")
    chip = page.get_by_role("button", name="L4H0 (pruned)")
    expect(chip).to_have_css("text-decoration-line", "line-through")
    expect(page.get_by_role("complementary", name="The head in focus")).to_contain_text("pruned")


def test_a_pruned_run_is_compared_with_all_heads(own_bench: Workbench) -> None:
    bench, page = own_bench, own_bench.page
    bench.open(model="sweep:pruned/most", text=SHE)
    page.get_by_role("button", name="Compare with all heads").click()
    bench.ready()
    expect(page.get_by_role("button", name="Compare with all heads")).to_be_hidden()
    bench.links_to(model="sweep:pruned/most")


def test_a_saved_page_says_what_is_pruned(own_bench: Workbench, offline: Workbench, tmp_path: Path) -> None:
    own_bench.open(model="sweep:pruned/few", text=SHE)
    file = own_bench.save("HTML", tmp_path)
    offline.visit(file.as_uri())
    bar = offline.page.get_by_role("group", name="Pruned heads")
    expect(bar).to_contain_text("Pruned: 12 of 48 heads kept (point few)")
    expect(bar.get_by_role("slider")).to_have_count(0)
    expect(offline.status).to_contain_text("pruned (hatched): 36 of 48 heads")


# The report


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> PruneReport:
    """Of a tiny model with four heads, whose roles are measured in a moment."""
    model = tiny_tasks.gpt()
    folder = tmp_path_factory.mktemp("tiny")
    sweep = begin(folder, model, task="language_modelling", metric="loss", higher_is_better=False)
    little = first_heads(model, self=2)
    points = [
        made_point("none", first_heads(model), 1.2, metric="loss", method="none", interval=(1.1, 1.3)),
        made_point("few", little, 1.6, metric="loss", lambda_={"self": 0.1}, interval=(1.5, 1.7)),
    ]
    for seed in range(2):
        drawn: dict[str, Any] = {"method": "random", "allocation": "l0", "like": "few", "seed": seed}
        points.append(made_point(f"r{seed}", some_heads(model, little, seed), 1.7 + seed / 20, metric="loss", **drawn))
    add_points(sweep, points)
    return prune_report(sweep, model, ["the cat sat", "a dog sat on it"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_report_is_drawn_and_answers(browser: Browser, report: PruneReport, scheme: Any, width: int) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, accept_downloads=True
    )
    page, problems = context.new_page(), list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(report.page.as_uri())
    page.wait_for_selector("body[data-ready=true]")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("#score-panels polyline").count() == 2
    expect(page.locator("#score-panels")).to_contain_text("With 2 of 4 heads kept")
    page.get_by_role("button", name="random, L0's counts per type").click()
    assert page.locator("#score-panels polyline").count() == 1
    cells = page.locator("#alternatives-body tr:last-child td").all_inner_texts()
    assert cells == ["random, L0's counts per type", "2", "1.725 (1.700 to 1.750, 2 seeds)", "–"]
    if width == 390:  # what the table is about, its scores, is on the screen
        score = page.locator("#alternatives-head th").last.bounding_box()
        assert score is not None and score["x"] + score["width"] <= width
    # A point's survivors: struck out where pruned, by role where they survive.
    page.locator("#choose-point").select_option("few")
    assert page.locator("#survivor-grids .cell.pruned").count() == 2
    assert page.url.endswith("#few")
    expect(page.locator("#roles")).to_contain_text("Of 2 survivors of L0")
    assert page.locator("#role-panels rect").count() >= 3
    assert page.locator("#layer-grids .cell").count() == 2
    with page.expect_download() as download:
        page.get_by_role("button", name="Download points as CSV").click()
    assert "r1" in Path(download.value.path()).read_text()
    assert problems == []
    context.close()


def test_axe_finds_nothing_in_the_report(browser: Browser, report: PruneReport, axe: str) -> None:
    schemes: tuple[Any, ...] = ("light", "dark")
    for scheme in schemes:
        context = browser.new_context(color_scheme=scheme, bypass_csp=True)
        page = context.new_page()
        page.goto(report.page.as_uri())
        page.wait_for_selector("body[data-ready=true]")
        assert violations(page, axe) == []
        context.close()
