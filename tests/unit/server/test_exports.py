"""What can be taken away: numbers and pages."""

import io

import pyarrow.parquet
import pytest
from starlette.testclient import TestClient

import headscope.views.table
import headscope.views.view
from headscope.server.exports import view_of
from headscope.server.messages import PageRequest
from headscope.views.selection import Selection, Spot


@pytest.fixture
def id(client: TestClient, run) -> str:
    return run(client)[-1]["trace"]


def test_numbers_come_in_three_formats(client: TestClient, id: str) -> None:
    csv = client.get(f"/api/traces/{id}/table?format=csv&heads=L1H0,L1H2")
    assert csv.headers["content-type"].startswith("text/csv")
    assert csv.headers["content-disposition"] == 'attachment; filename="headscope.csv"'
    rows = csv.content.decode("utf-8-sig").splitlines()
    table = client.get(f"/api/traces/{id}/table?format=json&heads=L1H0,L1H2").json()
    parquet_table = pyarrow.parquet.read_table(
        io.BytesIO(client.get(f"/api/traces/{id}/table?format=parquet&heads=L1H0,L1H2").content)
    )
    assert len(rows) - 1 == len(table["rows"]) == parquet_table.num_rows > 10
    assert rows[0].split(",") == table["columns"] == parquet_table.column_names
    assert table["selection"]["heads"] == [0, 2]


def test_a_model_view_gives_the_scores_of_all_heads(client: TestClient, id: str) -> None:
    table = client.get(f"/api/traces/{id}/table?format=json&view=model").json()
    assert len(table["rows"]) == 8


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("heads=L9H0", 404),
        ("heads=L0H0,L1H0", 422),
        ("format=xls", 422),
        ("what=magic", 422),
        ("off=99", 404),
        ("hide=me", 422),
    ],
)
def test_a_table_that_cannot_be_had_is_refused_in_words(client: TestClient, id: str, query: str, status: int) -> None:
    answer = client.get(f"/api/traces/{id}/table?{query}")
    assert answer.status_code == status and answer.json()["message"]


def test_a_page_is_made_of_the_selection(client: TestClient, id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    views = []
    monkeypatch.setattr(headscope.views.view.View, "html", lambda view: views.append(view) or "<p>é</p>")
    selection = {"scale": "head", "site": "L1", "head": 2, "heads": [2], "hide": ["first"], "top": 5, "filter": "top"}
    answer = client.post(f"/api/traces/{id}/page", json={"view": "head", "selection": selection})
    assert answer.status_code == 200 and answer.text == "<p>é</p>"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="headscope.html"'
    assert views[0].kind == "head" and views[0].selection == Selection(**selection, arcs="none")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("view", "selection"),
    [
        ("head", {"site": "L9", "heads": [0]}),
        ("head", {"site": "L1", "heads": [99]}),
        ("head", {"site": "L1", "heads": []}),
        ("head", {"site": "L1", "heads": [0], "form": "circle"}),
        ("head", {"site": "L1", "heads": [0], "pair": "AB"}),
        ("head", {"site": "L1", "heads": [0], "token": {"side": "query", "index": 999}}),
        ("head", {"site": "<script>", "heads": [0]}),
        ("model", {"sort": "beauty"}),
        ("atlas", {}),
    ],
)
def test_a_selection_that_does_not_fit_is_refused_in_words(
    client: TestClient, id: str, view: str, selection: dict
) -> None:
    answer = client.post(f"/api/traces/{id}/page", json={"view": view, "selection": selection})
    assert answer.status_code in (404, 422) and answer.json()["message"]


def test_an_empty_selection_is_the_view_s_own(client: TestClient, id: str) -> None:
    trace = client.workbench.runs.find(id).trace  # type: ignore[attr-defined]
    assert view_of(trace, PageRequest("head")).selection.heads == [0, 1, 2, 3]
    assert view_of(trace, PageRequest("model")).kind == "model"
    spot = Selection(scale="head", site="L0", heads=[1], token=Spot("key", 2))
    assert view_of(trace, PageRequest("head", spot)).selection is spot


def test_a_table_is_filtered_as_the_page_filters_lines(client: TestClient, id: str) -> None:
    def rows(query: str) -> list[list]:
        return client.get(f"/api/traces/{id}/table?format=json&heads=L1H0&{query}").json()["rows"]

    whole = rows("filter=all")
    assert whole == rows("") == rows("filter=all&top=3&threshold=0.5&mass=0.7")
    queries = {row[1] for row in whole}
    assert len(rows("filter=top&top=1")) == len(rows("top=1")) == len(queries)
    assert rows("threshold=0.3&filter=threshold") == [row for row in whole if row[5] >= 0.3]
    assert len(queries) <= len(rows("mass=0.5")) < len(whole)


@pytest.mark.parametrize("query", ["filter=some", "top=0", "top=x", "threshold=2", "mass=nan", "top=2&mass=0.5"])
def test_a_filter_that_is_none_is_refused_in_words(client: TestClient, id: str, query: str) -> None:
    answer = client.get(f"/api/traces/{id}/table?{query}")
    assert answer.status_code == 422 and answer.json()["message"]


def test_a_table_that_is_too_large_says_what_fits(client: TestClient, id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headscope.views.table.lines, "__defaults__", (12,))
    answer = client.get(f"/api/traces/{id}/table?heads=L1H0")
    assert answer.status_code == 422 and "more than 12 numbers in 1 head of" in answer.json()["message"]
    assert answer.json()["hint"].startswith('Save "Numbers on screen", or show fewer heads')
    assert client.get(f"/api/traces/{id}/table?heads=L1H0&threshold=1").status_code == 200
