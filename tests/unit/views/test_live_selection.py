"""What is selected in a live view: Python's words for it and the page's, checked both ways."""

from dataclasses import asdict, replace

import pytest
import torch

import headscope as hs
from headscope.errors import InputError, UnknownHeadError
from headscope.traces import Token, Tokens, Trace
from headscope.views.live_selection import change_selection, select, selected_of
from headscope.views.selection import Selection

WORDS = Tokens(
    (
        Token("[CLS]", special=True),
        Token("un", word=0, start=0, end=2),
        Token("kind", word=0, start=2, end=6),
        Token("words", word=1, start=7, end=12),
    )
)
TRACE = Trace.from_patterns([torch.rand(3, 4, 4).softmax(-1) for _ in range(2)], WORDS, model="m")
NOW = hs.head_view(TRACE, "L1H2").selection


def test_a_token_has_its_place_among_the_models_own():
    selected = selected_of(TRACE, hs.head_view(TRACE, "L0", token=("key", 2)).selection)
    assert (selected.scale, str(selected.head), [head.index for head in selected.heads]) == ("head", "L0H0", [0, 1, 2])
    assert selected.token is not None
    assert (selected.token.side, selected.token.position, selected.token.text) == ("key", 2, "kind")
    assert str(selected.site) == "L0"
    assert repr(selected) == "Selected(scale='head', head=L0H0, heads=[L0H0, L0H1, L0H2], token=key 2 'kind')"


def test_a_word_has_the_places_of_all_its_tokens():
    view = hs.head_view(TRACE, "L0", by="words", hide="special", token=0)
    selected = selected_of(TRACE, view.selection)
    assert selected.token is not None
    assert (selected.token.positions, selected.token.text) == ((1, 2), "unkind")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("L0H1", {"site": "L0", "head": 1, "heads": [1]}),
        ("L0", {"site": "L0", "head": 0, "heads": [0, 1, 2]}),
        (["L0H2", "L0H1"], {"site": "L0", "head": 1, "heads": [1, 2]}),
        ({"head": "L0H1", "form": "matrix"}, {"site": "L0", "head": 1, "heads": [1], "form": "matrix"}),
        ({"heads": "L0", "head": "L0H2"}, {"site": "L0", "head": 2, "heads": [0, 1, 2]}),
        ({"token": ("key", 3)}, {"token": {"side": "key", "index": 3}, "site": "L1"}),
        ({"token": {"side": "query", "index": 3}}, {"token": {"side": "query", "index": 3}}),
        ({"scale": "model", "least": 0}, {"scale": "model", "least": 0}),
        (hs.model_view(TRACE, "L0H2").selection, {"scale": "model", "site": "L0", "head": 2}),
    ],
)
def test_python_says_what_is_wanted_in_a_few_words(wanted, expected):
    selection = asdict(select(TRACE, NOW, wanted).selection)
    assert {name: selection[name] for name in expected} == expected


def test_what_was_selected_can_be_selected_again():
    selection = select(TRACE, NOW, {"heads": "L0", "token": 3})
    assert select(TRACE, NOW, selection) == selection


def test_a_token_can_be_told_from_the_end():
    assert select(TRACE, NOW, {"token": -1}).selection.token == select(TRACE, NOW, {"token": 3}).selection.token
    assert select(TRACE, NOW, {"token": ("key", -4)}).token.position == 0


def test_a_token_is_let_go_where_tokens_are_read_otherwise():
    now = replace(NOW, token=select(TRACE, NOW, {"token": 3}).selection.token)
    assert select(TRACE, now, {"form": "matrix"}).selection.token is not None
    assert select(TRACE, now, {"by": "words"}).selection.token is None


@pytest.mark.parametrize(
    ("wanted", "error", "error_text"),
    [
        ("L9", UnknownHeadError, "L9"),
        (["L0H1", "L1H1"], InputError, "one layer"),
        ({"head": 7}, InputError, "L1 has no head 7: it has 3, H0 to H2"),
        ({"off": ["main:0", 3]}, InputError, "off"),
        ({"token": 4}, InputError, "there is no query 4: 4 are shown, 0 to 3"),
        ({"token": {"side": "key", "index": -5}}, InputError, "there is no key -5"),
        ({"token": "nurse"}, InputError, "is no position"),
        ({"form": "cubes"}, InputError, "choose one of 'auto', 'lines', 'matrix'"),
        ({"top": 2.5}, InputError, "top=2.5"),
        ({"average": "yes"}, InputError, "average='yes'"),
        ({"colours": "red"}, InputError, "nothing to select by 'colours'"),
    ],
)
def test_what_cannot_be_selected_is_refused_in_words(wanted, error, error_text):
    with pytest.raises(error, match=error_text):
        select(TRACE, NOW, wanted)


def test_every_option_of_a_selection_passes_as_the_page_tells_it():
    assert change_selection(asdict(NOW), Selection()) == NOW
    assert change_selection({"site": "L1", "unknown": 1}, NOW) == NOW
