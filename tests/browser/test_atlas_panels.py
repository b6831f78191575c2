"""The panels of the atlas: search, heads to look at first, maps and atlases that are made, pages that open offline."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import headscope as hs
from browser.workbench import Workbench

TEXTS = "\n".join(
    [
        "The doctor asked the nurse a question, and she did not know the answer.",
        "The cat sat on the mat because the cat was tired, and the dog sat on the floor.",
        "A bird sang in the old tree. A bird sang in the old tree. A bird sang in the old tree.",
    ]
)


def opened(bench: Workbench, atlas: str = "builtin:bert", **selection: str) -> None:
    """The atlas by a link, without a click."""
    options = "&".join(f"{name}={value}" for name, value in selection.items())
    bench.goto(f"{bench.server.host}/#view=atlas&atlas={atlas}&{options}")
    expect(bench.status).to_contain_text("PCA, 2-D")


def test_search_lights_tokens_and_ranks_heads(bench: Workbench) -> None:
    opened(bench)
    search = bench.page.get_by_role("region", name="Search")
    search.get_by_role("searchbox").fill("the")
    search.get_by_role("button", name="Find").click()
    bench.ready()
    # The page is ready when heads are ranked, not before.
    assert "tokens match" in search.inner_text() and "lit" in bench.status.inner_text()
    rows = search.locator("tbody tr")
    expect(rows).to_have_count(12)
    ratios = [float(text) for text in search.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert ratios == sorted(ratios) and ratios[0] < 1
    head = rows.first.get_by_role("button").inner_text()
    rows.first.get_by_role("button").click()
    bench.links_to(cloud=head, search="the")
    expect(bench.page.get_by_role("region", name=f"Head {head}")).to_contain_text("trustworthiness")
    search.get_by_role("button", name="clear").click()
    bench.links_to(search=None)


def test_a_regular_expression_that_is_wrong_or_greedy_does_no_harm(bench: Workbench) -> None:
    bench.expect("422")
    opened(bench)
    search = bench.page.get_by_role("region", name="Search")
    search.get_by_role("checkbox", name="regular expression").check()
    search.get_by_role("searchbox").fill("(the")
    search.get_by_role("button", name="Find").click()
    expect(search.get_by_role("alert")).to_contain_text("is not a regular expression")
    search.get_by_role("searchbox").fill("(a*)*(a*)*(a*)*$b")
    search.get_by_role("button", name="Find").click()
    expect(search).to_contain_text("0 tokens match")


def test_heads_to_look_at_first_lead_into_the_view(bench: Workbench) -> None:
    opened(bench, "builtin:gpt")
    first = bench.page.get_by_role("region", name="Heads to look at first")
    button = first.locator("button.head").first
    head = button.locator("b").inner_text()
    button.click()
    bench.links_to(cloud=head)
    expect(bench.status).to_contain_text(head)
    # One scale down, the same head is in focus: the run on screen is of the same model.
    bench.choose("Scale", "Head")
    bench.links_to(view="head", at=head)
    bench.choose("Scale", "Atlas")
    bench.links_to(view="atlas", cloud=head)


def test_what_an_atlas_without_vectors_cannot_draw_is_said(bench: Workbench) -> None:
    opened(bench)
    bench.page.get_by_label("Map", exact=True).select_option("umap")
    bench.ready()
    expect(bench.page.locator("main")).to_contain_text("There is no UMAP map (2-D, scaled) in this atlas")
    bench.page.get_by_label("Map", exact=True).select_option("pca")
    bench.ready()
    expect(bench.status).to_contain_text("48 heads")


def test_an_atlas_of_your_texts_with_a_map_that_is_stopped_and_one_that_is_made(bench: Workbench) -> None:
    opened(bench)
    bench.page.get_by_text("Make an atlas", exact=True).click()
    form = bench.page.get_by_role("form", name="Make an atlas")
    form.get_by_label("Model").select_option("builtin:gpt")
    expect(form.get_by_role("button", name="Make atlas")).to_be_disabled()
    form.get_by_label("Texts, one a line").fill(TEXTS)
    form.get_by_role("button", name="Make atlas").click()
    panel = bench.page.get_by_role("region", name="Atlas", exact=True)
    bench.ready()
    # The page is ready when the new atlas is open, not before.
    assert "builtin:gpt on 3 examples\n" in panel.inner_text() and "atlas=texts-" in bench.page.url
    bench.page.get_by_label("Map", exact=True).select_option("tsne")
    bench.page.get_by_role("button", name="Make it for 48 heads").click()
    bench.page.get_by_role("button", name="Cancel").click()
    make = bench.page.get_by_role("button", name=re.compile("Make (it for 48 heads|the others)"))
    expect(make).to_be_visible()
    bench.page.get_by_label("Map", exact=True).select_option("pca")
    bench.choose("Dimensions", "3-D")
    make.click()
    expect(bench.status).to_contain_text("PCA, 3-D")
    # An example of it, in the head view of its model.
    examples = bench.page.get_by_role("region", name="Examples")
    expect(examples.get_by_role("button").first).to_contain_text("The doctor asked the nurse")


def test_on_a_narrow_screen_the_form_makes_way_for_what_is_made(bench: Workbench) -> None:
    bench.page.set_viewport_size({"width": 390, "height": 844})
    opened(bench)
    bench.page.get_by_role("button", name="Model and input").click()
    bench.page.get_by_text("Make an atlas", exact=True).click()
    form = bench.page.get_by_role("form", name="Make an atlas")
    form.get_by_label("Texts, one a line").fill(TEXTS)
    form.get_by_role("button", name="Make atlas").click()
    expect(bench.page.get_by_role("button", name="Close the panel")).to_have_count(0)
    bench.ready()
    expect(bench.status).to_contain_text("48 heads")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    atlas = hs.atlas("builtin:gpt", TEXTS.splitlines(), heads=["L0H0", "L3H2"])
    view = hs.atlas_view(atlas, "L3H2", heads=["L0H0", "L3H2"], search="the")
    file = view.save(tmp_path_factory.mktemp("saved") / "atlas.html")
    assert file.stat().st_size < 2_000_000
    return file


def test_a_saved_page_opens_offline(saved: Path, offline: Workbench) -> None:
    offline.goto(saved.as_uri())
    expect(offline.status).to_contain_text("L3H2")
    expect(offline.page.get_by_role("region", name="Head L3H2")).to_contain_text("Key-bias share")
    offline.page.get_by_role("button", name="All heads").click()
    offline.ready()
    expect(offline.status).to_contain_text("2 heads")
    expect(offline.page.get_by_role("region", name="Atlas", exact=True)).to_contain_text("on 3 examples")


def test_the_page_on_screen_is_saved_as_a_file(bench: Workbench, offline: Workbench, tmp_path: Path) -> None:
    opened(bench, cloud="L3H0", paint="position")
    bench.page.get_by_role("button", name="Save", exact=True).click()
    with bench.page.expect_download() as download:
        bench.page.get_by_role("button", name=re.compile("^HTML")).click()
    file = tmp_path / "atlas.html"
    download.value.save_as(file)
    offline.goto(file.as_uri())
    expect(offline.status).to_contain_text("L3H0")
