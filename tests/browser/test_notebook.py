"""Views in JupyterLab: two in one notebook, drawn from the kernel, and their selections in Python."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser.conftest import WINDOW
from browser.lab import Lab, Notebook

pytest.importorskip("jupyterlab")
SHOW_HEADS, SHOW_MODEL, READ, SET, HEARD, REFUSED, KEYS, NEURONS, ACTIVATIONS, WALKED = range(10)
ATLAS, ATLAS_READ, ATLAS_SET = range(10, 13)
CELLS = [
    """import headscope as hs
gpt = hs.load("builtin:gpt")
trace = gpt.run("The doctor asked the nurse a question. She")
view = hs.head_view(trace, "L3")
heard = []
view.widget.observe(lambda change: heard.append(change.new.head), "selected")
view""",
    "model = hs.model_view(trace, theme='light')\nmodel.widget.height = 480\nmodel",
    # Views speak beside running cells: what was clicked before a cell may be heard while it runs.
    """import time
for _ in range(100):
    if view.widget.selected.token and model.widget.selected.scale == "head":
        break
    time.sleep(0.1)
token = view.widget.selected.token
print(model.widget.selected.head, '|', token.text, token.position)""",
    "view.widget.selected = {'heads': 'L2H5', 'form': 'matrix', 'token': None}",
    "print([str(head) for head in heard][-1], view.widget.view)",
    """for wanted in ("L99", {"token": 99}, {"form": "cubes"}, {"colours": 1}):
    try:
        view.widget.selected = wanted
    except hs.HeadscopeError as error:
        print(error)""",
    "print('still here')",
    "hs.neuron_view(trace, 'L3H2')",
    "hs.activations_view(trace, gpt)",
    """for _ in range(100):
    if model.widget.selected.selection.order == "contribution":
        break
    time.sleep(0.1)
chosen, shown = model.widget.selected, model.widget.view
print(chosen.scale, chosen.head, chosen.token.text, shown.kind, shown.table().columns["query position"][0])
shown.figure()""",
    """texts = ["The doctor asked the nurse a question.", "She gave him the key of the barn."]
atlas = hs.atlas("builtin:gpt", texts, heads=["L2", "L3"])
atlas.draw(coordinates="raw")
clouds = hs.atlas_view(atlas, colour="position")
clouds""",
    """for _ in range(100):
    if clouds.widget.selection.place and clouds.widget.selection.search:
        break
    time.sleep(0.1)
chosen = clouds.widget.selection
print(chosen.place, '|', chosen.search, '|', chosen.colour, '|', clouds.widget.view)""",
    """clouds.widget.selection = {"place": "L3H1", "coordinates": "raw", "colour": "norm"}
for wanted in ({"dims": "two"}, {"method": "som"}):
    try:
        clouds.widget.selection = wanted
    except hs.HeadscopeError as error:
        print(error)""",
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    with Lab(folder / "notebooks", folder / "log") as running:
        yield running


@pytest.fixture(scope="module")
def notebook(browser: Browser, lab: Lab) -> Iterator[Notebook]:
    """A notebook that shows a head view and a model view. Whatever goes wrong in it fails the tests."""
    context = browser.new_context(**WINDOW | {"viewport": {"width": 1300, "height": 1600}})
    opened = Notebook(context.new_page(), lab, CELLS)
    opened.run(SHOW_HEADS)
    opened.run(SHOW_MODEL)
    yield opened
    assert opened.problems == []
    context.close()


def middle(view: Locator, text: str) -> tuple[float, float]:
    """The middle of the first such text in the picture."""
    labels = view.locator(".view span:not([hidden])").filter(has_text=re.compile(rf"^{text}$"))
    box = labels.first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def head_at(view: Locator, layer: str, head: str) -> tuple[float, float]:
    return middle(view, head)[0], middle(view, layer)[1]


def is_painted(page: Page, view: Locator) -> bool:
    """Whether its canvas has more than one colour."""
    script = """canvas => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size > 8;
    }"""
    return any(page.evaluate(script, canvas) for canvas in view.locator(".view canvas").element_handles())


def test_two_views_are_drawn_at_once(notebook: Notebook):
    heads, model = notebook.view(SHOW_HEADS), notebook.view(SHOW_MODEL)
    expect(heads.locator(".status [role=status]")).to_contain_text("lines")
    expect(model.locator(".status [role=status]")).to_have_text("48 heads, 10 tokens")
    assert is_painted(notebook.page, heads)
    assert is_painted(notebook.page, model)
    box = model.bounding_box()
    assert box is not None and box["height"] == 480


def test_what_is_chosen_is_read_in_python(notebook: Notebook):
    model = notebook.view(SHOW_MODEL)
    notebook.page.mouse.click(*head_at(model, "L4", "H2"))
    heads = notebook.view(SHOW_HEADS)
    notebook.page.mouse.click(*middle(heads, "nurse"))
    notebook.view(SHOW_HEADS)
    expect(notebook.run(READ)).to_contain_text("L4H2 | nurse 5")


def test_what_python_chooses_is_shown_and_heard(notebook: Notebook):
    notebook.run(SET)
    heads = notebook.view(SHOW_HEADS)
    expect(heads.locator(".trail .here")).to_have_text("L2H5")
    expect(heads.get_by_role("button", name="Matrix", exact=True)).to_have_attribute("aria-pressed", "true")
    # The other view stays where it was.
    assert "L2H5" not in notebook.view(SHOW_MODEL).inner_text()
    expect(notebook.run(HEARD)).to_contain_text("L2H5 View('head', 'builtin:gpt', L2, 1 head)")


def test_what_is_not_there_is_refused_in_words(notebook: Notebook):
    output = notebook.run(REFUSED)
    expect(output).to_contain_text("L99")
    expect(output).to_contain_text("there is no query 99: 10 are shown, 0 to 9.")
    expect(output).to_contain_text("form='cubes' cannot be selected: choose one of 'auto', 'lines', 'matrix'")
    expect(output).to_contain_text("there is nothing to select by 'colours'")


def test_keys_belong_to_the_view_that_has_the_focus(notebook: Notebook):
    model = notebook.view(SHOW_MODEL)
    before = notebook.page.locator(".jp-Notebook .jp-Cell").count()
    model.get_by_role("button", name="Model", exact=True).click()
    notebook.view(SHOW_MODEL)
    focus = model.get_by_role("complementary", name="The head in focus").locator("h2").first
    head = focus.inner_text()
    # In JupyterLab these cut a cell, make one below, and make it Markdown.
    for key in ("x", "b", "m", "ArrowRight"):
        notebook.page.keyboard.press(key)
    notebook.view(SHOW_MODEL)
    assert notebook.page.locator(".jp-Notebook .jp-Cell").count() == before
    expect(focus).not_to_have_text(head)
    expect(notebook.run(KEYS)).to_contain_text("still here")


def test_the_theme_is_the_notebooks_unless_the_view_has_its_own(notebook: Notebook):
    set_dark = "isDark => { document.body.dataset.jpThemeLight = String(!isDark); }"
    notebook.page.evaluate(set_dark, True)
    expect(notebook.view(SHOW_HEADS)).to_have_attribute("data-theme", "dark")
    expect(notebook.view(SHOW_MODEL)).to_have_attribute("data-theme", "light")
    notebook.page.evaluate(set_dark, False)
    expect(notebook.view(SHOW_HEADS)).to_have_attribute("data-theme", "light")


@pytest.mark.parametrize("cell", [NEURONS, ACTIVATIONS])
def test_other_views_are_drawn_by_the_same_messages(notebook: Notebook, cell: int):
    notebook.run(cell)
    assert is_painted(notebook.page, notebook.view(cell))


def test_an_atlas_is_drawn_searched_and_followed(notebook: Notebook):
    notebook.run(ATLAS)
    view = notebook.view(ATLAS)
    expect(view.locator(".status [role=status]")).to_contain_text("16 heads")
    assert is_painted(notebook.page, view)
    expect(view.get_by_role("note", name="Legend")).to_contain_text("position in the example")
    search = view.get_by_role("region", name="Search")
    search.get_by_role("searchbox").fill("the")
    search.get_by_role("button", name="Find").click()
    notebook.view(ATLAS)
    row = search.locator("tbody tr").first.get_by_role("button")
    head = row.inner_text()
    row.click()
    notebook.view(ATLAS)
    expect(view.get_by_role("region", name=f"Head {head}")).to_be_visible()
    expect(notebook.run(ATLAS_READ)).to_contain_text(f"{head} | the | position | AtlasView('builtin:gpt', {head})")
    refused = notebook.run(ATLAS_SET)
    expect(refused).to_contain_text("dims='two' cannot be selected")
    expect(refused).to_contain_text("method='som' cannot be selected")
    notebook.view(ATLAS)
    expect(view.locator(".status [role=status]")).to_contain_text("L3H1")
    expect(view.get_by_role("note", name="Legend")).to_contain_text("norm of the vector")
    expect(view.get_by_label("Coordinates", exact=True)).to_have_value("raw")
    with notebook.page.expect_download() as saved:
        view.get_by_role("button", name="Save").click()
        view.get_by_role("button", name="HTML").click()
    assert "L3H1" in saved.value.path().read_text()


def test_python_follows_through_scales(notebook: Notebook):
    """From all heads to one, its neurons, another query, another order: what is on screen is what Python has."""
    model = notebook.view(SHOW_MODEL)
    model.get_by_role("button", name="Model", exact=True).click()
    notebook.view(SHOW_MODEL)
    notebook.page.mouse.click(*head_at(model, "L2", "H3"))
    notebook.view(SHOW_MODEL)
    for key in ("3", "ArrowUp", "ArrowUp"):
        notebook.page.keyboard.press(key)
        notebook.view(SHOW_MODEL)
    model.get_by_label("Sort neurons by").select_option("contribution")
    notebook.view(SHOW_MODEL)
    expect(notebook.run(WALKED)).to_contain_text("neuron L2H3 question neuron 7")


def test_a_page_is_saved_from_the_kernel(notebook: Notebook, tmp_path):
    view = notebook.view(SHOW_HEADS)
    view.get_by_role("button", name="Save").click()
    with notebook.page.expect_download() as saved:
        view.get_by_role("button", name="HTML").click()
    saved.value.save_as(tmp_path / "view.html")
    assert (tmp_path / "view.html").read_text().startswith("<!doctype html>")


def test_the_saved_notebook_holds_a_picture_and_no_page(notebook: Notebook):
    notebook.page.keyboard.press("Control+s")
    notebook.page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
    document = notebook.path.read_text()
    assert '"image/png"' in document
    assert "text/html" not in document
    assert len(document) < 400_000
