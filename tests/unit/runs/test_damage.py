"""A damaged run is refused by name, or computed again; no damage changes a number silently."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from damage import EQUAL, REFUSED, SmallRun, Trial, flips, longer, missing, replace_bytes, swap, truncate

import headscope as hs
from headscope import runs
from headscope.analysis.measures.corpus_measures import streaming
from headscope.errors import HeadscopeError, HeadscopeWarning, LoadError

SHARD, OTHER, MANIFEST = "shard-000001.parquet", "shard-000002.parquet", "manifest.json"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallRun:
    return SmallRun(tmp_path_factory.mktemp("damage") / "run")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> SmallRun:
    """The same run with another seed."""
    return SmallRun(tmp_path_factory.mktemp("damage") / "run", seed=1)


@pytest.fixture(autouse=True)
def whole(small: SmallRun) -> None:
    small.restore()


def test_one_flipped_bit_changes_no_number_silently(small: SmallRun) -> None:
    trial = Trial()
    for label, damage in flips(small, 45):
        trial.add(label, small, damage)
    assert trial.failures == []
    assert trial.worst[REFUSED] > 30 and trial.worst[EQUAL] + trial.worst[REFUSED] == 45


@pytest.mark.parametrize(
    "damage",
    {
        "cut short": truncate(SHARD, 0.9),
        "emptied": truncate(SHARD, 0),
        "longer": longer(SHARD),
        "missing": missing(SHARD),
        "swapped": swap(SHARD, OTHER),
        "no Parquet": replace_bytes(SHARD, b"mine"),
        "manifest cut short": truncate(MANIFEST, 0.5),
        "manifest of something else": replace_bytes(MANIFEST, b'{"name": "app", "display": "standalone"}'),
    }.items(),
    ids=lambda pair: pair[0],
)
def test_other_damage_is_refused_by_name(small: SmallRun, damage) -> None:
    trial = Trial()
    trial.add(damage[0], small, damage[1])
    assert trial.failures == []


def test_a_shard_of_another_run_is_refused(small: SmallRun, foreign: SmallRun) -> None:
    trial = Trial()
    trial.add("foreign", small, replace_bytes(SHARD, foreign.whole[SHARD]))
    assert trial.failures == []


@pytest.mark.parametrize("name", [SHARD, MANIFEST])
def test_resuming_computes_what_is_damaged_again(small: SmallRun, name: str) -> None:
    truncate(name, 0.6)(small.folder)
    with pytest.warns(HeadscopeWarning, match=rf"{name} is damaged.*again"):
        small.run()
    assert small.files() == small.whole


def test_a_shard_without_a_checksum_is_refused(small: SmallRun) -> None:
    file = small.folder / SHARD
    table = pq.read_table(file)
    remarks = {name: text for name, text in table.schema.metadata.items() if name != b"headscope.checksum"}
    pq.write_table(table.replace_schema_metadata(remarks), file)
    with pytest.raises(LoadError, match=rf"{SHARD} is damaged: it has no checksum\. Run it again"):
        runs.open(small.folder).scores()


def test_a_run_of_0_1_0_is_read_with_a_warning_under_the_names_of_today(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[2] / "fixtures" / "0.1.0" / "run"
    shutil.copytree(fixture, tmp_path / "run")
    with pytest.warns(HeadscopeWarning, match=r"written by Headscope 0\.1\.0, without checksums"):
        run = runs.open(tmp_path / "run")
    assert list(run.scores()) == ["peak_weight", "entropy", "previous_token"]
    assert run.scores()["peak_weight"].method == "peak_weight" and "peak_weight" in repr(run)
    with pytest.raises(HeadscopeError, match=r"no measure 'confidence': it has peak_weight"):
        run.table("confidence")


@pytest.mark.filterwarnings("ignore:.*checksum:headscope.errors.HeadscopeWarning")
def test_a_run_whose_measures_had_other_names_is_not_resumed(tmp_path: Path, gpt: hs.Model) -> None:
    fixture = Path(__file__).parents[2] / "fixtures" / "0.1.0" / "run"
    shutil.copytree(fixture, tmp_path / "run")
    measures = streaming(["one", "two"], gpt, names=["confidence"])
    with pytest.raises(HeadscopeError, match=r"in which peak_weight had other names\. It can be read, but not resumed"):
        runs.run(gpt, ["one", "two"], measures, tmp_path / "run")
