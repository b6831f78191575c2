"""Making views: what can be said, and what is said of mistakes."""

from dataclasses import replace

import pytest
import torch
from made_traces import random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula
from headscope.errors import HeadscopeError
from headscope.scores import Scores
from headscope.sites import Site
from headscope.traces import Token, Tokens, Trace
from headscope.views.selection import Spot

PAIR = Tokens(
    (
        Token("[CLS]", special=True),
        Token("play", 1, word=0),
        Token("ing", 2, word=0),
        Token("cards", 3, word=1, segment="B"),
    )
)


@pytest.fixture
def trace() -> Trace:
    base_trace = trace_of_layers(random_layer(Formula(0.7), 4), random_layer(Formula(0.7), 4))
    return Trace("made", "heads", base_trace.layers, {"main": PAIR})


def test_without_a_word_it_is_all_heads_of_the_first_layer(trace):
    view = hs.head_view(trace)
    assert (view.selection.site, view.selection.heads, view.kind) == ("L0", [0, 1, 2, 3], "head")
    assert repr(view) == "View('head', 'made', L0, 4 heads)"
    assert repr(hs.head_view(trace, "L1H3")) == "View('head', 'made', L1, 1 head)"
    assert repr(hs.model_view(trace)) == "View('model', 'made')"


@pytest.mark.parametrize("heads, expected", [("L1H2", [2]), (["L1H3", "L1H0"], [0, 3]), ("L1", [0, 1, 2, 3])])
def test_heads_are_named_as_everywhere(trace, heads, expected):
    view = hs.head_view(trace, heads)
    assert (view.selection.site, view.selection.head, view.selection.heads) == ("L1", expected[0], expected)


def test_a_number_says_which_filter(trace):
    assert hs.head_view(trace).selection.filter == "all"
    for name, value in (("threshold", 0.2), ("mass", 0.9), ("top", 5)):
        chosen = hs.head_view(trace, **{name: value}).selection
        assert (chosen.filter, getattr(chosen, name)) == (name, value)
    assert hs.head_view(trace, filter="mass", top=2).selection.filter == "mass"


def test_tokens_are_hidden_switched_off_and_chosen(trace):
    chosen = hs.head_view(trace, hide="special", off=[2], token=("key", 2)).selection
    assert (chosen.hide, chosen.off, chosen.token) == (["special"], ["main:2"], Spot("key", 2))
    assert hs.head_view(trace, token=3).selection.token == Spot("query", 3)


def test_a_view_goes_on_from_the_selection_of_another(trace):
    first = hs.head_view(trace, ["L1H1", "L1H3"], by="words", hide="special", top=3, form="matrix")
    assert hs.head_view(trace, selection=first.selection).selection == first.selection
    again = hs.head_view(trace, selection=first.selection, mass=0.5, hide=()).selection
    assert (again.heads, again.by, again.form) == ([1, 3], "words", "matrix")
    assert (again.filter, again.mass, again.top, again.hide) == ("mass", 0.5, 3, [])
    assert hs.head_view(trace, "L0H2", selection=first.selection).selection.heads == [2]
    with pytest.raises(HeadscopeError, match="`heads` is empty"):
        hs.head_view(trace, selection=hs.Selection(site="L1"))


def test_negative_positions_count_from_the_end_of_what_is_shown(trace):
    assert hs.head_view(trace, token=-1).selection.token == Spot("query", 3)
    assert hs.head_view(trace, token=("key", -1), hide="special").selection.token == Spot("key", 2)
    assert hs.head_view(trace, off=[-2]).selection.off == ["main:2"]
    assert hs.head_view(trace, token=-1).table().columns["query position"][0] == 3


def test_a_step_of_what_was_written_is_one_that_there_is(trace):
    written = replace(trace, steps=(None, None, 0, 1))
    assert hs.head_view(written, step=1).selection.step == 1
    with pytest.raises(HeadscopeError, match="2 were written, 0 to 1"):
        hs.head_view(written, step=2)
    with pytest.raises(HeadscopeError, match=r"model\.generate"):
        hs.head_view(trace, step=0)
    layer = random_layer(Formula(1.0), 3, 4, site=Site("decoder", 0, "cross"), key_stack="encoder")
    translated = trace_of_layers(layer, steps=(None, 0, 1))
    assert hs.head_view(translated, step=2).selection.step == 2  # its last token is read by nobody


def test_heads_are_sorted_and_coloured_by_measures_or_by_scores_from_elsewhere(trace):
    mine = Scores("mine", {head: float(head.index) for head in trace.heads})
    view = hs.model_view(trace, "L1H1", sort="entropy", colour=mine, least=0.5)
    assert (view.selection.sort, view.selection.colour, view.selection.least) == ("entropy", "mine", 0.5)
    assert (view.selection.site, view.selection.head) == ("L1", 1)
    assert view.scores_part.props.methods[0].name == "mine"
    assert {row[0] for row in view.table().rows()} == {"L0H2", "L0H3", "L1H2", "L1H3"}


@pytest.mark.parametrize(
    "options, error_text",
    [
        ({"heads": "L9"}, "the heads are L0H0 to L1H3"),
        ({"heads": ["L0H1", "L1H1"]}, "one layer"),
        ({"heads": []}, "no head was named"),
        ({"colour": "entropy"}, "no option 'colour': choose from form, axis"),
        ({"form": "circle"}, "'lines', 'matrix'"),
        ({"axis": "diagonal"}, "'vertical', 'horizontal'"),
        ({"what": "value"}, "'pattern', 'contribution', 'scores'"),
        ({"by": "letters"}, "'tokens', 'words', 'sentences'"),
        ({"hide": "all"}, "'special', 'first'"),
        ({"off": [4]}, "main has 4 tokens"),
        ({"off": ["encoder:1"]}, "there is no stack 'encoder'"),
        ({"filter": "some"}, "'threshold', 'mass', 'top'"),
        ({"threshold": 2}, "between 0 and 1"),
        ({"mass": -0.1}, "between 0 and 1"),
        ({"top": 0}, "from 1 to 64"),
        ({"top": 3, "mass": 0.5}, "two filters"),
        ({"pair": "BC"}, "'AA', 'AB'"),
        ({"token": 4}, "4 are shown, 0 to 3"),
        ({"token": ("key", 3), "hide": "special"}, "3 are shown"),
        ({"token": ("left", 1)}, "'query', 'key'"),
        ({"token": -5}, "there is no query -5: 4 are shown, 0 to 3"),
        ({"token": True}, "no position"),
        ({"off": [-5]}, "main has 4 tokens, 0 to 3"),
        ({"token": 2, "off": [2]}, "switched off"),
        ({"what": "scores", "by": "words"}, "model's own tokens"),
        ({"theme": "pink"}, "'system', 'light', 'dark'"),
    ],
)
def test_mistakes_in_a_head_view_are_explained(trace, options, error_text):
    with pytest.raises(HeadscopeError, match=error_text):
        hs.head_view(trace, **options)


@pytest.mark.parametrize(
    "options, error_text",
    [
        ({"head": "L0"}, "say which, as in L0H0"),
        ({"head": "L7H0"}, "there is no L7H0"),
        ({"thumbnails": "dots"}, "'heat', 'lines'"),
        ({"sort": "beauty"}, "no measure of this trace: choose one of confidence"),
        ({"colour": "patch_neighbour"}, "no measure of this trace"),
        ({"least": 0.5}, "needs colour="),
        ({"least": 3, "colour": "entropy"}, "between 0 and 1"),
    ],
)
def test_mistakes_in_a_model_view_are_explained(trace, options, error_text):
    with pytest.raises(HeadscopeError, match=error_text):
        hs.model_view(trace, **options)


def test_what_is_not_a_trace_is_refused(trace):
    with pytest.raises(HeadscopeError, match=r"as model\.run\(\) returns it, not of ndarray"):
        hs.head_view(trace.pattern("L0H0"))
    with pytest.raises(HeadscopeError, match="by='words'"):
        hs.model_view(trace.words())
    with pytest.raises(HeadscopeError, match="needs a pair of texts"):
        hs.head_view(Trace.from_patterns([torch.eye(2)[None]], "ab"), pair="AB")
    with pytest.raises(HeadscopeError, match="only its patterns are known"):
        hs.head_view(Trace.from_patterns([torch.eye(2)[None]], "ab"), what="contribution")
