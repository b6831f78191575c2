"""A small atlas in one file: what it keeps, what it says it lacks, and what happens to a damaged one."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.atlases import pack_atlas, unpack_atlas
from headscope.atlases.packed_atlas import packed_index
from headscope.errors import LoadError, NotInAtlasError
from headscope.models.loading import BUILTIN
from headscope.views.atlas_parts import atlas_part


@pytest.fixture(scope="module")
def packed(atlas, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("packed") / "atlas.zip"
    pack_atlas(atlas, file)
    return file


def test_maps_numbers_and_anomalies_survive(atlas, packed: Path, tmp_path: Path) -> None:
    small = unpack_atlas(packed, tmp_path / "small")
    assert np.array_equal(small.map("L1H1"), atlas.map("L1H1"))
    assert repr(small.scores()["L1H1"]) == repr(atlas.scores()["L1H1"]) and small.anomalies() == atlas.anomalies()
    for name, column in atlas.columns("L1H1").items():
        assert np.allclose(small.columns("L1H1")[name], column, rtol=1e-3, atol=1e-3, equal_nan=True)
    hits = small.search("the")
    assert hits.n_hits and "map" in hits.note
    assert packed_index(packed)["model"] == atlas.index["model"]


def test_the_same_atlas_is_the_same_file(atlas, packed: Path, tmp_path: Path) -> None:
    pack_atlas(atlas, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


@pytest.mark.parametrize("key", ["lines?head=L0H0", "pattern?head=L0H0&example=0", "neighbours?head=L0H0&row=0"])
def test_what_needs_vectors_says_so(packed: Path, tmp_path: Path, key: str) -> None:
    small = unpack_atlas(packed, tmp_path / "small")
    with pytest.raises(NotInAtlasError, match="not in this atlas"):
        atlas_part(small, key)
    assert "not the queries and keys" in atlas_part(small, "atlas").props.lacks


def test_a_damaged_file_is_refused(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.zip").write_bytes(packed.read_bytes()[:500])
    with pytest.raises(LoadError, match="cannot be unpacked"):
        unpack_atlas(tmp_path / "cut.zip", tmp_path / "a")
    with zipfile.ZipFile(tmp_path / "strange.zip", "w") as archive:
        archive.writestr("../outside.txt", "")
    with pytest.raises(LoadError, match="which no atlas has"):
        unpack_atlas(tmp_path / "strange.zip", tmp_path / "b")
    assert not (tmp_path / "b").exists()
    small = unpack_atlas(packed, tmp_path / "c")
    norms = small.folder / "norms.safetensors"
    norms.write_bytes(norms.read_bytes()[:-1] + b"\0")
    with pytest.raises(LoadError, match="missing or damaged"):
        small.columns("L0H0")


@pytest.mark.parametrize("name", ["gpt", "bert", "translate", "vit"])
def test_built_in_atlases_are_small_and_of_their_models(name: str, tmp_path: Path) -> None:
    file = BUILTIN / name / "atlas.zip"
    assert file.stat().st_size <= 450_000
    small = unpack_atlas(file, tmp_path / name)
    model = hs.load(f"builtin:{name}")
    assert set(small.places) == {str(head) for head in model.heads}
    assert small.model == f"builtin:{name}" and np.isfinite(small.map(small.addresses[-1])).all()
    assert bool(small.pictures()) == (name == "vit")
