"""The edit that makes the output NaN is named, whichever it is."""

import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.errors import InterventionError
from headscope.models.capture.nan_check import check_output

TEXT = "the cat sat on the mat"


@pytest.mark.parametrize("place", range(5))
def test_the_one_that_breaks_it_is_named(place: int) -> None:
    model = hs.Model(FAMILIES["gpt2"].build(), tiny_tokenizer())
    edits = [hs.scale("L0H0", 0.5), hs.silence("L1H1"), hs.temperature("L0H1", 2.0), hs.scale("L1H0", 3.0)]
    edits.insert(place, hs.set_neuron("L0", "mlp", 0, 1e300))
    with pytest.raises(InterventionError, match=r"^hs.set_neuron\('L0', 'mlp', 0, 1e\+300\) makes .* NaN"):
        model.run(TEXT, edits)
    assert model.run(TEXT, [edit for edit in edits if "mlp" not in repr(edit)]).predictions(1)


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


@pytest.mark.parametrize("wrap", [lambda logits: logits, lambda logits: (logits, None), lambda logits: [logits]])
def test_edits_run_and_answer_on_modules_that_return_a_tensor_or_a_tuple(wrap) -> None:
    class Bare(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.named = FAMILIES["home_sdpa"].build()

        def forward(self, input_ids, attention_mask=None):
            return wrap(self.named(input_ids, attention_mask).logits)

    named = hs.Model(FAMILIES["home_sdpa"].build(), tiny_tokenizer())
    bare = hs.Model(Bare().eval(), tiny_tokenizer())
    edits = [hs.scale("L0H0", 0.5)]
    expected, trace = named.run(TEXT, edits, record="full"), bare.run(TEXT, edits, record="full")
    assert trace.predictions(3) == expected.predictions(3)
    assert trace.logits is not None and torch.equal(trace.logits, expected.logits)
    with pytest.raises(InterventionError, match=r"makes .* NaN"):
        bare.run(TEXT, [hs.scale("L0H0", 1e30), hs.scale("L1H0", 1e300)])


def test_hidden_states_without_a_name_are_not_taken_for_answers() -> None:
    model = hs.Model(FAMILIES["bert"].build().bert, tiny_tokenizer())
    model.module.config.return_dict = False
    trace = model.run(TEXT, [hs.silence("L0H0")], record="full")
    assert trace.logits is None and trace.answers is None
