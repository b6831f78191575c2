"""Shares of parts of speech."""

import pytest
import torch
from made_treebank import TAGS, example, one_hot, tokens, trace, uniform

import headscope as hs

ONE = example()


def shares(pattern, **options):
    return hs.analysis.measure_all(["tags"], trace(pattern, on=tokens(ONE, **options)), examples=[ONE])


def test_a_head_that_looks_at_the_noun_gives_it_all():
    scores_by_name = shares(one_hot([3] * 7))
    assert scores_by_name["tags/to NOUN"]["L0H0"] == 1 and scores_by_name["tags/to VERB"]["L0H0"] == 0
    assert scores_by_name["tags/to NOUN"].baseline == pytest.approx(1 / 5)
    assert scores_by_name["tags/from NOUN"]["L0H0"] == pytest.approx(1 / 5)


def test_shares_add_up_to_one_both_ways_special_tokens_left_out():
    scores_by_name = shares(uniform(9), split=(2, 4))
    for way in ("to", "from"):
        assert sum(scores_by_name[f"tags/{way} {tag}"]["L0H0"] for tag in TAGS) == pytest.approx(1)
    # cat is two of seven pieces, and both have its tag; even attention scores what chance gives.
    assert scores_by_name["tags/to NOUN"]["L0H0"] == pytest.approx(2 / 7)
    assert scores_by_name["tags/to NOUN"].baseline == pytest.approx(2 / 7)


def test_what_goes_to_special_tokens_is_no_part_of_the_whole():
    pattern = one_hot([0] * 7)
    pattern[4] = uniform(7)[0]  # only the verb looks at words at all
    scores_by_name = shares(pattern)
    assert scores_by_name["tags/from VERB"]["L0H0"] == pytest.approx(1) and scores_by_name[
        "tags/from VERB"
    ].baseline == pytest.approx(1 / 5)
    assert scores_by_name["tags/to DET"]["L0H0"] == pytest.approx(1 / 5)


def test_one_of_several_scores_is_asked_for_by_name():
    on = trace(one_hot([3] * 7), on=tokens(ONE))
    assert hs.measure("tags/to NOUN", on, examples=[ONE])["L0H0"] == 1
    with pytest.raises(hs.HeadscopeError, match="several scores"):
        hs.measure("tags", on, examples=[ONE])
    with pytest.raises(hs.HeadscopeError, match="words and tags"):
        hs.measure("tags", on)


def test_chance_of_a_causal_head_is_shared_out_among_the_keys_in_sight():
    causal = torch.tril(torch.ones(5, 5)) / torch.arange(1, 6)[:, None]
    scores_by_name = hs.analysis.measure_all(["tags"], trace(causal, on=tokens(ONE, special=False)), examples=[ONE])
    # The first token is no key. Query q sends q / (q + 1), evenly; the noun at 2 is in sight of queries 2, 3 and 4.
    sent = sum(q / (q + 1) for q in range(1, 5))
    by_hand = sum(1 / (q + 1) for q in range(2, 5)) / sent
    assert scores_by_name["tags/to NOUN"]["L0H0"] == pytest.approx(by_hand)
    assert scores_by_name["tags/to NOUN"].baseline == pytest.approx(by_hand)
    assert scores_by_name["tags/to PRON"].baseline == pytest.approx(1 / 5 / sent)
