"""An atlas to look at: as a page, as a figure, in a notebook; and keys of its parts."""

import re
from pathlib import Path

import numpy as np
import pytest
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.atlases import Atlas
from headscope.errors import InputError
from headscope.views.atlas_keys import AtlasKey, parse_atlas_key
from headscope.views.atlas_maps import sampled_rows
from headscope.views.atlas_page import atlas_page, saved_key
from headscope.views.atlas_parts import atlas_part
from headscope.views.atlas_selection import AtlasSelection, AtlasSpot, checked_selection
from headscope.views.atlas_tokens import _text
from headscope.views.wire import decode

TEXTS = ["the cat sat on the mat because it was tired.", "it was tired.", "she gave her sister the book."]


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    model = hs.Model(FAMILIES["gpt2"].build(), tiny_tokenizer(), name="tiny gpt")
    return hs.atlas(model, TEXTS, tmp_path_factory.mktemp("atlas") / "atlas", points=None)


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "headscope.js").write_text("export {};")
    (folder / "headscope.css").write_text("body {}")
    return folder


def test_keys_are_read_and_bounded() -> None:
    assert parse_atlas_key("map?head=cross.L2H3&method=umap&dims=3&coordinates=raw") == AtlasKey(
        "map", head="cross.L2H3", method="umap", dims=3, coordinates="raw"
    )
    assert parse_atlas_key("search?text=a%26b&regex=1").text == "a&b"
    for key in (
        "map?head=L0H0&dims=4",
        "lines?head=L0H0&top=99",
        "columns",
        "columns?head=L0H0&name=norm",
        "map?head=",
    ):
        with pytest.raises(InputError):
            parse_atlas_key(key)


def test_a_sample_of_rows_grows_and_does_not_change(atlas: Atlas) -> None:
    few, more = (set(sampled_rows(atlas, count)["main"].tolist()) for count in (8, 16))
    assert len(few) == 4 and len(more) == 8 and few < more


def test_every_part_survives_the_wire(atlas: Atlas) -> None:
    for key in ("atlas", "examples", "tokens", "maps", "columns?name=key_bias&points=8", "scores", "anomalies"):
        message = atlas_part(atlas, key).encode()
        assert decode(message).kind == key.partition("?")[0]


def test_the_strongest_keys_are_those_of_the_pattern(atlas: Atlas) -> None:
    lines = atlas_part(atlas, "lines?head=L1H2&top=2")
    keys, weights = np.asarray(lines.arrays["keys"]), np.asarray(lines.arrays["weights"])
    for example, (first, last) in enumerate(zip(atlas.starts("main"), atlas.starts("main")[1:], strict=False)):
        pattern = np.asarray(atlas_part(atlas, f"pattern?head=L1H2&example={example}").arrays["weights"])
        for query in range(last - first):
            best = np.sort(pattern[query, : query + 1])[::-1][:2]
            assert np.allclose(weights[first + query, : len(best)], best, atol=1e-6)
            assert keys[first + query, 0] == first + pattern[query].argmax()
        assert keys[first, 1] == -1  # the first query sees itself alone


def test_the_mean_by_position_is_that_of_the_patterns(atlas: Atlas) -> None:
    part = atlas_part(atlas, "aggregate?head=L0H1")
    patterns = [np.asarray(atlas_part(atlas, f"pattern?head=L0H1&example={i}").arrays["weights"]) for i in range(3)]
    counts = np.asarray(part.arrays["counts"])
    assert counts[0, 0] == 3 and counts.shape == tuple(max(pattern.shape[0] for pattern in patterns) for _ in range(2))
    row = np.mean([pattern[1, :2] for pattern in patterns], axis=0)
    assert np.allclose(np.asarray(part.arrays["weights"])[1, :2], row / row.sum(), atol=1e-6)


def test_distances_in_lifted_coordinates_fall_with_the_logit(atlas: Atlas) -> None:
    part = atlas_part(atlas, "distances?head=L1H0&coordinates=lifted&pairs=500")
    arrays = {name: np.asarray(array) for name, array in part.arrays.items()}
    checked = 0
    for query in np.unique(arrays["query"]):
        rows = arrays["query"] == query
        if rows.sum() > 2:
            order = np.argsort(arrays["distance"][rows])
            assert (np.diff(arrays["logit"][rows][order]) <= 1e-4).all()
            checked += 1
    assert checked > 3


def test_a_page_holds_the_heads_that_were_chosen(atlas: Atlas, static: Path) -> None:
    selection = AtlasSelection(place="L1H2", search="the", token=AtlasSpot("query", 3))
    view = hs.AtlasView(atlas, selection, ("L0H0",))
    page = atlas_page(view, static=static)
    keys = re.findall(r'data-key="([^"]*)"', page.html)
    held_maps = [key for key in keys if key.startswith("map?")]
    assert len(held_maps) == 2 and any("L1H2" in key for key in held_maps)
    assert saved_key("map?head=L0H0&method=pca&dims=2&coordinates=scaled").replace("&", "&amp;") in keys
    assert any(key.startswith("pattern?") for key in keys) and any(key.startswith("search?") for key in keys)
    assert page.notes and "of 8 heads" in page.notes[0]


def test_a_key_is_the_same_however_many_points_it_asks_for() -> None:
    assert saved_key("maps?points=9&method=pca&dims=2") == saved_key("maps?dims=2&method=pca&points=20000")


def test_it_is_saved_by_suffix(atlas: Atlas, tmp_path: Path) -> None:
    view = hs.atlas_view(atlas, "L1H2", map="pca", dims=3)
    assert view.selection.dims == 3 and atlas.has_map("L1H2", atlas.maps()[-1])
    with pytest.raises(InputError, match="saved as"):
        view.save(tmp_path / "atlas.csv")
    assert hs.atlas_view(atlas).save(tmp_path / "atlas.png").stat().st_size > 1000


def test_a_widget_tells_what_is_selected_and_answers(atlas: Atlas) -> None:
    widget = hs.atlas_view(atlas, "L1H2").widget
    widget._selection = {**widget._selection, "place": "L0H1", "token": {"role": "key", "row": 2}}
    assert widget.selection.place == "L0H1" and widget.view.selection.token == AtlasSpot("key", 2)
    widget.selection = AtlasSelection(place="L0H3", colour="norm")
    assert widget._selection["place"] == "L0H3"
    assert decode(widget._answer({"key": "saved"})).props["view"] == "atlas"
    assert decode(widget._answer({"key": "map?head=L0H3"})).props["head"] == "L0H3"
    with pytest.raises(InputError):
        checked_selection({"dims": "two"})


def test_texts_without_places_are_put_together_from_their_pieces() -> None:
    rows = [
        {"text": text, "special": text == "[CLS]", "start": None, "end": None} for text in ("[CLS]", "pop", "##ular")
    ]
    assert _text([*rows, {"text": "song", "special": False, "start": None, "end": None}]) == "popular song"
