"""Which experts each token takes: against the model's own router logits, its padding, and by hand."""

import pytest
import torch
import transformers as hf
from families import enliven
from small_configs import small_config

import headscope as hs
from headscope.errors import NotRecordedError
from headscope.models import Model
from headscope.models.capture.expert_routing import choices_of, is_routing, routing_of
from headscope.traces import Trace

FAMILIES = {
    "mixtral": "MixtralForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "olmoe": "OlmoeForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "glm4_moe": "Glm4MoeForCausalLM",
    "granitemoe": "GraniteMoeForCausalLM",
}
IDS = torch.tensor([[5, 17, 42, 7, 99, 31, 64, 23, 11]])


def tiny(model_type: str) -> torch.nn.Module:
    torch.manual_seed(0)
    config = small_config(model_type)
    if hasattr(config, "first_k_dense_replace"):
        config.first_k_dense_replace = 1
    module = getattr(hf, FAMILIES[model_type])(config)
    enliven(module)
    module.set_attn_implementation("eager")
    return module.eval()


def run(module: torch.nn.Module, **options) -> Trace:
    trace = Model(module).run(inputs={"input_ids": IDS}, **options)
    assert isinstance(trace, Trace)
    return trace


@pytest.mark.parametrize("model_type", FAMILIES)
def test_choices_are_those_of_the_models_own_router(model_type):
    module = tiny(model_type)
    routers = [part for name, part in module.named_modules() if name.endswith((".gate", ".router"))]
    own = []
    hooks = [
        router.register_forward_hook(lambda module, args, output: own.append([part.clone() for part in output]))
        for router in routers
    ]
    with torch.no_grad():
        plain = module(IDS, output_router_logits=True, use_cache=False)
    for hook in hooks:
        hook.remove()
    trace = run(module, record="full")
    assert len(trace.expert_choices) == len(own) > 0
    for (site, _), (logits, weights, ids) in zip(trace.expert_choices.items(), own, strict=True):
        choices = trace.experts(site)
        assert choices.logits is not None and torch.equal(choices.logits, logits)
        assert torch.equal(choices.ids.long().sort(1).values, ids.sort(1).values)
        dense = torch.zeros_like(logits, dtype=torch.float32)
        assert torch.equal(
            dense.scatter(1, choices.ids.long(), choices.weights), dense.scatter(1, ids, weights.float())
        )
        assert (choices.weights.diff(dim=1) <= 0).all()
    if plain.get("router_logits"):
        for (site, choices), logits in zip(trace.expert_choices.items(), plain.router_logits, strict=True):
            assert choices.logits is not None, site
            assert torch.equal(choices.logits, logits.view_as(choices.logits)), site


def test_weights_of_mixtral_follow_from_its_router_logits():
    module = tiny("mixtral")
    with torch.no_grad():
        logits = module(IDS, output_router_logits=True, use_cache=False).router_logits
    trace = run(module)
    for layer, layer_logits in enumerate(logits):
        weights, ids = layer_logits.softmax(-1).topk(2)
        choices = trace.experts(f"L{layer}")
        assert torch.equal(choices.ids.long(), ids)
        assert choices.weights == pytest.approx(weights / weights.sum(1, keepdim=True), abs=1e-6)
        assert choices.logits is None


def test_padding_takes_no_expert_and_each_example_has_its_own():
    model = Model(tiny("mixtral"))
    padded = torch.tensor([IDS[0].tolist(), [0, 0, 0, *IDS[0, :6].tolist()]])
    mask = torch.tensor([[1] * 9, [0] * 3 + [1] * 6])
    traces = model.run(inputs={"input_ids": padded, "attention_mask": mask})
    assert isinstance(traces, list)
    first, second = traces
    alone = model.run(inputs={"input_ids": IDS[:, :6]})
    assert isinstance(alone, Trace)
    assert len(first.experts("L0").ids) == 9 and len(second.experts("L0").ids) == 6
    for layer in ("L0", "L1"):
        assert torch.equal(second.experts(layer).ids, alone.experts(layer).ids)
        assert second.experts(layer).weights == pytest.approx(alone.experts(layer).weights, abs=1e-5)


def test_a_layer_without_experts_beside_one_with_them():
    trace = run(tiny("deepseek_v3"))
    assert [str(site) for site in trace.expert_choices] == ["L1"]
    with pytest.raises(NotRecordedError, match=r"no choice of experts was seen in L0.*are L1"):
        trace.experts("L0")


def test_choices_are_saved_with_the_trace(tmp_path):
    trace = run(tiny("qwen3_moe"), record="full")
    again = hs.load_trace(trace.save(tmp_path / "trace"))
    assert list(again.expert_choices) == list(trace.expert_choices)
    for site, choices in trace.expert_choices.items():
        loaded = again.experts(site)
        assert loaded.n_experts == choices.n_experts == 4
        assert torch.equal(loaded.ids, choices.ids) and torch.equal(loaded.weights, choices.weights)
        assert loaded.logits is not None and choices.logits is not None
        assert torch.equal(loaded.logits, choices.logits)


def test_a_layer_without_experts_says_so():
    trace = hs.load("builtin:gpt").run("The doctor asked the nurse.")
    with pytest.raises(NotRecordedError, match=r"no choice of experts was seen in L1.*are none"):
        trace.experts("L1")


def test_routing_by_hand():
    logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 1.0]])
    ids, weights = torch.tensor([[2, 1], [0, 2]]), torch.tensor([[0.25, 0.75], [0.9, 0.1]])
    routing = routing_of((logits, weights, ids))
    assert routing is not None and is_routing(routing, 2) and not is_routing(routing, 3)
    choices = choices_of(routing, with_logits=False)
    assert choices.ids.tolist() == [[1, 2], [0, 2]]
    assert choices.weights.tolist() == [[0.75, 0.25], pytest.approx([0.9, 0.1])]
    assert choices.share_of_tokens().tolist() == [0.5, 0.5, 1.0]


@pytest.mark.parametrize(
    "output",
    [
        torch.ones(2, 3),
        (torch.ones(2, 3), torch.ones(2, 2)),
        (torch.ones(2, 3), torch.ones(2, 2), torch.ones(2, 2)),
        (torch.ones(2, 3), torch.ones(2, 2), torch.ones(1, 2, dtype=torch.long)),
        (torch.ones(2, 3), torch.ones(2, 5), torch.ones(2, 2, dtype=torch.long)),
        (torch.ones(2, 3), torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bool)),
    ],
)
def test_what_is_no_routing(output):
    assert routing_of(output) is None


def test_two_times_the_same_expert_is_no_choice():
    routing = routing_of((torch.ones(2, 3), torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.long)))
    assert routing is not None and not is_routing(routing, 2)
