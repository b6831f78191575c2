import json
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.atlases import Atlas, import_attentionviz
from headscope.errors import HeadscopeError, LoadError

TEXTS = ["the cat sat on the mat.", "it was tired."]
WORDS = ["[cls]", "the", "cat", ".", "[sep]"]


def write_files(folder, n_heads: int = 2) -> None:
    """A folder as AttentionViz writes it: two sentences, one layer."""
    tokens = [
        {"value": word, "type": kind, "pos_int": position, "length": 5, "position": position / 4, "sentence": "…"}
        for kind in ("query", "key")
        for _ in range(2)
        for position, word in enumerate(WORDS)
    ]
    (folder / "tokens.json").write_text(json.dumps({"tokens": tokens}))
    for head in range(n_heads):
        points = [
            {"tsne_x": float(i), "tsne_y": -float(i), "umap_x": 0.5 * i, "umap_y": 1.0, "norm": i + head}
            for i in range(len(tokens))
        ]
        (folder / f"layer0_head{head}.json").write_text(json.dumps({"layer": 0, "head": head, "tokens": points}))


def test_files_become_an_atlas(tmp_path) -> None:
    write_files(tmp_path)
    atlas = import_attentionviz(tmp_path, tmp_path / "atlas")
    assert list(atlas) == ["L0H0", "L0H1"]
    assert atlas.n_tokens == {"main": 10}
    assert atlas.map("L0H1", "tsne")[:, 0] == pytest.approx(np.arange(20), abs=1e-3)
    assert atlas.map("L0H0", "umap").shape == (20, 2)
    assert atlas.columns("L0H1")["norm"].tolist() == [*range(1, 21)]
    tokens = atlas.tokens().to_pylist()
    assert [token["example"] for token in tokens] == [0] * 5 + [1] * 5
    assert [token["special"] for token in tokens[:5]] == [True, False, False, False, True]
    assert [token["punctuation"] for token in tokens[:5]] == [False, False, False, True, False]
    assert atlas.search("cat").hits["main"].tolist() == [2, 7]
    assert repr(Atlas.open(tmp_path / "atlas")) == repr(atlas)


def test_arrays_become_an_atlas(tmp_path) -> None:
    write_files(tmp_path, n_heads=0)
    np.savez(tmp_path / "bert.npz", tsne=np.ones((2, 3, 20, 2), np.float16), norm=np.ones((2, 3, 20), np.float16))
    assert len(import_attentionviz(tmp_path, tmp_path / "atlas")) == 6


def test_what_needs_vectors_is_not_in_it(tmp_path) -> None:
    write_files(tmp_path)
    atlas = import_attentionviz(tmp_path, tmp_path / "atlas")
    for ask in (
        lambda: atlas.vectors("L0H0"),
        lambda: atlas.map("L0H0", "pca"),
        lambda: atlas.scores(),
        lambda: atlas.neighbours("L0H0", 1),
        lambda: atlas.anomalies(),
    ):
        with pytest.raises(HeadscopeError, match=r"not in this atlas|does not hold"):
            ask()
    result = atlas.search(".", regex=True)  # of an imported atlas the map counts
    assert result.note == "ranked on the map scaled-tsne-2d: this atlas holds no queries and keys"
    assert len(result.heads) == 2


def test_another_folder_is_refused(tmp_path) -> None:
    with pytest.raises(LoadError, match=r"is not a folder of AttentionViz: it has no tokens\.json"):
        import_attentionviz(tmp_path, tmp_path / "atlas")
    write_files(tmp_path, n_heads=0)
    with pytest.raises(LoadError, match="holds no heads of AttentionViz"):
        import_attentionviz(tmp_path, tmp_path / "atlas")


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file with what is in it."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_atlas_of_a_model_is_not_overwritten(gpt, tmp_path) -> None:
    source, folder = tmp_path / "source", tmp_path / "atlas"
    source.mkdir()
    write_files(source)
    hs.atlas(gpt, TEXTS, folder, points=None, scores=False)
    before = contents(folder)
    with pytest.raises(LoadError, match="holds an atlas that was made from a model"):
        import_attentionviz(source, folder)
    assert contents(folder) == before


def test_an_imported_atlas_is_overwritten_by_no_other(gpt, tmp_path) -> None:
    source, folder = tmp_path / "source", tmp_path / "atlas"
    source.mkdir()
    write_files(source)
    import_attentionviz(source, folder)
    before = contents(folder)
    with pytest.raises(LoadError, match="holds an atlas that was imported"):
        hs.atlas(gpt, TEXTS, folder, points=None)
    write_files(source, n_heads=1)
    (source / "layer0_head1.json").unlink()
    with pytest.raises(LoadError, match="holds another atlas: places, norms_sha256 differ"):
        import_attentionviz(source, folder)
    (folder / "atlas.json").rename(tmp_path / "away")
    with pytest.raises(LoadError, match="imported from other files"):  # one that was stopped, too
        import_attentionviz(source, folder)
    (tmp_path / "away").rename(folder / "atlas.json")
    assert contents(folder) == before
