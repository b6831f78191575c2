from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from headscope.atlases import search as module
from headscope.atlases.atlas_index import AtlasPlace, Cloud
from headscope.atlases.search import neighbours, same_points, search
from headscope.errors import InputError

ANIMALS, OTHERS = ["cat", "dog", "fox"], ["mat", "tree", "book", "rain", "house", "door", "road"]


@dataclass
class MadeUpAtlas:
    """Two heads over tokens of random order: one places tokens by what they are, the other by where they stand."""

    texts: list[str]
    positions: np.ndarray
    vectors: dict[str, tuple[torch.Tensor, ...]]
    index: Any = None

    def __post_init__(self):
        self.index = {"has_vectors": True, "options": {"scale": "norms"}}
        clouds = (Cloud("query", "main", "", 0), Cloud("key", "main", "", 0))
        self.places = {head: AtlasPlace(head, "L0", clouds) for head in self.vectors}
        self.n_tokens = {"main": len(self.texts)}

    def __len__(self) -> int:
        return len(self.places)

    def place(self, head: str) -> AtlasPlace:
        return self.places[head]

    def tokens(self, stack: str) -> pa.Table:
        rows = range(len(self.texts))
        examples = [row // 20 for row in rows]
        return pa.table({"row": rows, "text": self.texts, "example": examples, "position": self.positions})


@pytest.fixture
def made_up(monkeypatch) -> MadeUpAtlas:
    generator = np.random.default_rng(0)
    texts = [str(word) for word in generator.choice(ANIMALS + OTHERS, 400)]
    positions = np.tile(np.arange(20), 20)
    kinds = np.array([0 if text in ANIMALS else 1 + OTHERS.index(text) for text in texts])
    centres = generator.normal(size=(8, 6)) * 4
    turns = positions / 20 * 6.28
    ring = 6 * np.stack([np.cos(turns), np.sin(turns), *np.zeros((4, 400))], 1)

    def cloud(middles: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(middles + generator.normal(size=middles.shape)).float()

    made_up = MadeUpAtlas(
        texts,
        positions,
        {"L0H0": (cloud(ring), cloud(ring)), "L0H1": (cloud(centres[kinds]), cloud(centres[kinds]))},
    )

    class Vectors:
        def __init__(self, head: str):
            self.vectors = made_up.vectors[head]

        def parts(self) -> tuple[torch.Tensor, ...]:
            return tuple(part.double() for part in self.vectors)

    monkeypatch.setattr(module, "read_vectors", lambda atlas, place: Vectors(place.address))
    return made_up


def test_a_semantic_head_ranks_above_a_positional(made_up: Any) -> None:
    result = search(made_up, "cat|dog|fox", regex=True)
    assert result.n_hits == sum(text in ANIMALS for text in made_up.texts)
    semantic, positional = result.heads
    assert (semantic.head, positional.head) == ("L0H1", "L0H0")
    assert semantic.ratio < 0.6 and semantic.low < semantic.ratio < semantic.high < 0.8
    assert semantic.p == pytest.approx(1 / 200)
    assert semantic.n_clusters == 1
    assert positional.ratio == pytest.approx(1.0, abs=0.1)
    assert positional.p > 0.05


def test_a_ratio_on_paper() -> None:
    # Four corners of a square of side 1: every point is 1, 1 and √2 from the others.
    corners = torch.tensor([[0.0, 0.0], [1, 0], [0, 1], [1, 1]]).double()
    apart = torch.cdist(corners, corners)
    assert float(apart.mean()) == pytest.approx((2 + 2**0.5) / 4)
    assert module._jackknife(module._means_without(apart)) == pytest.approx(0.0, abs=1e-12)  # all leave one triangle


def test_queries_and_keys_of_one_token_are_no_two_witnesses(made_up: Any) -> None:
    # Where keys are the queries again, both clouds say the same: the interval is that of one.
    query = made_up.vectors["L0H1"][0]
    made_up.vectors["L0H1"] = (query, query)
    both = next(head for head in search(made_up, "cat").heads if head.head == "L0H1")
    made_up.places["L0H1"] = AtlasPlace("L0H1", "L0", (Cloud("query", "main", "", 0),))
    made_up.vectors["L0H1"] = (query,)
    alone = next(head for head in search(made_up, "cat").heads if head.head == "L0H1")
    assert (both.ratio, both.low, both.high) == pytest.approx((alone.ratio, alone.low, alone.high))


def test_clouds_far_from_zero_are_searched_as_well(made_up: Any) -> None:
    near = search(made_up, "cat|dog|fox", regex=True).heads
    made_up.vectors = {head: tuple(part.double() + 1e4 for part in parts) for head, parts in made_up.vectors.items()}
    far = search(made_up, "cat|dog|fox", regex=True).heads
    assert [head.ratio for head in far] == pytest.approx([head.ratio for head in near], rel=1e-4)


def test_clusters_are_counted() -> None:
    points = torch.tensor([[0.0], [0.1], [0.2], [5.0], [5.1], [20.0]]).double()
    assert module._n_clusters(torch.cdist(points, points), 1.0) == 2  # a point alone is none


def test_text_and_case(made_up: Any) -> None:
    assert search(made_up, "cat").n_hits == made_up.texts.count("cat")
    assert search(made_up, "CAT").n_hits == 0
    assert search(made_up, "CAT", ignore_case=True).n_hits == made_up.texts.count("cat")
    assert search(made_up, "^c", regex=True).n_hits == made_up.texts.count("cat")
    assert search(made_up, "zebra").note == "heads are ranked from three matching tokens on"


def test_a_catastrophic_expression_takes_linear_time(made_up: Any) -> None:
    made_up.texts[0] = "a" * 2000 + "!"
    assert search(made_up, "(a+)+$", regex=True).n_hits == sum(text.endswith("a") for text in made_up.texts)


@pytest.mark.parametrize(
    ("text", "message"),
    [("(a", "is not a regular expression"), ("", "1 to 500 characters"), ("x" * 501, "got 501"), (r"(a)\1", "RE2")],
)
def test_what_cannot_be_searched_is_refused(made_up: Any, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        search(made_up, text, regex=True)


def test_neighbours_are_the_nearest_points(made_up: Any) -> None:
    query, key = made_up.vectors["L0H1"]
    both = torch.cat([query, key]).double()
    distances = (both - both[400 + 7]).norm(dim=-1)
    distances[407] = torch.inf
    near = neighbours(made_up, made_up.place("L0H1"), 7, role="key", k=3)
    assert [point.distance for point in near] == pytest.approx(distances.sort().values[:3].tolist())
    assert all(point.text in made_up.texts for point in near)
    with pytest.raises(InputError, match="main has tokens 0 to 399, not 400"):
        neighbours(made_up, made_up.place("L0H1"), 400)


def test_a_selection_is_the_same_tokens_elsewhere(atlas) -> None:
    n_tokens = atlas.n_tokens["main"]
    assert same_points(atlas, "L0H0", [2, n_tokens + 5], "L1H1").tolist() == [2, n_tokens + 5]
    with pytest.raises(InputError, match="L0H0 has points 0 to"):
        same_points(atlas, "L0H0", [10**6], "L1H1")


def test_an_atlas_is_searched(atlas) -> None:
    result = atlas.search("the")
    assert result.n_hits == sum(text.strip() == "the" for text in atlas.tokens().column("text").to_pylist())
    assert len(result.heads) == len(atlas)
    assert all(0 < head.p <= 1 and head.ratio > 0 for head in result.heads)
