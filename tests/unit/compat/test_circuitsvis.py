"""CircuitsVis's calls, as its users write them."""

import inspect

import numpy as np
import pytest
import torch

import headscope as hs
import headscope.compat.circuitsvis as cv
from headscope.errors import HeadscopeWarning, InputError

TOKENS = ["<|endoftext|>", "The", " doctor", " asked"]
ATTENTION = torch.rand(3, 4, 4).tril().softmax(-1).tril()
ATTENTION = ATTENTION / ATTENTION.sum(-1, keepdim=True)


def test_signatures_are_those_of_circuitsvis():
    def names(function):
        return list(inspect.signature(function).parameters)

    shared = ["max_value", "min_value", "negative_color"]
    assert names(cv.attention.attention_heads) == [
        *("attention", "tokens", "attention_head_names"), *shared, "positive_color", "mask_upper_tri"]  # fmt: skip
    assert names(cv.attention.attention_pattern) == [
        *("tokens", "attention"), *shared, "show_axis_labels", "positive_color", "mask_upper_tri"]  # fmt: skip
    assert names(cv.attention.attention_patterns)[:2] == ["tokens", "attention"]


@pytest.mark.parametrize(
    "form",
    [lambda tensor: tensor, lambda tensor: tensor.numpy(), lambda tensor: tensor.tolist(), lambda tensor: tensor[None]],
)
def test_heads_are_maps(form):
    view = cv.attention.attention_heads(attention=form(ATTENTION), tokens=TOKENS)
    assert (view.kind, len(view.trace.heads)) == ("model", 3)
    assert np.allclose(view.trace.pattern("L0H1"), ATTENTION[1])
    assert view.trace.tokens["main"].texts == ["<|endoftext|>", "The", "doctor", "asked"]


def test_patterns_are_lines_of_all_heads():
    view = cv.attention.attention_patterns(tokens=TOKENS, attention=ATTENTION)
    assert (view.kind, view.selection.form, view.selection.heads) == ("head", "lines", [0, 1, 2])


def test_one_pattern_is_a_matrix():
    view = cv.attention.attention_pattern(TOKENS, ATTENTION[2])
    assert (view.kind, view.selection.form, view.selection.heads) == ("head", "matrix", [0])
    assert np.allclose(view.trace.pattern("L0H0"), ATTENTION[2])


def test_what_comes_back_can_be_written_to_a_file_as_circuitsvis_users_do(tmp_path):
    view = cv.attention.attention_patterns(tokens=TOKENS, attention=ATTENTION)
    (tmp_path / "heads.html").write_text(str(view))
    page = (tmp_path / "heads.html").read_text()
    assert page.startswith("<!doctype html>") and "https://unpkg.com" not in page
    assert view.show_code() == view.local_src == view.cdn_src == view.__html__() == page
    assert repr(view) == "View('head', 'attention', L0, 3 heads)"


def test_names_say_which_layer_heads_are_of():
    names = ["L1H0", "0.1", "L0 H0", "1.1"]
    attention = torch.cat([ATTENTION, ATTENTION[:1] * 0 + torch.eye(4)])
    trace = cv.attention.attention_heads(attention, TOKENS, names).trace
    assert [str(head) for head in trace.heads] == ["L0H0", "L0H1", "L1H0", "L1H1"]
    assert np.allclose(trace.pattern("L1H0"), ATTENTION[0])
    assert np.allclose(trace.pattern("L0H0"), ATTENTION[2])
    view = cv.attention.attention_patterns(TOKENS, ATTENTION, [f"L9H{head}" for head in range(3)])
    assert (view.title, view.selection.site) == ("attention, L9: head view", "L9")  # one layer of many
    assert np.allclose(view.trace.pattern("L9H2"), ATTENTION[2])
    with pytest.warns(HeadscopeWarning, match="L0H1 is 9.9"):
        cv.attention.attention_heads(ATTENTION, TOKENS, ["9.6", "9.9", "10.0"])


def test_the_upper_triangle_is_masked_where_asked():
    full = torch.full((1, 4, 4), 0.25)
    assert cv.attention.attention_heads(full, TOKENS).trace.pattern("L0H0")[0, 3] == 0.25
    assert cv.attention.attention_heads(full, TOKENS, mask_upper_tri=True).trace.pattern("L0H0")[0, 3] == 0


def test_a_trace_stands_for_both():
    trace = hs.Trace.from_patterns([ATTENTION, ATTENTION], TOKENS)
    assert cv.attention.attention_heads(trace).trace is trace
    assert cv.attention.attention_patterns(trace).selection.site == "L0"
    assert cv.attention.attention_pattern(trace).selection.form == "matrix"


def test_what_has_no_effect_is_said():
    with pytest.warns(HeadscopeWarning, match="have no effect"):
        cv.attention.attention_heads(ATTENTION, TOKENS, positive_color="red", max_value=1)


@pytest.mark.parametrize(
    ("call", "error_text"),
    [
        (lambda: cv.attention.attention_heads(ATTENTION), "tokens are needed"),
        (lambda: cv.attention.attention_heads(ATTENTION, "The doctor"), "list of texts"),
        (lambda: cv.attention.attention_heads(ATTENTION, TOKENS[:2]), "4 queries but 2"),
        (lambda: cv.attention.attention_heads(ATTENTION - 1, TOKENS), "below 0"),
        (lambda: cv.attention.attention_heads(ATTENTION, TOKENS, ["a"]), "1 names for 3 heads"),
        (lambda: cv.attention.attention_pattern(TOKENS, ATTENTION), r"attention\[0\]"),
        (lambda: cv.attention.attention_patterns(TOKENS, ATTENTION[0]), r"\[4, 4\]"),
        (lambda: cv.attention.attention_patterns(TOKENS), "attention is needed"),
        (lambda: cv.attention.attention_patterns(TOKENS, [["a"]]), "no array of numbers"),
    ],
)
def test_mistakes_are_told(call, error_text):
    with pytest.raises(InputError, match=error_text):
        call()
