from types import SimpleNamespace

import numpy as np
import pytest

from headscope import runs
from headscope.corpora import Example
from headscope.runs.batch_plan import Plan
from headscope.runs.worker import Worker

EXAMPLES = [Example(str(number), text=text) for number, text in enumerate(["the cat sat.", "it was tired of the mat."])]


def before(queries, keys, *, is_cross, distance=1):
    if is_cross:
        return None
    plain = np.array([not token.special for token in queries])
    return SimpleNamespace(wanted=np.eye(len(queries), len(keys), -distance, dtype=bool) & plain[:, None], among=None)


def inner(queries, keys, *, is_cross):
    """Of the weight on ordinary tokens, the share on the token before."""
    plain = np.array([not token.special for token in queries])
    return SimpleNamespace(
        wanted=before(queries, keys, is_cross=is_cross).wanted & plain[None], among=np.tile(plain, (len(plain), 1))
    )


def only_long(queries, keys, *, is_cross):
    return before(queries, keys, is_cross=is_cross) if len(queries) > 8 else None


def column(ledger, name):
    return ledger.sums[name, ""][:, :, [ledger.heads[head] for head in sorted(ledger.heads)]]


def test_cells_give_what_the_layer_itself_gives(bert, fast):
    ledger = Worker(bert, [runs.OfCells("cells", before), fast], Plan()).shard(0, EXAMPLES)
    np.testing.assert_allclose(column(ledger, "cells"), column(ledger, "fast"), rtol=1e-5)


def test_many_measures_in_one_product_are_the_same_as_each_alone(bert):
    measures = [runs.OfCells("one", before), runs.OfCells("two", before, {"distance": 2}), runs.OfCells("share", inner)]
    together = Worker(bert, measures, Plan()).shard(0, EXAMPLES)
    for measure in measures:
        alone = Worker(bert, [measure], Plan()).shard(0, EXAMPLES)
        np.testing.assert_allclose(column(together, measure.name), column(alone, measure.name), rtol=1e-6)


def test_a_share_is_of_what_goes_to_the_other_cells(bert):
    ledger = Worker(bert, [runs.OfCells("share", inner)], Plan()).shard(0, EXAMPLES)
    trace = bert.run(EXAMPLES[0].text)
    pattern = trace.pattern("L1H2")
    cells = inner(trace.tokens["main"], trace.tokens["main"], is_cross=False)
    rows = cells.wanted.any(1)
    at = sorted(ledger.heads).index(trace.find("L1H2")[0])
    total, queries, chance, _ = column(ledger, "share")[:, 0, at]
    assert total == pytest.approx((pattern * cells.wanted).sum(), rel=1e-5)
    sent = (pattern * cells.among)[rows].sum(1)
    assert queries == pytest.approx(sent.sum(), rel=1e-5)
    assert chance == pytest.approx((sent * cells.wanted[rows].sum(1) / cells.among[rows].sum(1)).sum(), rel=1e-5)


def test_examples_that_a_measure_says_nothing_about_do_not_count(bert):
    ledger = Worker(bert, [runs.OfCells("long", only_long)], Plan()).shard(0, EXAMPLES)
    assert column(ledger, "long")[3].sum(1).tolist() == [0, len(bert.heads)]
