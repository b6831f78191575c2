"""What attention adds, weights times norms."""

import pytest
import torch
from made_treebank import example, tokens
from tiny_models import FAMILIES, tiny_bert_tokenizer

import headscope as hs
from headscope.analysis.measures.norms import norm, norm_share
from headscope.runs import CorpusBatch, Layer, Refusal
from headscope.sites import Site
from headscope.traces import Inputs


def layer(pattern, norms):
    """One head on [CLS] and five words and [SEP], the norms of its values known."""
    of = tokens(example())
    real = torch.ones(1, 7, dtype=torch.bool)
    batch = CorpusBatch([example()], [Inputs("text", {}, {"main": of})], [0], {"main": real})
    known = {"norms": torch.tensor(norms)[None, None]}
    return Layer(Site("main", 0), "main", False, batch, slice(0, 1), 0, pattern[None, None], real, real, _known=known)


def share(results):
    (tally,) = results
    return float(tally.total / tally.n_queries), float(tally.chance / tally.n_queries)


def test_what_is_added_is_weight_times_norm():
    even = torch.full((7, 7), 1 / 7)
    assert share(norm(layer(even, [1.0, 2, 3, 4, 5, 6, 7]))) == pytest.approx((4, 4))
    # The words look at themselves: the mean of theirs, where even attention would take in [CLS] and [SEP].
    assert share(norm(layer(torch.eye(7), [9.0, 1, 2, 3, 4, 5, 9]))) == pytest.approx((3, 33 / 7))


def test_a_sink_with_small_values_adds_little():
    sink = torch.zeros(7, 7)
    sink[:, 0], sink[:, 3] = 0.9, 0.1
    share_and_chance = share(norm_share(layer(sink, [0.1, 1, 1, 1, 1, 1, 1]), keys="special"))
    assert share_and_chance == pytest.approx((0.09 / 0.19, 2 / 7))
    assert share(norm_share(layer(sink, [0.1, 1, 1, 1, 1, 1, 1]), keys="first"))[0] == pytest.approx(0.09 / 0.19)


def test_values_that_are_not_there_are_refused_with_the_reason():
    bare = hs.Trace.from_patterns([torch.eye(3)[None]], ["a", "b", "c"])
    with pytest.raises(hs.HeadscopeError, match="only its patterns are known"):
        hs.measure("norm", bare)
    plain = layer(torch.eye(7), [1.0] * 7)
    plain._known.clear()
    (refusal,) = norm(plain)
    assert isinstance(refusal, Refusal)


def test_it_is_the_sum_of_contributions():
    model = hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer())
    trace = model.run("the cat sat on the mat.")
    plain = [at for at, token in enumerate(trace.tokens["main"]) if not token.special]
    scores = hs.measure("norm", trace)
    for head in trace.heads:
        assert scores[head] == pytest.approx(trace.contribution(head)[plain].sum(1).mean(), rel=1e-4)
