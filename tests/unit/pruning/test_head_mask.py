"""Masks: what they count, what they switch off, and their plain form."""

import json

import pytest
import torch
from tiny_models import SENTENCES
from tiny_tasks import PAIRS, gpt, marian

import headscope as hs
from headscope.errors import InputError
from headscope.pruning import HeadMask
from headscope.sites import Head, Site

MASK = HeadMask(
    {
        Site("encoder", 0): (True, False),
        Site("decoder", 0, "cross"): (True, True),
        Site("decoder", 0): (False, False),
    }
)


def test_heads_and_counts_of_a_mask() -> None:
    assert MASK.counts() == {"encoder": (1, 2), "decoder": (0, 2), "cross": (2, 2)}
    assert list(MASK.counts()) == ["encoder", "decoder", "cross"]
    assert MASK.total() == (3, 6)
    assert [str(head) for head in MASK.heads_kept()] == ["encoder.L0H0", "cross.L0H0", "cross.L0H1"]
    assert [str(head) for head in MASK.heads_pruned()] == ["encoder.L0H1", "decoder.L0H0", "decoder.L0H1"]
    assert len(MASK.heads()) == 6


def test_a_mask_as_json_and_back() -> None:
    data = MASK.to_json()
    assert data == {"encoder.L0": [1, 0], "cross.L0": [1, 1], "decoder.L0": [0, 0]}
    assert HeadMask.from_json(json.loads(json.dumps(data))) == MASK
    in_main = HeadMask({Site("main", 0): (True,), Site("main", 0, "cross"): (False,)})
    assert HeadMask.from_json(in_main.to_json()) == in_main
    with pytest.raises(InputError, match="is a head"):
        HeadMask.from_json({"L0H1": [1]})


def test_a_full_mask_changes_nothing_and_an_edit_per_layer_does_the_rest() -> None:
    model = marian()
    assert HeadMask.full(model).interventions() == []
    edits = MASK.interventions()
    assert len(edits) == 2 and {str(edit.site) for edit in edits} == {"encoder.L0", "decoder.L0"}
    silenced = [hs.silence(head) for head in MASK.heads_pruned()]
    mixed = [
        model.run(PAIRS[0][0], chosen, target=PAIRS[0][1]).tensor("mixed", "cross.L0H0")
        for chosen in (edits, silenced, [])
    ]
    assert torch.equal(mixed[0], mixed[1]) and not torch.allclose(mixed[0], mixed[2])


def test_switched_off_heads_mix_nothing() -> None:
    model = gpt()
    mask = HeadMask.of(model, [Head("main", 0, 1)])
    trace = model.run(SENTENCES[0], mask.interventions())
    assert not trace.tensor("mixed", "L0H0").any() and not trace.tensor("mixed", "L1H1").any()
    assert torch.equal(trace.tensor("mixed", "L0H1"), model.run(SENTENCES[0]).tensor("mixed", "L0H1"))


def test_masks_of_other_models_are_refused() -> None:
    with pytest.raises(InputError, match=r"6 heads in 3 layers, and .* has 4 heads in 2"):
        MASK.check(gpt())
    MASK.check(marian())
    with pytest.raises(InputError, match="has no head L7H0"):
        HeadMask.of(gpt(), [Head("main", 7, 0)])
