"""Generation with edits is the teacher-forced run of what it wrote."""

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.errors import InputError, InterventionError
from headscope.models import Model
from headscope.progress import Progress

CAUSAL = ["gpt2", "llama", "mistral", "gemma2", "gpt_oss", "gpt_neox", "bloom", "falcon_alibi", "opt"]


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("edited", [False, True], ids=["plain", "edited"])
def test_generated_text_is_what_teacher_forcing_predicts(name, edited):
    model = Model(FAMILIES[name].build(), tiny_tokenizer())
    edits = (
        [hs.silence("L0H1"), hs.set_neuron("L1H0", "query", 2, 1.5, tokens=[-1]), hs.temperature("L1H2", 0.7)]
        if edited
        else []
    )
    written = model.generate("the cat sat on", max_new_tokens=8, interventions=edits)
    trace = written.trace
    n_prompt = trace.steps.count(None)
    assert [step for step in trace.steps if step is not None] == list(range(len(trace.steps) - n_prompt))
    ids = trace.inputs.model_inputs["input_ids"]
    pinned = (
        [hs.silence("L0H1"), hs.set_neuron("L1H0", "query", 2, 1.5, tokens=[n_prompt - 1]), hs.temperature("L1H2", 0.7)]
        if edited
        else []
    )
    with model.session(pinned):
        forced = model.module(input_ids=ids[None]).logits[0].argmax(-1)
    assert forced[n_prompt - 1 : -1].tolist() == ids[n_prompt:].tolist()
    again = model.run(trace.inputs, pinned)
    for head in trace.heads:
        assert np.allclose(again.pattern(head), trace.pattern(head), atol=1e-6)


@pytest.mark.parametrize("name", ["t5", "bart", "marian"])
def test_a_translation_is_traced_as_it_was_written(name):
    model = Model(FAMILIES[name].build(), tiny_tokenizer())
    written = model.generate("the cat sat on the mat", max_new_tokens=6, interventions=[hs.silence("cross.L0H1")])
    trace = written.trace
    assert trace.pattern("cross.L1H0").shape == (len(trace.tokens["decoder"]), len(trace.tokens["encoder"]))
    with model.session([hs.silence("cross.L0H1")]):
        out = model.module(**{name: tensor[None] for name, tensor in trace.inputs.model_inputs.items()})
    ids = trace.inputs.model_inputs["decoder_input_ids"]
    assert out.logits[0].argmax(-1)[: len(ids) - 1].tolist() == ids[1:].tolist()
    assert trace.steps == (None, *range(len(ids) - 1))
    # The last token that was written is in the text, though nothing follows it in the trace (BART forces </s> there).
    last = [] if name in ("bart", "marian") else [int(out.logits[0, -1].argmax())]
    assert written.text == model.tokenizer.decode([*ids[1:].tolist(), *last], skip_special_tokens=True).strip()
    with pytest.raises(InputError, match="the source alone"):
        model.generate(trace.inputs)


def test_edits_change_what_is_written():
    model = Model(FAMILIES["gpt2"].build(), tiny_tokenizer())
    plain = model.generate("the cat", max_new_tokens=8)
    edited = model.generate("the cat", max_new_tokens=8, interventions=[hs.silence("L0"), hs.silence("L1")])
    assert plain.text != edited.text


def test_sampling_repeats_with_its_seed_and_leaves_the_global_one_alone():
    model = Model(FAMILIES["gpt2"].build(), tiny_tokenizer())
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, two = (model.generate("the cat", max_new_tokens=8, do_sample=True, seed=3).text for _ in range(2))
    assert first == two and torch.rand(1) == expected


def test_what_cannot_generate_says_so():
    with pytest.raises(InputError, match="cannot generate"):
        Model(FAMILIES["electra"].build(), tiny_tokenizer()).generate("the cat")
    model = Model(FAMILIES["gpt2"].build(), tiny_tokenizer())
    with pytest.raises(InterventionError, match="fixed mean"):
        model.generate("the cat", interventions=[hs.mean_ablate("L0H0")])
    for number in (0, 10**9):
        with pytest.raises(InputError, match="whole number from 1 to 100,000"):
            model.generate("the cat", max_new_tokens=number)


def test_a_text_ends_where_the_positions_of_the_model_end():
    model = Model(FAMILIES["gpt2"].build(), tiny_tokenizer())
    n_positions = model.config.n_positions
    trace = model.generate("the cat", max_new_tokens=2 * n_positions).trace
    assert len(trace.tokens["main"]) <= n_positions
    full = model.read("the " * (n_positions - 1))
    assert len(full.tokens["main"]) == n_positions
    with pytest.raises(InputError, match=f"fills all {n_positions} positions"):
        model.generate(full, max_new_tokens=1)


def test_every_step_has_its_candidates():
    model = Model(FAMILIES["gpt2"].build(), tiny_tokenizer())
    progress_calls: list[Progress] = []
    trace = model.generate("the cat sat on", max_new_tokens=5, progress=progress_calls.append).trace
    n_prompt = trace.steps.count(None)
    assert progress_calls == [Progress("tokens", step, 5) for step in range(5)]
    assert trace.answers.positions == tuple(range(n_prompt - 1, n_prompt + 5))
    forced = model.run(trace.inputs, record="full").logits.float().log_softmax(-1)
    ids = [token.id for token in trace.tokens["main"]]
    for place, position in enumerate(trace.answers.positions):
        best = trace.predictions(1, answer=place)[0]
        assert best.logprob == pytest.approx(float(forced[position].max()), abs=1e-4)
        if position + 1 < len(ids):
            assert best.id == ids[position + 1]  # greedy: it wrote the first


def test_a_target_that_was_written_has_steps_and_a_given_one_has_none():
    model = hs.load("builtin:translate")
    written = model.run("The cat sat.")
    assert written.steps == (None, *range(len(written.tokens["decoder"]) - 1))
    assert model.run("The cat sat.", target="Кот сидел.").steps is None


def test_a_model_that_cannot_write_says_so():
    assert Model(FAMILIES["gpt2"].build(), tiny_tokenizer()).can_write
    assert not Model(FAMILIES["bert"].build(), tiny_tokenizer()).can_write
