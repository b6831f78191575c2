import json
import signal
import threading

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, tiny_bert_tokenizer

import headscope as hs
from headscope import runs
from headscope.corpora import corpus
from headscope.errors import Cancelled, HeadscopeError, HeadscopeWarning, InputError, LoadError

pytest.importorskip("pyarrow")
TEXTS = [
    "the cat sat on the mat because it was tired.",
    "it was tired.",
    "she gave her sister the book, and he read it to them.",
    "the cat sat.",
    "a quick brown fox jumps over the lazy dog!",
    "he read it.",
    "the animal did not cross the street because it was too wide.",
]


@pytest.fixture
def run(bert, fast, tmp_path):
    def start_run(folder="run", source=TEXTS, measures=(fast,), model=bert, **options):
        return runs.run(model, source, measures, tmp_path / folder, **({"shard_size": 2} | options))

    return start_run


def files(done):
    return {file.name: file.read_bytes() for file in sorted(done.folder.iterdir())}


def test_a_run_over_a_corpus_is_the_mean_over_its_examples(run, fast, slow, bert):
    done = run(measures=[fast, slow])
    assert sorted(files(done)) == ["manifest.json", *(f"shard-00000{index}.parquet" for index in range(4))]
    scores = done.scores()
    assert scores["fast"].n_samples == 7 and set(scores) == {"fast", "slow"}
    samples = {}
    for text in TEXTS:
        for head, sample in slow.samples(bert.run(text)):
            samples.setdefault(head, []).append(sample)
    chosen = np.random.default_rng(0).integers(0, 7, (1000, 7))
    for head, sample_rows in samples.items():
        total, count, chance = np.array(sample_rows).T
        assert scores["fast"][head] == pytest.approx(total.sum() / count.sum(), abs=1e-5)
        assert scores["slow"][head] == pytest.approx(total.sum() / count.sum(), abs=1e-5)
        assert scores["fast"].baselines[head] == pytest.approx(chance.sum() / count.sum(), abs=1e-5)
        means = total[chosen].sum(1) / count[chosen].sum(1)
        assert scores["fast"].intervals[head] == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=1e-5)


def test_shards_and_blocks_do_not_change_the_scores(run):
    first, other = run("a").scores()["fast"], run("b", shard_size=4, block=2, batch_size=1).scores()["fast"]
    assert all(first[head] == pytest.approx(other[head], abs=1e-6) for head in first)


def test_the_same_run_gives_the_same_bytes(run):
    assert files(run("a")) == files(run("b"))


@pytest.fixture
def obeys_ctrl_c():
    """A process that is started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("obeys_ctrl_c")
def test_ctrl_c_keeps_the_shards_that_are_done_and_the_same_call_goes_on(run, tmp_path):
    whole = run("whole")

    def stop(_):
        if len(list((tmp_path / "stopped").glob("shard-*.parquet"))) == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Cancelled, match="2 of 4 shards done"):
        run("stopped", progress=stop)
    seen = []
    again = run("stopped", progress=seen.append)
    assert files(again) == files(whole)
    assert seen[0] == hs.Progress("examples", 4, 7) and seen[-1] == hs.Progress("examples", 7, 7)
    assert not again.silent_measures() and again.is_complete


def test_a_run_can_be_cancelled_by_an_event(run, tmp_path):
    event = threading.Event()

    def stop(_):
        if list((tmp_path / "run").glob("shard-*.parquet")):
            event.set()

    with pytest.raises(Cancelled, match="1 of 4"):
        run(cancel=event, progress=stop)


def test_what_was_cut_short_is_done_again(run, tmp_path):
    whole = files(run())
    shard = tmp_path / "run" / "shard-000001.parquet"
    shard.write_bytes(shard.read_bytes()[:-100])
    (tmp_path / "run" / ".headscope-0123456789abcdef.partial").write_bytes(b"half")
    with pytest.warns(HeadscopeWarning, match=r"shard-000001\.parquet is damaged"):
        again = run()
    assert files(again) == whole


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": TEXTS[:-1]}, r"corpus\.n_examples was 7, is 6"),
        ({"source": [*TEXTS[:-1], "other words."]}, r"corpus\.sha256 was"),
        ({"seed": 1}, r"plan\.seed was 0, is 1"),
        ({"batch_size": 3}, r"plan\.batch_size was 64, is 3"),
        ({"threads": 7}, r"plan\.threads was \d, is 7"),
        ({"measures": [runs.OfLayers("other", len)]}, r'measures\[0\]\.name was "fast", is "other"'),
    ],
)
def test_a_folder_of_another_run_is_refused_with_what_differs(run, options, message):
    run()
    with pytest.raises(HeadscopeError, match=message):
        run(**options)


def test_other_weights_under_the_same_name_are_another_run(run):
    run()
    other = FAMILIES["bert"].build()
    with torch.no_grad():
        next(other.parameters())[0, 0] += 1
    with pytest.raises(HeadscopeError, match=r"model\.weights was"):
        run(model=hs.Model(other, tiny_bert_tokenizer(), name="tiny bert"))


def test_a_folder_with_something_else_in_it_is_refused(run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    with pytest.raises(HeadscopeError, match="is not a run"):
        run()
    run("done")
    with pytest.raises(HeadscopeError, match="holds this run already"):
        run("done", resume=False)


def test_two_processes_do_not_share_a_folder(run):
    def run_again(progress):
        run()

    with pytest.raises(HeadscopeError, match="another process is at work"):
        run(progress=run_again)


def test_a_kept_run_is_opened_and_asked(run, tmp_path):
    run()
    opened = runs.open(tmp_path / "run")
    assert opened.scores()["fast"].n_samples == 7 and "7 examples" in repr(opened)
    with pytest.raises(LoadError, match="not a run"):
        runs.open(tmp_path)
    with pytest.raises(HeadscopeError, match="no measure 'x': it has fast"):
        opened.table("x")


def test_duckdb_reads_the_folder(run, tmp_path):
    pytest.importorskip("duckdb")
    done = run("it's here")
    scores = done.scores()["fast"]
    rows = done.sql("select head, sum(total) / sum(n_queries), count(*) from samples group by head").fetchall()
    assert {head: mean for head, mean, _ in rows} == pytest.approx({str(head): value for head, value in scores.items()})
    assert {count for _, _, count in rows} == {7}
    assert done.sql("select example from samples where block = 3").fetchall()[0] == ("list:3",)


def test_measures_that_have_nothing_to_say_are_told_apart(run, fast):
    def never(trace):
        raise InputError("needs an image")
        yield

    done = run(measures=[fast, runs.OfTraces("never", never)])
    assert set(done.scores()) == {"fast"} and done.silent_measures() == {"never": "needs an image"}


def test_a_measure_may_finish_in_its_own_way(run, fast, tmp_path):
    class Doubled(runs.OfLayers):
        def finish(self, table):
            return {"twice": hs.Scores("twice", {head: 2 * value for head, value in table.mean().items()})}

    done = run(measures=[Doubled("double", fast.function)])
    assert set(done.scores()) == {"double/twice"}
    assert set(runs.open(tmp_path / "run").scores()) == {"double"}


def test_examples_that_the_model_cannot_take_are_told(run):
    source = corpus([*TEXTS, "word " * 99], on_error="skip")
    done = run(source=source)
    assert list(done.skipped_examples()) == ["list:7"] and done.scores()["fast"].n_samples == 7


def test_what_is_said_of_many_examples_is_said_once(run):
    with pytest.warns(HeadscopeWarning, match=r"list:1: the text is .* \(2 examples came with warnings") as caught:
        run(source=["the cat.", "word " * 99, "words " * 99], truncate=True)
    assert len(caught) == 1


def test_a_run_that_cannot_be_is_refused_before_it_starts(run, fast):
    with pytest.raises(InputError, match="different names"):
        run(measures=[])
    with pytest.raises(InputError, match="different names"):
        run(measures=[fast, fast])
    with pytest.raises(InputError, match="int is not a measure"):
        run(measures=[3])
    with pytest.raises(InputError, match="no engine 'spark'"):
        run(engine="spark")
    with pytest.raises(InputError, match="shard_size is at least 1"):
        run(shard_size=0, block=1)
    with pytest.raises(InputError, match="cannot be cut into blocks of 3"):
        run(shard_size=4, block=3)
    with pytest.raises(InputError, match="has no examples"):
        run(source=[])
    with pytest.raises(HeadscopeError, match="must be plain JSON"):
        run(measures=[runs.OfLayers("odd", len, {"head": object()})])
    with pytest.raises(InputError, match="got NoneType"):
        run(model=None)


def test_a_run_that_is_not_complete_has_no_scores(run, tmp_path):
    run()
    (tmp_path / "run" / "shard-000003.parquet").unlink()
    with pytest.raises(HeadscopeError, match="not complete"):
        runs.open(tmp_path / "run").scores()


def test_the_manifest_says_what_decides_the_numbers(run, tmp_path):
    run()
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["model"]["name"] == "tiny bert" and len(manifest["model"]["weights"]) == 64
    assert manifest["corpus"]["n_examples"] == 7 and manifest["plan"]["shard_size"] == 2
    assert manifest["packages"]["torch"] == torch.__version__
