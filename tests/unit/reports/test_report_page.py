"""The page: complete, alone, and safe whatever tokens say."""

import json
import re
from pathlib import Path

import pytest

from headscope.errors import LoadError
from headscope.reports import heads
from headscope.reports.report_page import data_of, plain, script_and_style
from headscope.views import saved_page


def embedded_data(text: str) -> dict:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert match
    return json.loads(match[1])


def test_the_page_asks_nothing_of_anyone(report) -> None:
    text = report.page.read_text()
    without_data = re.sub(r'id="data">.*?</script>', "", text, flags=re.S).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//cdn|<link|src=|@import|fetch\(|XMLHttp", without_data)
    assert "default-src 'none'" in text and "{{" not in without_data


def test_what_draws_the_page_is_in_it_and_is_not_the_workbench(report) -> None:
    text = report.page.read_text()
    script, style = script_and_style()
    assert text.endswith(f"<script>{script}</script>\n</body>\n</html>\n") and f"<style>{style}</style>" in text
    assert not re.search("</script|<!--", script) and "</style" not in style
    assert len(script) + len(style) <= 50_000
    # What the workbench is drawn by has nothing of the report in it, and the other way round.
    assert "Rank correlation" in script and "Rank correlation" not in saved_page.page_files()[0]


def test_without_what_draws_the_page_nothing_is_measured(gpt, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(saved_page, "STATIC", tmp_path / "static")
    with pytest.raises(LoadError, match=r"report\.js is missing in .*build it with `python scripts/web`"):
        heads(gpt, ["a text"], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_no_token_is_ever_markup(report) -> None:
    text = report.page.read_text()
    assert "tiny &lt;gpt&gt;" in text and "tiny <gpt>" not in text
    between = text.split('id="data">')[1].split("</script>")[0]
    assert "<" not in between and ">" not in between and "&" not in between
    case_json = json.dumps(embedded_data(text)["cases"])
    assert "<" in case_json  # the treebank has such a word: it is there, as text


def test_the_page_holds_every_score_to_five_digits(report) -> None:
    data = embedded_data(report.page.read_text())
    assert data["heads"] == [str(head) for head in report.roles]
    measures = {measure["name"]: measure for measure in data["measures"]}
    assert measures.keys() == report.scores.keys()
    for at, (head, value) in enumerate(report.scores["entropy"].items()):
        assert str(head) == data["heads"][at] and abs(measures["entropy"]["values"][at] - value) <= 1e-4 * abs(value)
    assert data == plain(data_of(report))


def test_layers_and_stacks_are_those_of_the_model(report, gpt) -> None:
    data = data_of(report)
    assert [layer["site"] for layer in data["stacks"][0]["layers"]] == [
        str(site) for site in dict.fromkeys(h.site for h in gpt.heads)
    ]
    assert sum(len(layer["heads"]) for stack in data["stacks"] for layer in stack["layers"]) == len(gpt.heads)


def test_what_is_no_number_is_null() -> None:
    assert plain({"a": [float("nan"), (float("inf"), 1.23456789)]}) == {"a": [None, [None, 1.2346]]}
