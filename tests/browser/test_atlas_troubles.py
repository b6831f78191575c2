"""Atlases that something is wrong with: a layer of NaN, a head whose queries are all equal, a disk that is full."""

import re
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import expect
from transformers import BertModel

from browser.server import Server
from browser.word_model import PLAIN, save_word_model
from browser.workbench import Workbench

resource = pytest.importorskip("resource")
TEXTS = "\n".join(" ".join(PLAIN[first : first + 9]) for first in range(0, 90, 9))
# The largest file that a process may write where the disk is "full": less than a shard of vectors, more than a log.
SMALL = 20_000


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a model whose layer 4 holds NaN, and one in whose L2H1 all queries are equal."""
    folder = tmp_path_factory.mktemp("troubles")
    for name in ("nan", "equal"):
        save_word_model(folder / "models" / name)
        module = BertModel.from_pretrained(folder / "models" / name)
        with torch.no_grad():
            if name == "nan":
                module.encoder.layer[4].attention.self.query.bias[0] = torch.nan
            else:
                module.encoder.layer[2].attention.self.query.weight[16:32] = 0.0
        module.save_pretrained(folder / "models" / name)
    models = [str(folder / "models" / name) for name in ("nan", "equal")]
    with Server(folder / "log", *models, "--allow", str(folder / "models")) as running:
        yield running


def build(bench: Workbench, model: str) -> None:
    """Make an atlas of a model, from texts."""
    bench.page.get_by_text("Make an atlas", exact=True).click()
    form = bench.page.get_by_role("form", name="Make an atlas")
    form.get_by_label("Model").select_option(label=model)
    form.get_by_label("Texts, one a line").fill(TEXTS)
    form.get_by_role("button", name="Make atlas").click()
    bench.ready()


def panel(bench: Workbench):
    return bench.page.get_by_role("region", name="Atlas", exact=True)


def test_layers_with_nan_are_named_and_the_others_are_drawn(own_bench: Workbench) -> None:
    own_bench.goto(f"{own_bench.server.host}/#view=atlas&atlas=builtin:bert")
    build(own_bench, "nan")
    expect(own_bench.status).to_contain_text("16 heads")
    panel(own_bench).get_by_text("2 layers cannot be drawn").click()
    expect(panel(own_bench)).to_contain_text("L4: a query vector of it holds NaN or infinity")
    expect(panel(own_bench)).to_contain_text("L5: a query vector of it holds NaN or infinity")


def test_a_head_whose_queries_are_all_equal_is_drawn_and_says_so(own_bench: Workbench) -> None:
    own_bench.goto(f"{own_bench.server.host}/#view=atlas&atlas=builtin:bert")
    build(own_bench, "equal")
    expect(own_bench.status).to_contain_text("24 heads")
    first = own_bench.page.get_by_role("region", name="Heads to look at first")
    first.get_by_role("button", name="L2H1").and_(first.get_by_title(re.compile("^Dead"))).click()
    own_bench.links_to(cloud="L2H1")
    own_bench.ready()
    card = own_bench.page.get_by_role("region", name="Head L2H1")
    expect(card).to_contain_text("Dead: queries, keys or values hardly vary")
    expect(own_bench.status).to_contain_text("L2H1")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no other process can be limited on this system")
def test_a_full_disk_is_said_and_what_was_drawn_stays(own_bench: Workbench) -> None:
    own_bench.goto(f"{own_bench.server.host}/#view=atlas&atlas=builtin:bert")
    before = own_bench.status.inner_text()
    process = own_bench.server.process.pid
    limits = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (SMALL, limits[1]))
    try:
        build(own_bench, "equal")
        alert = own_bench.page.get_by_role("alert").filter(has_text="could not write")
        expect(alert).to_contain_text("File too large")
        assert own_bench.status.inner_text() == before
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, limits)
    alert.get_by_role("button", name="Dismiss").click()
    own_bench.page.get_by_role("button", name="Make atlas").click()
    own_bench.ready()
    expect(own_bench.status).to_contain_text("24 heads")
