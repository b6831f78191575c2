"""The session: edits, gradients, threads, cancelling."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.errors import (
    Cancelled,
    CaptureError,
    HeadscopeWarning,
    InputError,
    InterventionError,
    UnknownHeadError,
)
from headscope.interventions import edit
from headscope.models import Model
from headscope.models.capture.session import Session
from headscope.progress import Progress


def model_and_inputs(name):
    family = FAMILIES[name]
    model = Model(family.build())
    model.probe_if_new((), family.inputs())
    return model, family.inputs()


def logits(model, inputs, edits=(), **options):
    with model.session(edits, **options):
        out = model.module(**inputs)
    return (
        out.logits
        if hasattr(out, "logits")
        else next(output for output in out.values() if isinstance(output, torch.Tensor))
    )


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "t5", "deberta_v2", "bloom", "home_mixer"])
@pytest.mark.parametrize("stage", ["query", "key", "value", "scores", "pattern", "mixed"])
def test_the_identity_edit_changes_nothing_at_any_stage(name, stage):
    model, inputs = model_and_inputs(name)
    for layer in model.layout.layers[:2]:
        same = [edit(layer.site, stage, lambda x: x)]
        with model.session():
            expected = model.module(**inputs)
        with model.session(same):
            outputs = model.module(**inputs)
        for edited, two in zip(values(outputs), values(expected), strict=True):
            assert torch.allclose(edited, two, atol=2e-5)


def values(out):
    return [
        tensor for tensor in (out.values() if hasattr(out, "values") else [out]) if isinstance(tensor, torch.Tensor)
    ]


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "deberta_v2", "bloom", "falcon", "home_sdpa"])
@pytest.mark.parametrize("stage", ["query", "key", "value", "scores", "pattern", "mixed"])
def test_an_edit_is_felt_at_every_stage(name, stage):
    model, inputs = model_and_inputs(name)
    site = model.layout.layers[-1].site.head(2)
    with model.session():
        expected = values(model.module(**inputs))[0]
    with model.session([edit(site, stage, lambda x: x.flip(-1) * 2)]):
        edited_logits = values(model.module(**inputs))[0]
    assert (edited_logits - expected).abs().max() > 1e-4


@pytest.mark.parametrize("name", ["bert", "bart", "vit", "gpt2", "clip", "swin", "deberta_v2"])
def test_gate_gradients_equal_finite_differences(name):
    family = FAMILIES[name]
    model = Model(family.build().double())
    inputs = {key: tensor.double() if tensor.is_floating_point() else tensor for key, tensor in family.inputs().items()}
    model.probe_if_new((), inputs)
    layer = model.layout.layers[0]
    step = 1e-5

    def loss(gate):
        with model.session([hs.gate(layer.site, gate)], grad=True):
            out = model.module(**inputs)
        first_tensor = next(tensor for tensor in values(out) if tensor.is_floating_point())
        return (
            first_tensor
            * torch.linspace(-1, 1, first_tensor.numel(), dtype=first_tensor.dtype).reshape(first_tensor.shape)
        ).sum()

    gate = torch.ones(layer.n_heads, dtype=torch.float64, requires_grad=True)
    loss(gate).backward()
    for head in range(layer.n_heads):
        moved = torch.zeros(layer.n_heads, dtype=torch.float64)
        moved[head] = step
        slope = float((loss(gate.detach() + moved) - loss(gate.detach() - moved)).detach() / (2 * step))
        assert slope != 0
        assert float(gate.grad[head]) == pytest.approx(slope, rel=2e-5, abs=1e-7)


def test_gradients_do_not_leak_through_padding():
    family = FAMILIES["gpt2"]
    model = Model(family.build().double())
    inputs = family.padded()
    mask = inputs["attention_mask"].bool()
    gate = torch.ones(4, dtype=torch.float64, requires_grad=True)
    step = 1e-5

    def loss(factor):
        with model.session([hs.gate("L0", factor)], grad=True):
            return model.module(**inputs).logits[mask].square().sum()

    loss(gate).backward()
    for head in range(4):
        moved = torch.zeros(4, dtype=torch.float64)
        moved[head] = step
        slope = float((loss(gate.detach() + moved) - loss(gate.detach() - moved)).detach() / (2 * step))
        assert float(gate.grad[head]) == pytest.approx(slope, rel=1e-5)


def test_captured_tensors_carry_the_graph():
    model, inputs = model_and_inputs("bert")
    with model.session(grad=True) as session:
        out = model.module(**inputs).logits
    pattern = session.captured[model.layout.layers[0].site].pattern
    (slope,) = torch.autograd.grad(out.sum(), pattern)
    assert slope.shape == pattern.shape and slope.abs().max() > 0


def test_threads_with_different_edits_never_mix():
    """8 threads × 25 runs: each gets its own head's silence and nothing else."""
    model, inputs = model_and_inputs("gpt2")
    heads = model.heads[:8]
    expected = {head: logits(model, inputs, [hs.silence(head)]) for head in heads}
    assert len({float(tensor.sum()) for tensor in expected.values()}) == 8

    def runs(head):
        return all(torch.equal(logits(model, inputs, [hs.silence(head)]), expected[head]) for _ in range(25))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(runs, heads))


def test_threads_with_different_edits_never_mix_in_traced_models():
    model, inputs = model_and_inputs("bloom")
    heads = model.heads[:4]
    expected = {head: logits(model, inputs, [hs.silence(head)]) for head in heads}

    def runs(head):
        return all(torch.equal(logits(model, inputs, [hs.silence(head)]), expected[head]) for _ in range(10))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(runs, heads))


def test_a_cancelled_run_stops_at_its_next_attention_call():
    model, inputs = model_and_inputs("gpt2")
    calls = []
    session = model.session([edit("L0", "mixed", lambda x: calls.append(1) or session.cancel() or x)])
    with session, pytest.raises(Cancelled):
        model.module(**inputs)
    assert calls == [1]
    event = threading.Event()
    event.set()
    with pytest.raises(Cancelled):
        model.run(inputs={"input_ids": inputs["input_ids"]}, cancel=event)
    assert logits(model, inputs).isfinite().all()  # and nothing is left behind


@pytest.mark.parametrize("name", ["gpt2", "bloom", "longformer", "marian"])
def test_a_run_tells_how_many_attention_layers_are_done(name: str):
    model, inputs = model_and_inputs(name)
    progress_calls: list[Progress] = []
    model.run(inputs=inputs, progress=progress_calls.append)
    n_layers = len(model.layout.layers)
    assert progress_calls == [Progress("layers", done, n_layers) for done in range(1, n_layers + 1)]


def test_a_run_can_be_cancelled_while_its_target_is_written():
    model = hs.Model(FAMILIES["marian"].build(), tiny_tokenizer())
    passes = []
    model.module.register_forward_hook(lambda *_: passes.append(1))
    event = threading.Event()
    event.set()
    with pytest.raises(Cancelled):
        model.run("the cat sat", cancel=event)
    assert passes == []


def test_sessions_do_not_nest():
    model, _ = model_and_inputs("gpt2")
    with model.session(), pytest.raises(CaptureError, match="already open"), model.session():
        pass
    with model.session():
        pass


def test_an_error_inside_leaves_no_session_behind():
    model, inputs = model_and_inputs("bloom")
    with pytest.raises(ZeroDivisionError), model.session([edit("L0", "mixed", lambda x: 1 / 0)]):
        model.module(**inputs)
    assert torch.equal(logits(model, inputs), logits(model, inputs))


def test_an_unknown_attention_argument_is_refused_not_ignored():
    from headscope.models.capture import seam

    model, _ = model_and_inputs("gpt2")
    module = model.module.get_submodule(model.layout.layers[0].module)
    q = torch.randn(1, 4, 5, 8)
    with model.session(), pytest.raises(CaptureError, match="block_indices"):
        seam.attend(module, q, q, q, None, scaling=1.0, block_indices=torch.zeros(1))


@pytest.mark.parametrize(
    ("edits", "error", "error_text"),
    [
        ([hs.silence("L9H0")], UnknownHeadError, "L0H0 to L1H3"),
        ([hs.silence("encoder.L0H0")], UnknownHeadError, "there is no encoder.L0H0"),
        ([hs.set_neuron("L0H0", "query", 99, 0.0)], InterventionError, "8 coordinates"),
        ([hs.gate("L0", torch.ones(3))], InterventionError, "1 or 4"),
        ([hs.patch("L0H0", torch.zeros(5, 3))], InterventionError, "patch here is"),
        ([hs.set_neuron("L7", "mlp", 0, 0.0)], UnknownHeadError, "neurons"),
        ([hs.set_neuron("L0", "mlp", 9999, 0.0)], InterventionError, "128 neurons coordinates"),
        ([hs.set_neuron("L0", "residual", 9999, 0.0)], InterventionError, "32 residual coordinates"),
        (["silence"], InterventionError, "must be of type Intervention"),
    ],
)
def test_edits_are_checked_before_the_run(edits, error, error_text):
    model, inputs = model_and_inputs("gpt2")
    with pytest.raises(error, match=error_text):
        model.run(inputs={"input_ids": inputs["input_ids"]}, interventions=edits)


def test_bad_token_choices_are_refused_before_the_run():
    model, inputs = model_and_inputs("gpt2")
    with pytest.raises(InterventionError, match="no token 99"):
        model.run(inputs={"input_ids": inputs["input_ids"]}, interventions=[hs.silence("L0H0", tokens=[99])])
    with pytest.raises(InterventionError, match="made for 3 queries"):
        model.run(
            inputs={"input_ids": inputs["input_ids"]}, interventions=[hs.replace_pattern("L0H0", torch.ones(3, 3))]
        )


def test_edits_touch_only_the_tokens_they_name():
    model, inputs = model_and_inputs("gpt2")
    plain, edited = (
        model.run(inputs={"input_ids": inputs["input_ids"][:1]}, interventions=edits, record="full")
        for edits in ([], [hs.silence("L1H0", tokens=[4])])
    )
    same = (plain.logits - edited.logits).abs().amax(-1) == 0
    assert same.tolist() == [place != 4 for place in range(len(same))]


def test_a_blocked_key_gets_no_weight_and_rows_still_sum_to_one():
    model, inputs = model_and_inputs("bert")
    trace = model.run(inputs={"input_ids": inputs["input_ids"][:1]}, interventions=[hs.block("L0", [0, 1, 2], [5, 6])])
    for head in range(4):
        pattern = trace.pattern(f"L0H{head}")
        assert (pattern[:3, 5:7] == 0).all() and (pattern[3:, 5:7] > 0).all()
        assert abs(pattern.sum(-1) - 1).max() < 1e-5


def test_a_head_patched_from_another_run_does_what_it_did_there():
    model, inputs = model_and_inputs("gpt2")
    first, two = (model.run(inputs={"input_ids": inputs["input_ids"][row : row + 1]}) for row in (0, 1))
    patched = model.run(first.inputs, [hs.patch("L0H3", two)])
    assert (patched.mixed("L0H3") == two.mixed("L0H3")).all()
    assert (patched.mixed("L0H2") == first.mixed("L0H2")).all()


def test_one_head_of_a_group_is_edited_alone():
    model, inputs = model_and_inputs("llama")
    plain = model.run(inputs={"input_ids": inputs["input_ids"][:1]})
    edited = model.run(plain.inputs, [hs.set_neuron("L0H0", "key", 2, 9.0)])
    assert abs(edited.pattern("L0H0") - plain.pattern("L0H0")).max() > 1e-3
    assert abs(edited.pattern("L0H1") - plain.pattern("L0H1")).max() < 1e-6  # shares its keys, not the edit


def test_an_mlp_neuron_and_the_residual_stream_can_be_set():
    model, inputs = model_and_inputs("gpt2")
    trace = model.run(
        inputs={"input_ids": inputs["input_ids"][:1]}, interventions=[hs.set_neuron("L1", "mlp", 3, 7.5)], record="full"
    )
    assert (trace.neurons("L1")[:, 3] == 7.5).all()
    trace = model.run(
        inputs={"input_ids": inputs["input_ids"][:1]},
        interventions=[hs.set_neuron("L1", "residual", 3, 7.5, tokens=[2])],
        record="full",
    )
    assert trace.residual("L1")[2, 3] == 7.5 and trace.residual("L1")[1, 3] != 7.5


def test_tiles_take_the_same_edits():
    model, inputs = model_and_inputs("gpt2")
    edits = [
        hs.temperature("L0", 0.5),
        hs.block("L1H2", [4, 5], [0, 1]),
        hs.set_weight("L1H0", 6, 2, 0.9),
        hs.distance_bias("L0H1", -0.3),
    ]
    whole, tiled = (logits(model, inputs, edits, exact=exact, record="summary") for exact in (True, False))
    assert torch.allclose(whole, tiled, atol=1e-4)
    assert not torch.allclose(whole, logits(model, inputs), atol=1e-2)


def test_replaced_tokens_reach_the_model_however_the_input_is_given():
    model, inputs = model_and_inputs("gpt2")
    ids = inputs["input_ids"][:1]
    changed = ids.clone()
    changed[0, 2] = 7
    expected = model.run(inputs={"input_ids": changed}, record="full")
    trace = model.run(inputs={"input_ids": ids}, interventions=[hs.replace_token(2, 7)], record="full")
    assert torch.equal(trace.logits, expected.logits) and trace.tokens["main"][2].id == 7
    again = model.run(model.run(inputs={"input_ids": ids}).inputs, [hs.replace_token(2, 7)], record="full")
    assert torch.equal(again.logits, expected.logits)
    with pytest.raises(InterventionError, match=r"use model\.run"), model.session([hs.replace_token(2, 7)]):
        pass
    with pytest.raises(InterventionError, match="no stage 'tokens'"):
        edit("L0", "tokens", lambda x: x)


def test_edited_windows_are_recorded_as_they_were_used():
    family = FAMILIES["swin"]
    model, inputs = Model(family.build()), {name: tensor[:1] for name, tensor in family.inputs().items()}
    plain, edited = (model.run(inputs=inputs, interventions=edits) for edits in ([], [hs.temperature("L0H0", 0.2)]))
    assert abs(edited.pattern("L0H0") - plain.pattern("L0H0")).max() > 1e-3
    assert abs(edited.pattern("L0H0") @ edited.value("L0H0") - edited.mixed("L0H0")).max() < 1e-5
    assert abs(edited.summary("L0H0").max - edited.pattern("L0H0").max(-1)).max() < 1e-6
    with pytest.raises(InterventionError, match="windows"):
        model.run(inputs=inputs, interventions=[hs.silence("L0H0", tokens=[1])])


def test_an_mlp_that_runs_flat_is_read_and_edited_example_by_example():
    model, inputs = model_and_inputs("opt")
    both = model.run(inputs=inputs, interventions=[hs.set_neuron("L0", "mlp", 2, 5.0, tokens=[1])], record="full")
    for row, trace in enumerate(both):
        example = {name: value[row : row + 1] for name, value in inputs.items()}
        alone = model.run(inputs=example, interventions=[hs.set_neuron("L0", "mlp", 2, 5.0, tokens=[1])], record="full")
        assert trace.neurons("L0").shape == alone.neurons("L0").shape
        assert abs(trace.neurons("L0") - alone.neurons("L0")).max() < 1e-5
        assert torch.allclose(trace.logits, alone.logits, atol=1e-4)


def test_a_long_edited_run_keeps_its_patterns_and_a_trace_cannot_be_changed():
    from headscope.models.capture import session

    model, inputs = model_and_inputs("gpt2")
    limit, session.EXACT_CELLS = session.EXACT_CELLS, 10
    try:
        trace = model.run(inputs={"input_ids": inputs["input_ids"][:1]}, interventions=[hs.temperature("L0H1", 0.5)])
    finally:
        session.EXACT_CELLS = limit
    assert trace.record == "heads"
    before = trace.pattern("L0H1").copy()
    for view in (trace.query("L0H1"), trace.pattern("L0H1"), trace.summary("L0H1").entropy):
        view[:] = 0
    assert (trace.pattern("L0H1") == before).all() and trace.query("L0H1").any() and trace.summary("L0H1").entropy.any()


def test_training_mode_is_warned_of():
    model, inputs = model_and_inputs("gpt2")
    model.module.train()
    with pytest.warns(HeadscopeWarning, match="training mode"):
        model.run(inputs={"input_ids": inputs["input_ids"][:1]})


@pytest.mark.parametrize(
    ("source", "options"), [("hello", {}), (["hello", "you"], {}), (None, {"image": "a.png"}), (None, {"pair": "you"})]
)
def test_ready_inputs_beside_something_to_read_are_refused(source, options):
    model, inputs = model_and_inputs("gpt2")
    name = next(iter(options), "source")
    for call in (model.run, model.read):
        with pytest.raises(InputError, match=rf"`inputs=` holds .*\(input_ids\), and `{name}` .* not both"):
            call(source, inputs={"input_ids": inputs["input_ids"]}, **options)


def test_ready_inputs_are_named_tensors_and_nothing_else():
    model, inputs = model_and_inputs("gpt2")
    ids = inputs["input_ids"]
    trace = model.run(inputs={"input_ids": ids[:1]})
    with pytest.raises(InputError, match=r"by name, as .*not Tensor"):
        model.run(inputs=ids)
    with pytest.raises(InputError, match="given as the source"):
        model.run(inputs=trace.inputs)
    for source in ({"input_ids": ids}, [{"input_ids": ids}]):
        with pytest.raises(InputError, match=r"model\.run\(inputs="):
            model.run(source)


def test_one_row_of_ready_inputs_gives_a_trace_and_several_give_a_list():
    model, inputs = model_and_inputs("gpt2")
    ids = inputs["input_ids"]
    assert isinstance(model.run(inputs={"input_ids": ids[0]}), hs.Trace)
    assert isinstance(model.run(inputs={"input_ids": ids[:1]}), hs.Trace)
    assert len(model.run(inputs={"input_ids": ids})) == len(model.read(inputs={"input_ids": ids})) == len(ids) > 1
    assert model.run([model.read(inputs={"input_ids": ids[0]})])[0].inputs.kind == "ready"


@pytest.mark.parametrize("name", ["gemma2", "t5"])
def test_a_lens_that_would_be_wrong_is_not_offered(name):
    model, _ = model_and_inputs(name)
    assert not model.layout.lens and model.layout.no_lens


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "opt", "bart"])
def test_the_last_reading_of_the_lens_is_the_prediction(name):
    model, inputs = model_and_inputs(name)
    trace = model.run(inputs={key: tensor[:1] for key, tensor in inputs.items()}, record="full")
    logprobs = trace.logits.float().log_softmax(-1)
    for place, reading in enumerate(model.lens(trace, 1)[-1]):
        assert reading[0].logprob == pytest.approx(float(logprobs[place].max()), abs=1e-4)


def test_gradient_checkpointing_is_refused():
    model, _ = model_and_inputs("gpt2")
    model.module.train()
    model.module.gradient_checkpointing_enable()
    with pytest.raises(CaptureError, match="checkpointing"), model.session(grad=True):
        pass


def test_each_pass_of_a_session_has_its_own_padding():
    family = FAMILIES["bert"]
    model, inputs = Model(family.build()), family.padded()
    with model.session(record="heads") as session:
        model.module(**inputs)
        padded = [record.n_keys for record in session.captured[model.layout.layers[0].site].records]
        model.module(input_ids=inputs["input_ids"])
        whole = [record.n_keys for record in session.captured[model.layout.layers[0].site].records]
    assert padded == [11, 8] and whole == [11, 11]


@pytest.mark.parametrize("name", ["gpt2", "swin", "home_mixer"])
def test_a_session_is_gone_as_soon_as_nobody_has_it(name):
    """Without waiting for the garbage collector: until that comes, a training would fill the memory with graphs."""
    model, inputs = model_and_inputs(name)
    gc.collect()
    gc.disable()
    try:
        with model.session(record="rows" if name != "gpt2" else None, grad=name == "gpt2") as session:
            model.module(**inputs)
        remembered = [weakref.ref(session), *map(weakref.ref, session.captured.values())]
        assert len(remembered) > 1
        del session
        assert [reference() for reference in remembered] == [None] * len(remembered)
    finally:
        gc.enable()


def test_training_keeps_no_maps_of_layers_that_are_done():
    model, inputs = model_and_inputs("gpt2")
    with Session(model, grad=True, lets_go=True) as session:
        output = model.module(**inputs)
    assert all(captured.pattern is None and captured.scores is None for captured in session.captured.values())
    output.logits.sum().backward()
    assert model.module.transformer.wte.weight.grad is not None
