import numpy as np
import pytest

from headscope.errors import HeadscopeError
from headscope.runs.batch_plan import Plan, block_for
from headscope.runs.measure import Refusal, Tally
from headscope.runs.shard_counts import Ledger
from headscope.runs.table import MeasureTable
from headscope.sites import Head

pytest.importorskip("pyarrow")
HEADS = [Head("main", 0, 2), Head("main", 0, 10), Head("decoder", 1, 0, "cross")]
TOTAL = np.arange(15.0).reshape(5, 3)


def ledger(index, rows, plan, *, key="", heads=HEADS):
    filled_ledger = Ledger(index, [f"x:{number}" for number in range(len(rows))], plan)
    order = [1, 0, 2]  # whatever order heads and examples come in
    places = list(range(len(rows)))[::-1]
    values = TOTAL[rows][::-1][:, order][:, : len(heads)]
    filled_ledger.add("some", [Tally([heads[at] for at in order if at < len(heads)], places, values, [[2.0]], key=key)])
    return filled_ledger


def table(tmp_path, *ledgers, n_blocks=5):
    files = []
    for shard in ledgers:
        files.append(tmp_path / f"shard-{shard.index}.parquet")
        files[-1].write_bytes(shard.parquet(["some", "none"], "digest"))
    return MeasureTable("some", {"a": 1}, files, n_blocks)


def test_sums_and_means_over_shards(tmp_path):
    plan = Plan(shard_size=3)
    run_table = table(tmp_path, ledger(0, [0, 1, 2], plan), ledger(1, [3, 4], plan))
    heads, total, n_queries, chance, n_examples = run_table.sums()
    assert heads == sorted(HEADS) and n_examples.tolist() == [5, 5, 5] and n_queries.tolist() == [10, 10, 10]
    by_head = dict(zip(heads, total, strict=True))
    assert [by_head[head] for head in HEADS] == TOTAL.sum(0).tolist()
    scores = run_table.mean()
    assert scores["L0H10"] == TOTAL[:, 1].sum() / 10
    assert scores.baseline is None and np.isnan(chance).all()
    assert scores.settings == {"a": 1, "queries": 10} and scores.n_samples == 5
    assert run_table.blocks().total[:, heads.index(HEADS[0])].tolist() == TOTAL[:, 0].tolist()


def test_intervals_are_those_of_resampled_examples(tmp_path):
    run_table = table(tmp_path, ledger(0, [0, 1, 2, 3, 4], Plan(shard_size=5)))
    chosen = np.random.default_rng(0).integers(0, 5, (1000, 5))
    means = TOTAL[:, 0][chosen].sum(1) / 10
    assert run_table.mean().intervals[HEADS[0]] == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))


def test_blocks_add_up_neighbours(tmp_path):
    plan = Plan(shard_size=4, block=2)
    run_table = table(tmp_path, ledger(0, [0, 1, 2, 3], plan), ledger(1, [4], plan), n_blocks=3)
    at = run_table.sums().heads.index(HEADS[0])
    assert run_table.blocks().total[:, at].tolist() == [TOTAL[:2, 0].sum(), TOTAL[2:4, 0].sum(), TOTAL[4, 0]]


def test_keys_are_kept_apart(tmp_path):
    plan = Plan(shard_size=5)
    filled_ledger = ledger(0, [0, 1], plan, key="nsubj")
    filled_ledger.add("some", [Tally(HEADS[:1], [0], [[7.0]], [[1.0]], [[0.5]], key="obj")])
    run_table = table(tmp_path, filled_ledger)
    assert run_table.keys() == ["nsubj", "obj"]
    scores = run_table.means()
    assert isinstance(scores, dict) and scores["obj"].values_by_head[HEADS[0]] == 7.0
    assert scores["obj"].baseline == 0.5 and scores["obj"].method == "some/obj" and len(scores["obj"]) == 1
    with pytest.raises(HeadscopeError, match="'nsubj', 'obj'"):
        run_table.mean("amod")


def test_a_measure_that_counted_nothing_says_why(tmp_path):
    filled_ledger = Ledger(0, ["x"], Plan())
    filled_ledger.add("some", [Refusal("needs a pair")])
    run_table = table(tmp_path, filled_ledger)
    assert run_table.keys() == [] and run_table.why() == "needs a pair"
    with pytest.raises(HeadscopeError, match="needs a pair"):
        run_table.mean()


def test_heads_without_queries_are_unknown(tmp_path):
    filled_ledger = Ledger(0, ["x", "y"], Plan())
    filled_ledger.add("some", [Tally(HEADS[:2], [0, 1], [[1.0, 0.0], [3.0, 0.0]], [[2.0, 0.0]] * 2)])
    scores = table(tmp_path, filled_ledger, n_blocks=2).mean()
    assert scores[HEADS[0]] == 1.0 and np.isnan(scores[HEADS[1]]) and np.isnan(scores.intervals[HEADS[1]][0])


def test_the_same_sums_are_the_same_bytes():
    plan = Plan()
    assert ledger(0, [0, 1], plan).parquet(["some"], "d") == ledger(0, [0, 1], plan).parquet(["some"], "d")


def test_sums_of_the_wrong_shape_are_refused():
    filled_ledger = Ledger(0, ["x", "y"], Plan())
    with pytest.raises(HeadscopeError, match=r"sums of shape \(1, 3\) for 2 examples and 2 heads"):
        filled_ledger.add("some", [Tally(HEADS[:2], [0, 1], [[1.0, 2.0, 3.0]], [[1.0]])])
    with pytest.raises(HeadscopeError, match="does not have"):
        filled_ledger.add("some", [Tally(HEADS[:1], [2], [[1.0]], [[1.0]])])


def test_blocks_grow_with_the_corpus():
    assert block_for(10_000, 256) == 1 and block_for(10_001, 256) == 2
    assert block_for(1_000_000, 256) == 128 and block_for(10**9, 256) == 256
