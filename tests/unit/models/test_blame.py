"""The edit that makes the output NaN is named, whichever it is."""

import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.errors import InterventionError
from headscope.models.blame import check_output

TEXT = "the cat sat on the mat"


@pytest.mark.parametrize("place", range(5))
def test_the_one_that_breaks_it_is_named(place: int) -> None:
    model = hs.Model(FAMILIES["gpt2"].build(), tiny_tokenizer())
    edits = [hs.scale("L0H0", 0.5), hs.silence("L1H1"), hs.temperature("L0H1", 2.0), hs.scale("L1H0", 3.0)]
    edits.insert(place, hs.set_neuron("L0", "mlp", 0, 1e300))
    with pytest.raises(InterventionError, match=r"^hs.set_neuron\('L0', 'mlp', 0, 1e\+300\) makes .* NaN"):
        model.run(TEXT, edits)
    assert model.run(TEXT, [one for one in edits if "mlp" not in repr(one)]).predictions(1)


def test_few_runs_find_it_among_many() -> None:
    calls = []

    def again(edits):
        calls.append(len(edits))
        return (torch.tensor([float("nan") if len(edits) > 40 else 1.0]),)

    edits = [hs.scale("L0H0", float(place + 1)) for place in range(64)]
    with pytest.raises(InterventionError, match=r"^hs.scale\('L0H0', 41.0\)"):
        check_output((torch.tensor([float("inf")]),), edits, again)
    assert len(calls) <= 7


def test_nobody_is_blamed_for_what_the_model_does_itself() -> None:
    nan = {"logits": torch.tensor([float("nan")])}
    check_output(nan, [hs.silence("L0H0")], lambda edits: nan)
    # Answers ruled out with −inf are sound.
    check_output({"logits": torch.tensor([float("-inf"), 1.0])}, [hs.silence("L0H0")], lambda edits: pytest.fail())
