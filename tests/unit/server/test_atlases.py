"""Atlases on the server: offered, asked for parts, maps made in the queue, atlases made of texts."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import headscope as hs
from headscope.atlases import Atlas, build_atlas, import_attentionviz
from headscope.errors import Cancelled, LoadError
from headscope.server import atlas_api
from headscope.server.atlases import MOST_MADE, OfferedAtlas, mirror
from headscope.views.wire import Part, decode

TEXTS = ["the cat sat on the mat.", "it was tired.", "the dog read the book to her.", "he read it."]


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atlas_api, "compile_kernels", lambda: None)


@pytest.fixture(scope="module")
def folder(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An atlas of the tiny model; not to be written to."""
    place = tmp_path_factory.mktemp("atlases") / "tiny"
    hs.atlas(str(models / "gpt"), TEXTS, place, points=None)
    return place


def offer_of(client: TestClient, name: str = "tiny") -> dict[str, Any]:
    offers = client.get("/api/settings").json()["atlases"]
    return next(offer for offer in offers if offer["name"] == name)


def part_of(client: TestClient, id: str, key: str) -> Part:
    answer = client.get(f"/api/atlases/{id}/parts/{key}")
    assert answer.status_code == 200, answer.text
    return decode(answer.content)


def posted(client: TestClient, address: str, **wanted: Any) -> dict[str, Any]:
    """The last event of something that is made."""
    answer = client.post(address, json=wanted)
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text.splitlines()[-1])


def test_an_atlas_is_offered_with_the_model_that_it_is_of(start, folder: Path, models: Path) -> None:
    client = start(atlases=(folder,))
    offer = offer_of(client)
    assert offer["model"] == str(models / "gpt") and offer["has_vectors"]
    props = part_of(client, offer["id"], "atlas").props
    assert [place["address"] for place in props["places"]] == list(Atlas(folder))
    assert props["maps"] and props["id"] == offer["id"] and props["corpus"]["n_sampled"] == len(TEXTS)
    assert offer_of(start(atlases=(folder,)))["id"] != offer["id"]  # browsers keep parts by their address


def test_two_atlases_of_one_name_are_told_apart(start, folder: Path, tmp_path: Path) -> None:
    mirror(folder, tmp_path / "tiny")
    offers = start(atlases=(folder, tmp_path / "tiny")).get("/api/atlases").json()
    assert [offer["name"] for offer in offers if offer["name"].startswith("tiny")] == ["tiny", "tiny-2"]


def test_a_folder_without_an_atlas_is_refused_at_the_start(start, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="there is no atlas in"):
        start(atlases=(tmp_path,))


def test_parts_hold_what_the_atlas_holds(start, folder: Path) -> None:
    client, atlas = start(atlases=(folder,)), Atlas(folder)
    id = offer_of(client)["id"]
    maps = part_of(client, id, "maps?points=8")
    rows = np.asarray(maps.arrays["rows:main"])
    steps = np.asarray(maps.arrays["L1H1"])
    place = maps.props["heads"].index("L1H1")
    drawn = np.asarray(maps.arrays["low"])[place] + steps * np.asarray(maps.arrays["step"])[place]
    points = np.concatenate([rows, rows + atlas.n_tokens["main"]])
    assert len(rows) == 4 and np.allclose(drawn, atlas.map("L1H1")[points], atol=1e-4)
    tokens = part_of(client, id, "tokens?stack=main")
    texts = [tokens.props["texts"][code] for code in np.asarray(tokens.arrays["text"])]
    assert texts == [row["text"] for row in atlas.tokens().to_pylist()]
    assert [text.strip() for text in part_of(client, id, "examples").props["texts"]["main"]] == TEXTS
    pattern = part_of(client, id, "pattern?head=L1H1&example=0")
    trace = hs.load(atlas.model if Path(atlas.model).exists() else offer_of(client)["model"]).run(TEXTS[0])
    expected = list(trace.layers.values())[1].pattern(1)
    assert np.allclose(np.asarray(pattern.arrays["weights"]), expected, atol=2e-3)


def test_hits_and_ranking_agree_with_the_library(start, folder: Path) -> None:
    client, search = start(atlases=(folder,)), Atlas(folder).search("the|it", regex=True)
    part = part_of(client, offer_of(client)["id"], "search?text=the%7Cit&regex=1")
    assert [head["head"] for head in part.props["heads"]] == [head.head for head in search.heads]
    assert np.asarray(part.arrays["hits:main"]).tolist() == search.hits["main"].tolist()


@pytest.mark.parametrize(
    ("key", "status", "error"),
    [
        ("nothing", 422, "InputError"),
        ("map", 422, "InputError"),
        ("map?head=L9H9", 404, "UnknownHeadError"),
        ("map?head=../../etc", 404, "UnknownHeadError"),
        ("map?head=L0H0&method=umap", 404, "NotMadeError"),
        ("maps?points=100000000", 422, "InputError"),
        ("pattern?head=L0H0&example=99", 422, "InputError"),
        ("neighbours?head=L0H0&row=99999", 422, "InputError"),
        ("neighbours?head=L0H0&row=1&role=value", 422, "InputError"),
        ("tokens?stack=decoder", 422, "InputError"),
        ("search?text=", 422, "InputError"),
        ("search?text=(a&regex=1", 422, "InputError"),
        ("image?example=0", 422, "NotInAtlasError"),
    ],
)
def test_bad_keys_are_refused_in_words(start, folder: Path, key: str, status: int, error: str) -> None:
    client = start(atlases=(folder,))
    answer = client.get(f"/api/atlases/{offer_of(client)['id']}/parts/{key}")
    assert (answer.status_code, answer.json()["error"]) == (status, error)


def imported(folder: Path, n_tokens: int) -> Path:
    """An imported atlas of one head: maps and norms alone."""
    points = np.random.default_rng(0).normal(size=(2 * n_tokens, 2)).tolist()
    words = [
        {"value": "w", "type": role, "pos_int": place % 40, "length": 40, "position": 0.5, "sentence": "w w"}
        for role in ("query", "key") for place in range(n_tokens)
    ]  # fmt: skip
    folder.mkdir()
    (folder / "tokens.json").write_text(json.dumps({"tokens": words}))
    of_head = {"layer": 0, "head": 0, "tokens": [{"tsne_x": x, "tsne_y": y, "norm": 1.0} for x, y in points]}
    (folder / "layer0_head0.json").write_text(json.dumps(of_head))
    import_attentionviz(folder, folder / "atlas")
    return folder / "atlas"


def test_a_part_takes_the_memory_that_it_needs(start, folder: Path, tmp_path: Path) -> None:
    def offered(place: Path) -> OfferedAtlas:
        atlas = Atlas(place)
        return OfferedAtlas("key", "name", "title", "", lambda: atlas, atlas.index)

    large = offered(imported(tmp_path / "large", 10_000))
    assert large.working_bytes("atlas") == large.working_bytes("columns") < 10**7  # there are no vectors to read
    own = offered(folder)
    n_tokens = own.atlas().n_tokens["main"]
    dim = own.atlas().vectors("L0H0").vectors[0].shape[1]
    assert own.working_bytes("columns") - own.working_bytes("atlas") == 2 * n_tokens * dim * 40
    some, more = (own.working_bytes("maps", points) for points in (10, 10**9))
    assert some < more == own.working_bytes("maps", 2 * n_tokens)


def test_a_catastrophic_regex_is_quick(start, folder: Path) -> None:
    client = start(atlases=(folder,))
    assert part_of(client, offer_of(client)["id"], "hits?text=(a*)*(a*)*(a*)*%24b&regex=1").props["n_hits"] == 0


def test_unknown_atlases_are_not_found_and_nobody_unknown_is_let_in(start, folder: Path) -> None:
    client = start(atlases=(folder,))
    assert client.get("/api/atlases/0123456789abcdef-0/parts/atlas").json()["error"] == "UnknownAtlas"
    assert client.get("/api/atlases/..%2f..%2ftiny/parts/atlas").status_code == 404
    id = offer_of(client)["id"]
    del client.headers["Authorization"]
    assert client.get(f"/api/atlases/{id}/parts/atlas").status_code == 401


def test_a_map_is_made_in_the_queue_and_then_there(start, folder: Path, tmp_path: Path) -> None:
    mirror(folder, tmp_path / "tiny")
    client = start(atlases=(tmp_path / "tiny",))
    before = offer_of(client)["id"]
    event = posted(client, f"/api/atlases/{before}/tasks", task="map", dims=3)
    assert event["state"] == "done" and event["result"] != before == f"{event['result'].partition('-')[0]}-0"
    assert np.asarray(part_of(client, event["result"], "map?head=L0H0&dims=3").arrays["points"]).shape[1] == 3
    # The folder that the copy links to is as it was.
    assert not (folder / "maps" / "scaled-pca-3d").exists()


def test_a_folder_that_cannot_be_written_is_left_as_it_is(start, folder: Path, monkeypatch) -> None:
    monkeypatch.setattr("headscope.server.atlases.os.access", lambda *_: False)
    before = sorted(path.name for path in (folder / "maps").iterdir())
    client = start(atlases=(folder,))
    event = posted(client, f"/api/atlases/{offer_of(client)['id']}/tasks", task="map", coordinates="translated")
    assert event["state"] == "done"
    assert sorted(path.name for path in (folder / "maps").iterdir()) == before
    assert part_of(client, event["result"], "map?head=L0H0&coordinates=translated").props["head"] == "L0H0"


def test_what_is_done_of_a_map_stays_when_it_is_stopped(start, folder: Path, tmp_path: Path, monkeypatch) -> None:
    mirror(folder, tmp_path / "tiny")
    client = start(atlases=(tmp_path / "tiny",))
    offered = client.workbench.atlases.find(offer_of(client)["id"])

    def draw(self: Atlas, method: str, *, cancel: threading.Event, **options: Any) -> None:
        del options["progress"]
        self.map("L0H0", "pca", **options)
        cancel.set()
        raise Cancelled("it was stopped on request.")

    monkeypatch.setattr(Atlas, "draw", draw)
    event = posted(client, f"/api/atlases/{offered.id}/tasks", task="map", dims=3)
    assert event["state"] == "cancelled"
    maps = part_of(client, offer_of(client)["id"], "atlas").props["maps"]
    assert {"method": "pca", "dims": 3, "coordinates": "scaled", "n_heads": 1} in maps


def test_an_atlas_is_made_of_texts(start, models: Path) -> None:
    client = start()
    event = posted(client, "/api/atlases", model=str(models / "gpt"), texts=["", *TEXTS], title="Mine")
    assert event["state"] == "done", event
    props = part_of(client, event["result"], "atlas").props
    assert (props["name"], props["title"], props["model"]) == ("texts-1", "Mine", str(models / "gpt"))
    assert props["corpus"]["n_sampled"] == len(TEXTS) and props["has_scores"]
    made_folder = client.workbench.atlases.find(event["result"]).atlas().folder
    assert made_folder.is_dir()
    client.workbench.close()
    assert not made_folder.exists()


def test_the_oldest_atlas_of_texts_makes_room(start, models: Path, folder: Path, tmp_path: Path) -> None:
    atlases = start().workbench.atlases
    for number in range(MOST_MADE + 1):
        mirror(folder, tmp_path / str(number))
        atlases.take(tmp_path / str(number), "texts", "")
    assert not (tmp_path / "0").exists() and (tmp_path / "1").exists()
    assert next(offer.name for offer in atlases.offers() if offer.name.startswith("texts")) == "texts-2"


@pytest.mark.parametrize(
    ("wanted", "status", "words"),
    [
        ({"texts": [" ", ""]}, 422, "nothing to draw"),
        ({"texts": ["a"], "points": 10**6}, 422, "points a head"),
        ({"texts": ["a" * 300_000]}, 413, "characters"),
        ({"texts": ["a"], "model": "/etc"}, 403, "may not read"),
    ],
)
def test_too_much_or_nothing_is_refused_before_it_waits(start, models: Path, wanted, status: int, words: str) -> None:
    answer = start().post("/api/atlases", json={"model": str(models / "gpt")} | wanted)
    assert answer.status_code == status and words in answer.json()["message"], answer.text


def test_what_goes_wrong_while_it_is_made_is_said_and_nothing_is_left(start, models: Path, monkeypatch) -> None:
    client = start()

    def full(*_: Any) -> None:
        raise LoadError("tokens.parquet cannot be written: No space left on device.")

    monkeypatch.setattr(build_atlas, "write_file", full)
    event = posted(client, "/api/atlases", model=str(models / "gpt"), texts=TEXTS)
    assert event["state"] == "failed" and "No space left" in event["message"]
    assert not list(client.workbench.atlases._temporary().iterdir())


def test_an_atlas_of_one_token_says_what_it_cannot_say(start, models: Path) -> None:
    client = start()
    event = posted(client, "/api/atlases", model=str(models / "gpt"), texts=["a"])
    scores = part_of(client, event["result"], "scores")
    assert np.isnan(np.asarray(scores.arrays["pearson"])).all()


def test_a_page_of_chosen_heads_is_a_file(start, folder: Path, static: Path, monkeypatch) -> None:
    monkeypatch.setattr("headscope.views.saved_page.STATIC", static)
    client = start(atlases=(folder,))
    address = f"/api/atlases/{offer_of(client)['id']}/page"
    answer = client.post(address, json={"selection": {"place": "L1H1"}, "heads": ["L0H0"]})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    assert 'data-key="atlas"' in answer.text and answer.text.count('data-key="map?') == 2
    refused = client.post(address, json={"selection": {"place": "L9H9"}})
    assert (refused.status_code, refused.json()["error"]) == (404, "UnknownHeadError")
