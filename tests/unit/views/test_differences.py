"""Parts of one run minus another: the same as subtracting with numpy."""

import numpy as np
import pytest
import torch

from headscope.attention import Formula
from headscope.attention.masks import Mask
from headscope.errors import InputError, NotRecordedError
from headscope.traces import Tokens, Trace, compare
from headscope.views import differences, layers
from headscope.views.builders import head_view, model_view, neuron_view
from headscope.views.contract import DifferenceProps
from headscope.views.parts import part
from headscope.views.wire import Coded, decode
from tests.made_traces import random_layer, trace_of_layers


def patterns_trace(n_tokens: int = 7, seed: int = 0, n_layers: int = 2) -> Trace:
    torch.manual_seed(seed)
    formula = Formula(0.7, mask=Mask.causal(n_tokens, n_tokens))
    return trace_of_layers(*(random_layer(formula, n_tokens) for _ in range(n_layers)))


ONE, OTHER = patterns_trace(seed=1), patterns_trace(seed=2)


def difference_part(key: str, first: Trace = ONE, other: Trace = OTHER):
    """A part, as the page gets it."""
    return decode(
        part(
            first, f"{key}{'&' if '?' in key else '?'}minus=other", id="one", find={"other": other}.__getitem__
        ).encode()
    )


def plain(array) -> np.ndarray:
    return array.weights() if isinstance(array, Coded) else np.asarray(array, np.float32)


def pattern_difference(site: str) -> np.ndarray:
    return (ONE.patterns(site) - OTHER.patterns(site)).numpy()


def test_layers_rows_and_windows_are_differences():
    expected = pattern_difference("L1")
    assert plain(difference_part("layer/L1?what=pattern").arrays["weights"]) == pytest.approx(
        expected, abs=3e-4
    )  # half floats
    assert plain(difference_part("row/L1?query=4").arrays["weights"]) == pytest.approx(expected[:, 4], abs=1e-6)
    assert plain(difference_part("row/L1?key=2").arrays["weights"]) == pytest.approx(expected[:, :, 2], abs=1e-6)
    assert plain(difference_part("window/L1H3").arrays["weights"]) == pytest.approx(expected[3], abs=1e-6)


def test_of_a_window_the_largest_of_either_sign_is_kept():
    expected = pattern_difference("L0")[1]
    window = difference_part("window/L0H1?rows=2:6&columns=0:4&size=2").arrays["weights"]
    for row in range(2):
        for column in range(2):
            cell = expected[2 + 2 * row : 4 + 2 * row, 2 * column : 2 + 2 * column].flatten()
            assert window[row, column] == pytest.approx(cell[np.abs(cell).argmax()], abs=1e-6)


def test_maps_are_signed_and_pooled_by_magnitude():
    exact = difference_part("maps?size=96").arrays["L1"]
    assert isinstance(exact, Coded) and exact.is_signed
    assert exact.weights() == pytest.approx(pattern_difference("L1"), abs=0.008)
    coarse = difference_part("maps?size=3")
    assert coarse.props["cells"]["L1"] == [3, 3]
    corner = pattern_difference("L1")[2, 3:6, :3].flatten()
    assert coarse.arrays["L1"].weights()[2, 1, 0] == pytest.approx(corner[np.abs(corner).argmax()], abs=0.008)


def test_a_run_minus_itself_is_nothing():
    for key in ("layer/L0?what=pattern", "row/L0?key=3", "window/L0H0"):
        assert not plain(difference_part(key, ONE, ONE).arrays["weights"]).any()
    assert not difference_part("maps?size=96", ONE, ONE).arrays["L0"].weights().any()
    scores = difference_part("scores", ONE, ONE)
    assert all(not np.nan_to_num(values).any() for values in scores.arrays.values())


def test_scores_say_how_far_heads_moved_and_subtract_measures():
    page_part = difference_part("scores")
    change = compare(ONE, OTHER).change()
    assert page_part.arrays["total_variation"] == pytest.approx([change[head] for head in ONE.heads], abs=1e-6)
    both = [decode(part(trace, "scores").encode()).arrays["peak_weight"] for trace in (ONE, OTHER)]
    assert page_part.arrays["peak_weight"] == pytest.approx(both[0] - both[1], abs=1e-6)
    (method,) = [method for method in page_part.props["methods"] if method["name"] == "peak_weight"]
    assert method["low"] == -method["high"] and method["baseline"] == 0.0


def test_the_trace_of_a_difference_names_both_runs_and_has_the_tokens_of_both():
    texts = [Tokens.of(text.split()) for text in ("a She b c", "a He x b c")]
    runs = [Trace.from_patterns([torch.full((2, len(text), len(text)), 0.1)], text) for text in texts]
    page_part = difference_part("trace", *runs)
    assert page_part.props["difference"] == {
        "a": "patterns",
        "b": "patterns",
        "line": "3 of 4 and 5 tokens aligned",
    }
    assert page_part.props["stacks"][0]["texts"] == ["a", "b", "c"]
    assert page_part.props["layers"][0]["n_queries"] == 3
    assert "cannot be subtracted" in page_part.props["layers"][0]["no_scores"]
    assert decode(part(runs[0], "trace").encode()).props["difference"] is None


def test_the_alignment_tells_the_pair_of_every_token():
    texts = [Tokens.of(text.split()) for text in ("a She b c", "a He b x y c")]
    runs = [Trace.from_patterns([torch.full((2, len(text), len(text)), 0.1)], text) for text in texts]
    page_part = difference_part("alignment", *runs)
    assert page_part.arrays["a:main"].tolist() == [0, 1, 2, 3]
    assert page_part.arrays["b:main"].tolist() == [0, 1, 2, -1, -1, 3]
    (stack,) = page_part.props["stacks"]
    assert stack["texts"][1] == "She / He" and stack["same"] == [True, False, True, True] and not stack["is_whole"]


def test_hidden_tokens_and_words_are_read_in_both_runs():
    weights = plain(difference_part("layer/L0?what=pattern&hide=0").arrays["weights"])
    both = [trace.without(0).patterns("L0").numpy() for trace in (ONE, OTHER)]
    assert weights == pytest.approx(both[0] - both[1], abs=3e-4)
    row = plain(difference_part("row/L0?key=1&hide=0").arrays["weights"])
    assert row == pytest.approx((both[0] - both[1])[:, :, 1], abs=1e-5)


def test_long_layers_come_as_the_largest_differences_of_each_query(monkeypatch):
    monkeypatch.setattr(layers, "DENSE_CELLS", 10)
    page_part = difference_part("layer/L1?what=pattern")
    assert page_part.props["form"] == "sparse"
    expected = pattern_difference("L1")
    keys, weights = page_part.arrays["keys"], plain(page_part.arrays["weights"])
    for head, query in ((0, 6), (3, 5)):
        best = np.abs(expected[head, query]).argmax()
        assert keys[head, query, 0] == best
        assert weights[head, query, 0] == pytest.approx(expected[head, query, best], abs=1e-3)


def test_larger_layers_come_as_signed_bytes(monkeypatch):
    monkeypatch.setattr(layers, "HALF_CELLS", 10)
    weights = difference_part("layer/L1?what=pattern").arrays["weights"]
    assert isinstance(weights, Coded) and weights.weights() == pytest.approx(pattern_difference("L1"), abs=0.008)


def test_maps_of_very_long_inputs_are_differences_of_maps_and_say_so(monkeypatch):
    monkeypatch.setattr(differences, "MOST_CELLS", 10)
    page_part = difference_part("maps?size=96")
    assert "difference of the strongest weights" in page_part.props["note"]
    assert page_part.arrays["L0"].weights() == pytest.approx(
        pattern_difference("L0"), abs=0.008
    )  # a cell a weight: the same
    with pytest.raises(NotRecordedError, match="compare shorter texts"):
        difference_part("maps?size=96", ONE, patterns_trace(9, seed=3))


def test_what_two_runs_lack_is_said():
    with pytest.raises(InputError, match="different heads"):
        difference_part("layer/L0?what=pattern", ONE, patterns_trace(n_layers=1))
    with pytest.raises(NotRecordedError, match="cannot be subtracted"):
        difference_part("layer/L0?what=scores")
    with pytest.raises(InputError, match="is of two runs"):
        part(ONE, "alignment")
    with pytest.raises(InputError, match="a source and a target"):
        difference_part("relation?source=1")
    with pytest.raises(InputError, match="no other run here"):
        part(ONE, "maps?minus=x")


def test_a_relation_gives_the_heads_of_both():
    page_part = difference_part("relation?source=4&target=2")
    relation = compare(ONE, OTHER).relation(4, 2)
    assert page_part.props["source"] == "m4" and page_part.props["a"]["heads"][0] == str(relation.a.heads[0].head)
    assert page_part.arrays["b"].shape == (8, 3)
    best = relation.a.heads[0]
    assert page_part.arrays["a"][0].tolist() == pytest.approx([best.weight, best.baseline, best.depth], abs=1e-6)


# Views


def test_views_of_a_comparison_are_tables_figures_and_pages(tmp_path):
    comparison = compare(ONE, OTHER)
    table = head_view(comparison, "L1H3").table()
    expected = pattern_difference("L1")[3]
    first = table.rows(1)[0]
    assert list(table.columns)[-1] == "difference"
    assert abs(first[-1]) == pytest.approx(np.abs(expected).max(), abs=1e-6)
    assert first[-1] == pytest.approx(expected[first[1], first[3]], abs=1e-6)
    assert (np.diff(np.abs(table.columns["difference"])) <= 1e-7).all()
    heads = model_view(comparison, sort="total_variation").table()
    assert heads.columns["head"][0] == str(comparison.change().top(1)[0][0])
    for view in (head_view(comparison, "L0"), head_view(comparison, "L0H1", form="matrix"), model_view(comparison)):
        assert "difference" in view.title
        view.save(tmp_path / "view.png")
        assert (tmp_path / "view.png").stat().st_size > 5_000


def test_hiding_and_words_work_in_views_too():
    view = head_view(compare(ONE, OTHER), "L0H1", hide="first", by="words", token=2)
    assert set(view.table().columns["query position"]) == {2}


def test_a_saved_page_holds_the_difference(tmp_path):
    import re
    import zlib
    from base64 import b64decode

    static = tmp_path / "static"
    static.mkdir()
    (static / "headscope.js").write_text("// page")
    (static / "headscope.css").write_text("")
    from headscope.views.saved_page import page

    made_page = page(head_view(compare(ONE, OTHER), "L1H3"), static=static)
    texts_by_key = dict(re.findall(r'data-key="([^"]+)">([^<]+)<', made_page.html))
    parts = {key: decode(zlib.decompress(b64decode(text), 31)) for key, text in texts_by_key.items()}
    assert DifferenceProps(**parts["trace"].props["difference"]).a == "made"
    assert plain(parts["layer/L1?what=pattern"].arrays["weights"]) == pytest.approx(pattern_difference("L1"), abs=3e-4)
    assert parts["maps?size=96"].arrays["L0"].is_signed


def test_two_views_go_side_by_side(tmp_path, monkeypatch):
    from headscope.views import saved_page
    from headscope.views.pair_view import side_by_side

    (tmp_path / "headscope.js").write_text("// page")
    (tmp_path / "headscope.css").write_text("")
    monkeypatch.setattr(saved_page, "STATIC", tmp_path)
    pair = side_by_side(head_view(ONE, "L1H3", top=1), head_view(patterns_trace(5, n_layers=1), "L0H0", top=1))
    table = pair.table()
    assert len(table) == 7 + 5 and "run" in table.columns and table.columns["run"][0].startswith("A made")
    for suffix in ("png", "html", "csv", "json"):
        assert pair.save(tmp_path / f"x.{suffix}").stat().st_size > 300
    assert (tmp_path / "x.html").read_text().count("<iframe") == 2
    for width, wide in (("column", 3.33), ("page", 6.9), (5, 5.0)):
        figure = pair.figure(width=width)
        assert figure.get_size_inches()[0] == pytest.approx(wide, abs=0.02)
    with pytest.raises(InputError, match="is for pictures"):
        pair.save(tmp_path / "x.csv", width="column")
    with pytest.raises(InputError, match="width='wall' is not known"):
        pair.save(tmp_path / "x.png", width="wall")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="two of a kind"):
        side_by_side(head_view(ONE, "L1H3"), model_view(ONE))
    with pytest.raises(InputError, match="two views go side by side"):
        side_by_side(ONE, ONE)  # type: ignore[arg-type]


@pytest.mark.parametrize("make_trace", [lambda: compare(ONE, OTHER), lambda: compare(ONE, OTHER).difference()])
def test_a_difference_has_neurons(make_trace):
    assert neuron_view(make_trace()).kind == "neuron"
