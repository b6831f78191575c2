"""The widget, without a notebook: what it answers, what it refuses, and its selection."""

import pytest
import torch
from made_traces import random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula
from headscope.views import notebook
from headscope.views.view import View

pytest.importorskip("anywidget")
TRACE = trace_of_layers(random_layer(Formula(1.0), 9), random_layer(Formula(1.0), 9))


class Heard:
    """What a widget sends to its page."""

    def __init__(self, view: View, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widget = view.widget
        self.sent: list[tuple] = []
        monkeypatch.setattr(self.widget, "send", lambda content, buffers=None: self.sent.append((content, buffers)))

    def ask(self, **question):
        self.widget._handle_custom_msg({"ask": "1", **question}, [])
        content, buffers = self.sent.pop()
        assert content["answer"] == "1"
        return content.get("problem") or buffers[0]


@pytest.fixture
def heard(monkeypatch) -> Heard:
    return Heard(hs.head_view(TRACE, "L1H2"), monkeypatch)


@pytest.mark.parametrize("key", ["saved", "trace", "scores", "maps?size=96", "layer/L1?what=pattern", "row/L1?query=5"])
def test_parts_travel_as_bytes(heard, key):
    assert bytes(heard.ask(key=key)[:4]) == b"HSV1"


def test_scores_given_with_the_view_are_there(monkeypatch):
    mine = hs.Scores("mine", {head: 0.5 for head in TRACE.heads})
    heard = Heard(hs.model_view(TRACE, colour=mine), monkeypatch)
    assert b'"mine"' in heard.ask(key="scores")


@pytest.mark.parametrize(
    ("question", "error_text"),
    [
        ({"key": "layer/L9?what=pattern"}, "L9"),
        ({"key": "secrets"}, "there is no part 'secrets'"),
        ({"key": 5}, "has a key"),
        ({}, "has a key"),
    ],
)
def test_what_is_not_there_is_answered_in_words(heard, question, error_text):
    assert error_text in heard.ask(**question)["message"]


def test_a_message_that_is_no_question_is_left_alone(heard):
    for content in ({"ask": 5, "key": "trace"}, {"ask": "x" * 100, "key": "trace"}, {"key": "trace"}, ["ask"], None):
        heard.widget._handle_custom_msg(content, [])
    assert heard.sent == []


def test_something_unexpected_is_said_and_logged(heard, monkeypatch, caplog):
    monkeypatch.setattr("headscope.views.widget.part", lambda *_: 1 / 0)
    assert "inside the kernel" in heard.ask(key="trace")["message"]
    assert "ZeroDivisionError" in caplog.text


def test_the_page_that_is_saved_opens_at_what_is_selected(heard):
    heard.widget.selected = "L0H3"
    assert heard.widget.view.title == "made, L0H3: head view"
    assert b"L0H3: head view" in heard.ask(page=True)


def test_python_and_page_share_one_selection(heard):
    widget, changes = heard.widget, []
    widget.observe(lambda change: changes.append(str(change.new.head)), "selected")
    widget.selected = "L0H1"
    assert (widget._selection["site"], widget._selection["head"]) == ("L0", 1)
    widget._selection = widget._selection | {
        "site": "L1",
        "head": 3,
        "heads": [3],
        "token": {"side": "key", "index": 4},
    }
    assert (str(widget.selected.head), widget.selected.token.position) == ("L1H3", 4)
    widget._selection = dict(widget._selection)  # told once more
    assert changes == ["L0H1", "L1H3"]
    with pytest.raises(hs.HeadscopeError, match="L9"):
        widget.selected = "L9"
    assert str(widget.selected.head) == "L1H3"


def test_what_is_on_screen_is_a_view_at_every_scale(heard):
    """Neurons opened from the head view, with no token chosen, or with a key: as the page shows them."""
    widget = heard.widget
    for token, query in ((None, 8), ({"side": "key", "index": 4}, 4), ({"side": "query", "index": 5}, 5)):
        widget._selection = widget._selection | {"scale": "neuron", "token": token}
        assert repr(widget) == "ViewWidget(View('neuron', 'made', L1H2))"
        assert set(widget.view.table().columns["query position"]) == {query}
        widget.view.figure()
        assert b"neuron view" in heard.ask(page=True)
    widget._selection = widget._selection | {"scale": "model"}
    assert widget.view.kind == "model"
    widget._selection = widget._selection | {"scale": "activations"}
    assert repr(widget) == "ViewWidget(View('activations', 'made'))"
    with pytest.raises(hs.HeadscopeError, match=r"hs\.activations_view\(trace, model\)"):
        widget.view.figure()
    assert "hs.activations_view" in heard.ask(page=True)["message"]


def test_a_selection_of_the_page_that_is_not_there_changes_nothing(heard, caplog):
    widget = heard.widget
    widget._selection = widget._selection | {"site": "L77"}
    assert str(widget.selected.head) == "L1H2"
    assert "not there" in caplog.text


def test_two_views_share_nothing():
    first, other = hs.head_view(TRACE, "L0").widget, hs.head_view(TRACE, "L0").widget
    first.selected = "L1H1"
    assert str(other.selected.head) == "L0H0"


def test_a_height_has_bounds(heard):
    with pytest.raises(Exception, match="200"):
        heard.widget.height = 3


# How a view shows itself


class Kernel:
    kernel = object()


class Terminal:
    kernel = None


def test_in_a_kernel_it_is_a_widget_beside_a_picture(monkeypatch):
    monkeypatch.setattr(notebook, "_shell", Kernel)
    view = hs.head_view(TRACE, "L1H2")
    data, _ = view._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == view.widget.model_id
    assert data["image/png"].startswith("iVBOR")
    assert data["text/plain"] == "View('head', 'made', L1, 1 head)"
    assert view._repr_html_() is None  # a page would be megabytes in every saved notebook


def test_in_a_terminal_it_is_text(monkeypatch):
    monkeypatch.setattr(notebook, "_shell", Terminal)
    view = hs.head_view(TRACE, "L1H2")
    assert list(view._repr_mimebundle_()) == ["text/plain"]
    assert view._repr_html_() is None


def test_without_anywidget_it_is_a_page_in_a_frame(monkeypatch):
    monkeypatch.setattr(notebook, "_shell", Kernel)
    monkeypatch.setattr(notebook.importlib.util, "find_spec", lambda name: None)
    data = hs.head_view(TRACE, "L1H2")._repr_mimebundle_()
    assert data["text/html"].startswith("<iframe")


def test_the_picture_of_a_long_input_is_a_matrix_and_small():
    names = [f"t{index}" for index in range(300)]
    trace = hs.Trace.from_patterns([torch.rand(2, 300, 300).softmax(-1)], names, model="m")
    assert 0 < len(notebook.still_picture(hs.head_view(trace, "L0"))) < 200_000


def test_there_is_no_picture_where_it_would_take_long(monkeypatch):
    monkeypatch.setattr(notebook, "_MOST_TOKENS", 5)
    assert notebook.still_picture(hs.head_view(TRACE, "L0")) == b""
