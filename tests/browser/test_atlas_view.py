"""The picture of an atlas: all heads as clouds, one of them, the example of a point; by pointer and by keyboard."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import headscope as hs
from browser.axe import in_both_themes, violations
from browser.server import Server
from browser.workbench import around, is_drawn

TEXTS = [
    "The doctor asked the nurse a question.",
    "She gave him the key of the barn.",
    "It was raining, and the river was high.",
]
IMAGES = Path(hs.__file__).parent / "builtin" / "images"


@pytest.fixture(scope="module")
def atlases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An atlas of texts, with maps in two and three dimensions, and one of pictures; by the names of their folders."""
    folder = tmp_path_factory.mktemp("atlases")
    of_texts = hs.atlas("builtin:gpt", TEXTS, folder / "texts", heads=["L1", "L2"])
    of_texts.draw(dims=3)
    of_texts.draw(coordinates="raw")
    pictures = folder / "images"
    pictures.mkdir()
    for name in ("lorry", "sailing_boat"):
        shutil.copy(IMAGES / f"{name}.png", pictures)
    of_pictures = hs.atlas("builtin:vit", str(pictures), folder / "pictures", heads=["L1"], scores=False)
    return {"texts": of_texts, "pictures": of_pictures}


@pytest.fixture(scope="module")
def own_server(atlases: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    options = [option for atlas in atlases.values() for option in ("--atlas", str(atlas.folder))]
    with Server(folder / "log", *options) as running:
        yield running


def show(bench, name: str = "texts", **selection: str) -> None:
    bench.goto(bench.address(view="atlas", atlas=name, **selection))


def toolbar(bench):
    return bench.page.get_by_role("toolbar", name="Picture")


def example(bench):
    return bench.page.get_by_role("region", name="Example", exact=True)


def tip(bench):
    return bench.page.get_by_role("tooltip")


def box_of(bench) -> dict[str, float]:
    return bench.page.locator(".view [role=img]").first.bounding_box()


def to_point(bench, text: str) -> None:
    """Put the pointer on a point that has this label: it is a few pixels beside it, at the left or at the right."""
    box = bench.label(text).first.bounding_box()
    middle = box["y"] + box["height"] / 2
    for x in (box["x"] - 7, box["x"] + box["width"] + 7):
        bench.page.mouse.move(x, middle)
        if tip(bench).count() and tip(bench).inner_text().startswith(f"{text} "):
            return
    pytest.fail(f"there is no point beside {text!r}")


def picture(bench) -> str:
    """What is drawn, without words."""
    bench.page.wait_for_timeout(200)  # sharp again
    return bench.page.evaluate("() => document.querySelector('.view canvas').toDataURL()")


def test_all_heads_are_clouds_on_one_screen(own_bench, atlases):
    show(own_bench)
    count = 2 * atlases["texts"].n_tokens["main"]
    expect(own_bench.status).to_contain_text(f"16 heads, {count} points each")
    screen, heads = own_bench.screen(), own_bench.heads()
    assert len(heads) == 16
    for x, y in heads.values():
        assert is_drawn(around(screen, x, y, 40))
    legend = own_bench.page.get_by_role("note", name="Legend")
    expect(legend).to_have_text("querykey")
    own_bench.page.mouse.move(*heads["L2H3"])
    score = atlases["texts"].scores()["L2H3"].pearson
    expect(tip(own_bench)).to_contain_text("L2H3")
    expect(tip(own_bench)).to_contain_text(f"{score:.2f}".replace("-", "−"))


def test_from_all_heads_into_one_to_an_example_and_back(own_bench, atlases):
    show(own_bench)
    own_bench.page.mouse.click(*own_bench.heads()["L2H3"])
    own_bench.links_to(cloud="L2H3")
    own_bench.ready()
    to_point(own_bench, "nurse")
    expect(tip(own_bench)).to_contain_text("asked the [nurse] a question")
    expect(tip(own_bench)).to_contain_text("example 1, position 5 of")
    expect(tip(own_bench)).to_contain_text("norm")
    own_bench.page.mouse.down()
    own_bench.page.mouse.up()
    own_bench.ready()
    expect(example(own_bench).get_by_role("heading")).to_have_text("L2H3, example 1")
    expect(example(own_bench).get_by_role("img", name="Attention averaged by position")).to_be_visible()
    row = int(own_bench.page.evaluate("new URLSearchParams(location.hash.slice(1)).get('point').split(':')[1]"))
    assert atlases["texts"].tokens("main").column("text")[row].as_py() == "nurse"
    own_bench.press("Escape")
    own_bench.links_to(on=None, cloud="L2H3")
    own_bench.press("Escape")
    own_bench.links_to(point=None, cloud="L2H3")
    own_bench.press("Escape")
    own_bench.links_to(cloud=None)
    assert len(own_bench.heads()) == 16


def test_the_example_has_the_attention_that_the_model_has(own_bench, gpt):
    show(own_bench, cloud="L2H3", point="query:4", on="sentence")
    trace = gpt.run(TEXTS[0])
    texts = next(iter(trace.tokens.values())).texts
    expected = trace.pattern("L2H3")[4]
    best = int(expected.argmax())
    own_bench.page.get_by_role("button", name="Close the example").focus()  # no pointer on the lines
    assert own_bench.numbers()[texts[best]] == pytest.approx(expected[best], abs=0.011)
    own_bench.page.get_by_role("button", name="Close the example").click()
    own_bench.links_to(on=None)
    expect(example(own_bench)).to_have_count(0)


def test_points_are_selected_by_lasso_and_by_box_and_lit_in_all_heads(own_bench, atlases):
    show(own_bench, cloud="L1H1")
    plain = picture(own_bench)
    box = box_of(own_bench)
    left, top, right, bottom = box["x"] + 4, box["y"] + 40, box["x"] + box["width"] - 4, box["y"] + box["height"] - 4
    mouse = own_bench.page.mouse
    own_bench.page.keyboard.down("Shift")
    mouse.move(left, top)
    mouse.down()
    for x, y in [(right, top), (right, bottom), (left, bottom)]:
        mouse.move(x, y, steps=3)
    mouse.up()
    own_bench.page.keyboard.up("Shift")
    count = 2 * atlases["texts"].n_tokens["main"]
    expect(own_bench.status).to_contain_text(f"{count} points lit")
    toolbar(own_bench).get_by_role("button", name="Box").click()
    mouse.move(left, top)
    mouse.down()
    mouse.move((left + right) / 2, bottom, steps=3)
    mouse.up()
    expect(own_bench.status).not_to_contain_text(f"{count} points lit")
    lit = int(re.search(r"(\d+) points lit", own_bench.status.inner_text())[1])  # type: ignore[index]
    assert 0 < lit < count
    assert picture(own_bench) != plain
    own_bench.page.get_by_role("button", name="All heads").click()
    own_bench.links_to(cloud=None)
    expect(own_bench.status).to_contain_text(f"{lit} points lit")


def test_a_solid_is_turned_by_dragging_and_by_keys(own_bench):
    show(own_bench, cloud="L1H1", dims="3", labels="0")
    box = box_of(own_bench)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    views = [picture(own_bench)]
    own_bench.page.mouse.move(x, y)
    own_bench.page.mouse.down()
    own_bench.page.mouse.move(x + 150, y + 40, steps=4)
    own_bench.page.mouse.up()
    views.append(picture(own_bench))
    own_bench.page.locator("[data-picture]").focus()
    own_bench.page.keyboard.press("Shift+ArrowLeft")
    views.append(picture(own_bench))
    assert len(set(views)) == 3
    expect(own_bench.status).to_contain_text("3-D")


def test_colours_and_their_legend(own_bench):
    show(own_bench, cloud="L1H1", labels="0")
    legend = own_bench.page.get_by_role("note", name="Legend")
    views = [picture(own_bench)]
    for colour, words in [
        ("position", "position in the example"),
        ("position5", "position mod 5"),
        ("special", "special and punctuation"),
        ("frequency", "frequency in the corpus, log scale"),
        ("norm", "norm of the vector"),
        ("key_bias", "key bias, in logits"),
    ]:
        own_bench.page.get_by_label("Colour by").select_option(colour)
        own_bench.links_to(paint=colour)
        own_bench.ready()
        expect(legend).to_contain_text(words)
        views.append(picture(own_bench))
    assert len(set(views)) == len(views)
    show(own_bench, cloud="L1H1", labels="0", on="safe")
    assert picture(own_bench) != views[0]


# How many different pictures there are within half a second.
PICTURES = """
async () => {
  const views = new Set();
  const begun = performance.now();
  while (performance.now() - begun < 600) {
    views.add(document.querySelector('.view canvas').toDataURL());
    await new Promise(resolve => requestAnimationFrame(resolve));
  }
  return views.size;
}
"""


@pytest.mark.parametrize(("motion", "least", "most"), [("reduce", 1, 3), ("no-preference", 6, 1000)])
def test_points_glide_to_other_coordinates_where_motion_is_welcome(own_bench, motion, least, most):
    own_bench.page.emulate_media(reduced_motion=motion)
    show(own_bench, cloud="L1H1", labels="0")
    before = picture(own_bench)
    select = "select => { select.value = 'raw'; select.dispatchEvent(new Event('change', { bubbles: true })); }"
    own_bench.page.get_by_label("Coordinates", exact=True).evaluate(select)
    views = own_bench.page.evaluate(PICTURES)
    assert least <= views <= most
    own_bench.ready()
    assert picture(own_bench) != before


def test_patches_and_attention_over_their_picture(own_bench):
    show(own_bench, "pictures", cloud="L1H2", point="query:20", on="sentence")
    dots = picture(own_bench)
    show(own_bench, "pictures", cloud="L1H2", point="query:20", on="pictures,sentence")
    expect(own_bench.status).to_contain_text("L1H2: 260 points")
    is_other = "before => document.querySelector('.view canvas').toDataURL() !== before"
    own_bench.page.wait_for_function(is_other, arg=dots)
    to_patch(own_bench)
    expect(tip(own_bench)).to_contain_text(re.compile(r"row \d, column \d"))
    expect(example(own_bench).get_by_role("status")).to_contain_text("from 3·4")
    show(own_bench, "pictures", cloud="L1H2", point="query:20", on="pictures,sentence,flows")
    flows = "from each patch to the patch that it looks at most"
    expect(example(own_bench).get_by_role("status")).to_contain_text(flows)
    show(own_bench, "pictures", paint="hue")
    expect(own_bench.page.get_by_role("note", name="Legend")).to_contain_text("hue of the patch")


def test_pictures_are_coloured_by_the_class_that_the_model_predicts(own_bench, atlases):
    show(own_bench, "pictures", cloud="L1H2", labels="0")
    plain = picture(own_bench)
    own_bench.page.get_by_label("Colour by").select_option(label="predicted class")
    own_bench.links_to(paint="predicted")
    own_bench.ready()
    legend = own_bench.page.get_by_role("note", name="Legend")
    expect(legend).to_contain_text("class that the model predicts")
    predicted = set(atlases["pictures"].tokens().column("predicted").to_pylist())
    for name in predicted:
        expect(legend).to_contain_text(name)
    assert picture(own_bench) != plain
    to_patch(own_bench)
    expect(tip(own_bench)).to_contain_text(re.compile(f"predicted class: ({'|'.join(predicted)})"))


def test_scales_lead_from_an_atlas_to_a_run_that_waits_for_a_click(own_bench):
    own_bench.goto(own_bench.address("builtin:vit", view="atlas", atlas="pictures"))
    own_bench.choose("Scale", "Model")
    own_bench.links_to(view=None)
    card = own_bench.page.locator("main .card")
    expect(card).to_contain_text("Nothing has been computed yet")
    own_bench.choose("Scale", "Atlas")
    own_bench.links_to(view="atlas", atlas="pictures")
    expect(own_bench.status).to_contain_text("6 heads, 260 points each")
    own_bench.choose("Scale", "Head")
    card.get_by_role("button", name="Run", exact=True).click()
    own_bench.ready()
    own_bench.links_to(view="head")


def to_patch(bench) -> None:
    """Put the pointer on some patch near the middle."""
    box = box_of(bench)
    for step in range(60):
        bench.page.mouse.move(box["x"] + box["width"] / 2 + 3 * step - 90, box["y"] + box["height"] / 2)
        if tip(bench).count():
            return
    pytest.fail("there is no patch in the middle")


def test_the_keyboard_reaches_heads_points_and_examples(own_bench):
    show(own_bench)
    own_bench.page.locator("[data-picture]").focus()
    own_bench.press("ArrowRight", "ArrowDown", "ArrowRight")
    expect(own_bench.status).to_contain_text("L2H1")
    own_bench.press("Enter")
    own_bench.links_to(cloud="L2H1")
    own_bench.press("ArrowRight")
    own_bench.links_to(cloud="L2H2")
    own_bench.press("]", "]", "]")
    own_bench.links_to(point="query:2")
    own_bench.press("Enter")
    own_bench.links_to(on="sentence")
    expect(example(own_bench)).to_be_visible()
    own_bench.press("[")
    own_bench.links_to(point="query:1")
    before = picture(own_bench)
    own_bench.press("+")
    assert picture(own_bench) != before
    own_bench.press("0")
    assert picture(own_bench) == before
    own_bench.press("Escape", "Escape", "Escape")
    own_bench.links_to(cloud=None, point=None)


def test_buttons_on_the_picture_are_one_stop_for_tab(own_bench):
    show(own_bench, cloud="L1H1")
    toolbar(own_bench).get_by_role("button", name="Move").focus()
    own_bench.page.keyboard.press("ArrowRight")
    expect(toolbar(own_bench).get_by_role("button", name="Lasso")).to_be_focused()
    own_bench.page.keyboard.press("Enter")
    expect(toolbar(own_bench).get_by_role("button", name="Lasso")).to_have_attribute("aria-pressed", "true")
    assert toolbar(own_bench).locator("button[tabindex='0']").count() == 1
    own_bench.links_to(cloud="L1H1")


def test_zooming_leads_into_a_head_and_out_again(own_bench):
    show(own_bench)
    own_bench.page.mouse.move(*own_bench.heads()["L2H3"])
    for _ in range(30):
        own_bench.page.mouse.wheel(0, -150)
        if "cloud=L2H3" in own_bench.page.url:
            break
    own_bench.links_to(cloud="L2H3")
    own_bench.ready()
    for _ in range(30):
        own_bench.page.mouse.wheel(0, 150)
        if "cloud" not in own_bench.page.url:
            break
    own_bench.links_to(cloud=None)


def test_distances_against_logits(own_bench, atlases):
    show(own_bench, cloud="L2H3", plot="distances")
    expect(own_bench.status).to_contain_text("L2H3: distance against logit")
    words = own_bench.page.locator(".view span").filter(has_text="Pearson").inner_text()
    assert re.search(r"\d+ of \d+ pairs of query and key: Pearson −?0\.\d\d", words)
    expect(toolbar(own_bench)).to_be_hidden()
    own_bench.press("t")
    table = own_bench.page.get_by_role("region", name="Numbers as a table")
    expect(table.get_by_role("columnheader").first).to_have_text("query token")
    rows = [row.get_by_role("cell").all_inner_texts() for row in table.get_by_role("row").all()[1:6]]
    query, key = atlases["texts"].vectors("L2H3").vectors
    products = (query.double() @ key.double().T).numpy()
    logits = products / np.sqrt(query.shape[1])
    for row in rows:
        assert np.abs(logits - float(row[-1].replace("−", "-"))).min() < 0.01


@pytest.mark.parametrize(
    ("name", "selection"),
    [
        ("texts", {}),
        ("texts", {"cloud": "L2H1", "point": "query:4", "on": "sentence", "search": "the"}),
        ("texts", {"cloud": "L2H1", "plot": "distances"}),
        ("pictures", {"cloud": "L1H2", "point": "query:20", "on": "pictures,sentence"}),
    ],
)
def test_axe_finds_nothing_in_the_atlas(own_bench, axe, name, selection):
    show(own_bench, name, **selection)
    assert in_both_themes(own_bench.page, axe) == {"light": [], "dark": []}
    own_bench.page.get_by_role("button", name="Show: points and labels").click()
    own_bench.page.get_by_text("Make an atlas", exact=True).click()
    assert violations(own_bench.page, axe) == []


def test_in_the_dark_nothing_is_white(own_bench):
    own_bench.page.emulate_media(color_scheme="dark")
    show(own_bench, cloud="L2H3", point="query:4", on="sentence")
    screen = np.asarray(own_bench.screen())
    light = (screen.min(axis=2) > 245).mean()
    assert light < 0.02


def test_an_atlas_without_vectors_has_the_words_of_an_example_and_runs_it(bench):
    bench.goto(bench.address(view="atlas", atlas="builtin:gpt", cloud="L2H3", point="query:3", on="sentence"))
    expect(example(bench).get_by_role("status")).to_contain_text("Its attention is not in this atlas")
    words = example(bench).locator("mark").inner_text()
    example(bench).get_by_role("button", name="Run in the model").click()
    bench.links_to(view="head", at="L2H3")
    bench.ready()
    expect(bench.label(words).first).to_be_visible()
