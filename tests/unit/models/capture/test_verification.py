"""Verification: what it compares, what it says of a wrong capture, and that it leaves a model as it was."""

import random

import numpy as np
import pytest
import torch
import transformers as hf
from tiny_models import FAMILIES, tiny
from torch import Tensor, nn

import headscope as hs
from headscope.models import Model
from headscope.models.capture import seam, verification
from headscope.models.capture.session import Session
from headscope.models.capture.verification import (
    Verification,
    verify_at_load,
    verify_decoding,
    verify_whole,
)
from headscope.models.capture.verification_inputs import load_inputs, whole_inputs
from headscope.models.capture.verification_runs import is_pattern, own_attention


def model_of(name: str) -> Model:
    return Model(FAMILIES[name].build())


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5", "vit", "gemma2", "falcon", "modernbert"])
def test_a_model_equals_itself(name: str) -> None:
    result = verify_whole(model_of(name))
    assert result.is_equal
    assert result.difference == 0
    assert result.line == "verified, max difference 0.0"
    assert result.n_patterns > 0
    assert result.reference == "eager"


def test_texts_are_compared_as_a_padded_batch_of_two_lengths_and_in_cached_steps() -> None:
    (padded, *_) = load_inputs(FAMILIES["gpt2"].build())
    assert padded.inputs["attention_mask"].sum(1).tolist() == [12, 7]
    assert padded.inputs["attention_mask"][1, :5].tolist() == [0] * 5  # a decoder is padded on the left
    (padded, *_) = load_inputs(FAMILIES["bert"].build())
    assert padded.inputs["attention_mask"][1, 7:].tolist() == [0] * 5
    names = [case.name for case in whole_inputs(FAMILIES["gpt2"].build())]
    assert names == ["a padded batch of 12 and 7 tokens", "one input", "2 cached decoding steps"]


def test_the_batch_is_longer_than_a_short_window() -> None:
    config = hf.MistralConfig(
        vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=20,
    )  # fmt: skip
    (padded, *_) = load_inputs(hf.MistralForCausalLM(config))
    assert padded.inputs["input_ids"].shape == (2, 24)


def wrong_in_layer(module: nn.Module, wrong: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the session add one half to what one module's attention gives."""
    attend = Session.attend

    def add_half(self: Session, call: seam.AttentionCall) -> tuple[Tensor, Tensor | None]:
        out, pattern = attend(self, call)
        return (out + 0.5 if call.module is wrong else out), pattern

    monkeypatch.setattr(Session, "attend", add_half)


def test_a_wrong_output_names_the_first_layer_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("llama")
    wrong_in_layer(model.module, model.module.get_submodule("model.layers.1.self_attn"), monkeypatch)
    result = verify_at_load(model)
    assert result.is_equal is False
    assert "layer L1 (model.layers.1.self_attn) differs from the model's own run by" in result.first_difference
    assert result.line.startswith("NOT VERIFIED: ")


@pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")
def test_a_wrong_capture_is_said_in_coverage_traces_and_saved_files(monkeypatch, tmp_path) -> None:
    module = FAMILIES["llama"].build()
    wrong_in_layer(module, module.get_submodule("model.layers.0.self_attn"), monkeypatch)
    model = Model(module, name="a llama")
    assert model.verified is False
    assert "NOT VERIFIED: layer L0 (model.layers.0.self_attn)" in model.coverage
    trace = model.run(inputs={"input_ids": torch.arange(7)[None] + 20})
    trace.save(tmp_path / "trace")
    for warnings in (model.warnings, trace.warnings, hs.load_trace(tmp_path / "trace").warnings):
        assert any("Headscope does not read a llama correctly: layer L0" in warning for warning in warnings)


def test_verification_can_be_left_out_and_asked_for(monkeypatch) -> None:
    monkeypatch.setattr(verification, "MOST_PARAMETERS", 100)
    module = FAMILIES["bert"].build()
    assert Model(module).verified is None
    assert Model(module, verify=True).verified
    monkeypatch.undo()
    assert Model(module).verified
    model = Model(module, verify=False)
    assert model.verified is None
    assert model.coverage.endswith("not verified (verify=False)")
    assert model.verify().is_equal
    assert model.verified


def test_a_module_without_a_config_is_verified_at_its_first_run() -> None:
    module = FAMILIES["home_mixer"].build()
    model = Model(module)
    assert model.verified is None
    model.run(inputs=FAMILIES["home_mixer"].inputs())
    assert model.verified
    assert model.verification.compared == ("its first input",)
    assert model.verification.reference == "its own code"


def test_decoding_is_verified_before_the_model_first_writes() -> None:
    model = hs.load("builtin:gpt")
    assert "2 cached decoding steps" not in model.verification.compared
    model.generate("The doctor", max_new_tokens=1)
    assert "2 cached decoding steps" in model.verification.compared


def test_a_wrong_pattern_is_found_though_the_output_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("bert")
    attend_whole = Session._attend_whole

    def transposed(self: Session, captured, at) -> None:
        attend_whole(self, captured, at)
        if captured.layer.site.layer == 1:
            mixed = captured.pattern @ captured.value
            captured.pattern = captured.pattern.flip(-1)
            captured.value = torch.linalg.pinv(captured.pattern) @ mixed  # so that nothing else changes

    monkeypatch.setattr(Session, "_attend_whole", transposed)
    result = verify_at_load(model)
    assert result.is_equal is False
    assert "L1" in result.first_difference


def test_an_observed_run_that_raises_is_no_raw_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("bert")

    def broken(self: Session, call: seam.AttentionCall) -> None:
        raise AttributeError("'Mask' object has no attribute 'all'")

    monkeypatch.setattr(Session, "attend", broken)
    result = verify_at_load(model)
    assert result.is_equal is False
    assert "raised AttributeError: 'Mask' object has no attribute 'all'" in result.first_difference


def test_nothing_of_the_model_or_the_random_states_is_changed() -> None:
    module = FAMILIES["gpt2"].build().train()
    module.transformer.h[0].eval()
    model = Model(module)
    modes = [part.training for part in module.modules()]
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    verify_whole(model)
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()
    assert before[2] == random.getstate()
    assert modes == [part.training for part in module.modules()]
    assert module.config._attn_implementation == seam.NAME
    assert all(parameter.grad is None for parameter in module.parameters())


class Random(nn.Module):
    """A module whose output no seed repeats."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return self.attention(x, x, x)[0] + self.count


def test_a_model_that_differs_from_run_to_run_is_not_called_wrong() -> None:
    model = Model(Random().eval())
    x = torch.randn(1, 5, 8)
    model.probe(inputs={"x": x})
    result = verify_whole(model, {"x": x})
    assert result.is_equal is None
    assert result.line == "not verified (its own run gives other numbers each time: it cannot be compared)"


def test_a_large_model_is_verified_on_request_only(monkeypatch) -> None:
    monkeypatch.setattr(verification, "MOST_PARAMETERS", 100)
    result = verify_at_load(model_of("bert"))
    assert result.is_equal is None
    assert "above 1 billion it is done on request: model.verify()" in result.line


def splinter() -> nn.Module:
    config = hf.SplinterConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    )
    return tiny(hf.SplinterModel, config)


def test_splinter_follows_its_eager_attention_which_sees_everything() -> None:
    module = splinter()
    ids = torch.arange(7)[None] + 20
    with torch.no_grad():
        expected = module(input_ids=ids, output_attentions=True).attentions
    trace = Model(module).run(inputs={"input_ids": ids})
    for layer, pattern in enumerate(expected):
        for head in range(4):
            assert torch.equal(torch.as_tensor(trace.pattern(f"L{layer}H{head}")), pattern[0, head])
    assert not any(record.is_causal for record in trace.layers.values())


def test_disagreement_of_a_models_own_sdpa_and_eager_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf.SplinterModel, "_supports_sdpa", True)  # it lacks the flag `is_causal` that SDPA reads
    with pytest.warns(UserWarning, match=r"attention.self and its kind see everything .* SDPA: what is shown follows"):
        model = Model(splinter())
    with pytest.warns(UserWarning, match=r"its own eager attention by .*: what is shown follows eager"):
        result = model.verify()
    assert result.is_equal
    assert result.disagreement


def test_where_only_the_models_own_sdpa_agrees_that_is_said_and_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = FAMILIES["gpt2"].build()
    attend = verification.run_plainly

    def eager_is_broken(model, case, implementation="eager", **options):
        run = attend(model, case, implementation, **options)
        if run.reference == "eager":
            run.outputs["logits"] = run.outputs["logits"] + 1.0
            run.module_outputs = [(name, tensor + 1.0) for name, tensor in run.module_outputs]
        return run

    monkeypatch.setattr(verification, "run_plainly", eager_is_broken)
    with pytest.warns(UserWarning, match=r"from its own eager attention by 1 on .*: what is shown follows sdpa"):
        model = Model(module)
    assert model.verified
    assert model.verification.reference == "sdpa"


def test_decoding_steps_are_compared_where_a_model_writes() -> None:
    assert verify_decoding(model_of("gpt2")).compared == ("2 cached decoding steps",)
    assert verify_decoding(model_of("t5")).compared == ("2 cached decoding steps",)
    assert verify_decoding(model_of("bert")).is_equal is None


def test_two_comparisons_are_equal_only_if_both_are() -> None:
    equal, different = Verification(True, 0.0, compared=("a",)), Verification(False, 0.5, first_difference="L0")
    nothing = Verification(notes=("why",))
    assert equal.joined(different).is_equal is False
    assert equal.joined(different).difference == 0.5
    assert equal.joined(nothing).is_equal
    assert equal.joined(nothing).notes == ("why",)
    assert nothing.joined(different).first_difference == "L0"


def test_what_a_pattern_looks_like() -> None:
    pattern = torch.full((1, 2, 3, 3), 1 / 3)
    assert is_pattern(pattern, 2)
    assert not is_pattern(pattern, 4)
    assert not is_pattern(pattern - 1, 2)
    assert not is_pattern(pattern * 3, 2)
    assert not is_pattern(torch.where(torch.eye(3, dtype=torch.bool), torch.nan, pattern), 2)


@pytest.mark.parametrize("name", ["clip", "llava", "t5"])
def test_every_part_gets_its_attention_function_back(name: str) -> None:
    model = model_of(name)
    parts = [part for part in model.module.modules() if isinstance(part, hf.PreTrainedModel)]
    before = [part.config._attn_implementation for part in parts]
    assert seam.NAME in before
    with pytest.raises(RuntimeError, match="stopped"), own_attention(model, "eager") as used:
        assert used == "eager"
        assert {part.config._attn_implementation for part in parts} == {"eager"}
        raise RuntimeError("stopped")
    assert [part.config._attn_implementation for part in parts] == before


def test_equal_numbers_do_not_differ_and_a_nan_is_seen_beside_infinities() -> None:
    numbers = torch.tensor([[1.0, torch.inf, -torch.inf, torch.nan]])
    assert verification._difference(numbers, numbers.clone()) == 0
    assert verification._difference(numbers, torch.zeros(1, 4)) == float("inf")
    assert verification._difference(numbers[:, :1], numbers[:, :1] + 0.5) == 0.5
    assert verification._difference(numbers[:, :1], numbers[:, :1].double()) == 0
    assert verification._has_nan(numbers)
    assert not verification._has_nan(numbers[:, :3])
    assert not verification._has_nan(torch.full((4,), 6e4, dtype=torch.float16))  # its sum is infinite


def test_at_load_a_model_runs_without_a_cache_as_a_pass_runs_it() -> None:
    assert [case.inputs["use_cache"] for case in load_inputs(FAMILIES["gpt2"].build())] == [False, False]
    assert all("use_cache" not in case.inputs for case in load_inputs(FAMILIES["vit"].build()))
    assert all("use_cache" not in case.inputs for case in whole_inputs(FAMILIES["gpt2"].build()))
