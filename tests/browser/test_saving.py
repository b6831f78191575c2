"""What can be taken away: a page that opens offline, a picture, the numbers, code that gives the same."""

import csv
import io
import json
import re
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from playwright.sync_api import expect

NURSE = "The doctor asked the nurse a question. She"
AT = {"text": NURSE, "view": "head", "at": "L3H2"}


def test_a_saved_page_opens_by_file_with_the_network_off(bench, offline, tmp_path):
    bench.open(**AT, heads="2,5", hide="first")
    file = bench.save("HTML", tmp_path)
    offline.visit(file.as_uri())
    assert offline.is_chosen("Scale", "Head")
    pressed = offline.page.get_by_role("group", name="Heads of L3").locator("[aria-pressed=true]")
    assert [button.inner_text() for button in pressed.all()] == ["L3H2", "L3H5"]
    expect(offline.status).to_contain_text("renormalised")
    # The same interactions: hover, another layer, another reading, out to the model and in again.
    offline.hover("She", "query")
    assert offline.numbers()
    offline.button("Next layer").click()
    offline.ready()
    offline.choose("Read by", "Words")
    offline.press("Escape")
    assert offline.is_chosen("Scale", "Model")
    offline.page.mouse.click(*offline.head_at("L1H4"))
    offline.ready()
    assert offline.page.get_by_role("heading", name="L1H4", exact=True).is_visible()
    offline.page.go_back()
    offline.ready()
    assert offline.is_chosen("Scale", "Model")


def test_a_saved_page_can_be_saved_again_where_it_stands(bench, offline, tmp_path):
    bench.open(text=NURSE)
    first = bench.save("HTML", tmp_path)
    offline.visit(first.as_uri())
    offline.page.mouse.click(*offline.head_at("L2H1"))
    offline.ready()
    (tmp_path / "again").mkdir()
    second = offline.save("HTML", tmp_path / "again")
    offline.visit(second.as_uri())
    assert offline.page.get_by_role("heading", name="L2H1", exact=True).is_visible()
    assert offline.is_chosen("Scale", "Head")


def test_a_picture_is_what_is_on_screen(bench, tmp_path):
    bench.open(**AT)
    picture = Image.open(bench.save("PNG", tmp_path)).convert("RGB")
    stage = bench.page.locator(".stage").bounding_box()
    assert stage
    scale = picture.width / stage["width"]
    assert 50 < picture.height / scale - stage["height"] < 80  # and a title over it
    assert len(picture.getcolors(10**6) or "many") > 20


def test_numbers_on_screen_as_csv_and_json(bench, gpt, tmp_path):
    pattern = gpt.run(NURSE).pattern("L3H2")
    bench.open(**AT, filter="threshold", threshold="0.2")
    text = bench.save("CSV", tmp_path).read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == (pattern >= 0.2).sum()
    for row in rows:
        weight = pattern[int(row["query position"]), int(row["key position"])]
        assert float(row["weight"]) == pytest.approx(weight, abs=1e-3)
    assert json.loads(bench.save("JSON", tmp_path).read_text()) == [
        {name: pytest.approx(float(value), abs=1e-6) if is_number(value) else value for name, value in row.items()}
        for row in rows
    ]


def test_numbers_of_a_matrix_are_those_of_its_cells_whatever_lines_are_drawn(bench, gpt, tmp_path):
    n = len(gpt.run(NURSE).pattern("L3H2"))
    bench.open(**AT, filter="threshold", threshold="0.5", **{"as": "matrix"})
    assert len(json.loads(bench.save("JSON", tmp_path).read_text())) == n * (n + 1) // 2


def is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("e-", "", 1).isdigit()


def test_all_numbers_of_a_head_as_parquet(bench, gpt, tmp_path):
    pattern = gpt.run(NURSE).pattern("L3H2")
    bench.open(**AT, filter="threshold", threshold="0.9")
    table = pq.read_table(bench.save("Parquet", tmp_path)).to_pylist()
    matrix = np.full_like(pattern, np.nan)
    for row in table:
        matrix[row["query position"], row["key position"]] = row["weight"]
    seen = ~np.isnan(matrix)
    np.testing.assert_allclose(matrix[seen], pattern[seen], atol=1e-4)
    assert seen.sum() >= len(pattern) * (len(pattern) + 1) // 2


def test_copied_python_runs_as_pasted(bench, gpt, tmp_path):
    copied = []
    for scale in ("model", "head"):
        bench.open(text=NURSE, view=scale, at="L3H2", hide="first", by="words")
        bench.button("Save").click()
        bench.button(re.compile("Copy as Python")).click()
        expect(bench.page.get_by_text("Python copied")).to_be_visible()
        copied.append(bench.page.evaluate("navigator.clipboard.readText()"))
    code = "\n".join([*copied, "import numpy", "numpy.save('weights.npy', weights)"])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    assert sorted(file.name for file in tmp_path.glob("*.html")) == ["head.html", "model.html"]
    expected = gpt.run(NURSE).without([0]).words().pattern("L3H2")
    np.testing.assert_allclose(np.load(tmp_path / "weights.npy"), expected, atol=1e-5)
