"""Relevance: what comes out for a layer worked out by hand, conservation, targets, and what is refused."""

import math
import threading
from functools import cache

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, VOCABULARY, tiny_bert_tokenizer, tokens
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

import headscope as hs
from headscope.analysis.attribution.lrp_rules import Rules
from headscope.analysis.attribution.relevance import relevance, relevance_scores
from headscope.errors import Cancelled, CaptureError, InputError, NotRecordedError
from headscope.models import Model
from headscope.progress import Progress


@cache
def model_and_inputs(name: str, *, biases: bool = True) -> tuple[Model, dict[str, Tensor]]:
    family = FAMILIES[name]
    module = family.build()
    if not biases:
        with torch.no_grad():
            for path, parameter in module.named_parameters():
                if path.endswith("bias") and "relative" not in path:
                    parameter.zero_()
    inputs = {key: tensor[:1] for key, tensor in family.inputs().items()}
    model = Model(module)
    model.probe_if_new((), inputs)
    return model, inputs


def explain(model: Model, inputs: dict[str, Tensor], **options):
    """The relevance of ready inputs."""
    return relevance(model, model.read(inputs=inputs), **options)


def where(name: str) -> int | None:
    """A masked model has no answer of its own where nothing is masked."""
    return 4 if name in ("bert", "deberta_v2") else None


# A layer by hand: every rule as a formula for relevance, with no gradient anywhere


def linear_rule(x: Tensor, weight: Tensor, out: Tensor, relevance_out: Tensor) -> Tensor:
    """R_i = x_i Σ_j W_ij R_j / z_j, biases being part of z."""
    return x * ((relevance_out / out) @ weight.T)


def norm_rule(x: Tensor, norm: nn.LayerNorm, out: Tensor, relevance_out: Tensor) -> Tensor:
    """A linear rule whose matrix subtracts the mean and multiplies by weight/σ, σ being held fixed."""
    n = x.shape[-1]
    relevance_in = torch.zeros_like(x)
    for row in range(len(x)):
        sigma = (x[row].var(unbiased=False) + norm.eps).sqrt()
        matrix = (torch.eye(n).double() - 1 / n) @ torch.diag(norm.weight / sigma)
        relevance_in[row] = linear_rule(x[row][None], matrix, out[row][None], relevance_out[row][None])[0]
    return relevance_in


def by_hand(module: GPT2LMHeadModel, ids: Tensor, target: int, rule: str) -> dict[str, Tensor]:
    block, n_heads = module.transformer.h[0], 2
    n, width = len(ids), module.config.n_embd
    dim = width // n_heads
    attention, mlp = block.attn, block.mlp

    def by_head(x):
        return x.reshape(n, n_heads, dim).transpose(0, 1)

    x = module.transformer.wte.weight[ids] + module.transformer.wpe.weight[:n]
    a = block.ln_1(x)
    qkv = a @ attention.c_attn.weight + attention.c_attn.bias
    q, k, v = (by_head(part) for part in qkv.split(width, dim=-1))
    seen = torch.ones(n, n).tril().bool()
    scores = q @ k.transpose(1, 2) / math.sqrt(dim)
    pattern = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    mixed = pattern @ v
    joined = mixed.transpose(0, 1).reshape(n, width)
    attended = joined @ attention.c_proj.weight + attention.c_proj.bias
    x1 = x + attended
    b = block.ln_2(x1)
    hidden = b @ mlp.c_fc.weight + mlp.c_fc.bias
    inner = math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)
    active = 0.5 * hidden * (1 + torch.tanh(inner))
    written = active @ mlp.c_proj.weight + mlp.c_proj.bias
    x2 = x1 + written
    y = module.transformer.ln_f(x2)
    unembedding = module.lm_head.weight[target]

    r_y = torch.zeros_like(y)
    r_y[-1] = y[-1] * unembedding
    r_x2 = norm_rule(x2, module.transformer.ln_f, y, r_y)
    r_x1, r_written = x1 * r_x2 / x2, written * r_x2 / x2
    r_active = linear_rule(active, mlp.c_proj.weight, written, r_written)
    r_hidden = r_active  # the identity rule
    r_b = linear_rule(b, mlp.c_fc.weight, hidden, r_hidden)
    r_x1 = r_x1 + norm_rule(x1, block.ln_2, b, r_b)
    r_x, r_attended = x * r_x1 / x1, attended * r_x1 / x1
    r_mixed = by_head(linear_rule(joined, attention.c_proj.weight, attended, r_attended))
    share = r_mixed / mixed  # [head, query, dim]
    r_value = torch.einsum("hqk,hkd,hqd->hkd", pattern, v, share)
    r_query, r_key = torch.zeros_like(q), torch.zeros_like(k)
    if rule == "attn":
        r_value = r_value / 2  # of a product, half to each factor
        r_pattern = torch.einsum("hqk,hkd,hqd->hqk", pattern, v, share) / 2
        r_scores = scores * (r_pattern - pattern * r_pattern.sum(-1, keepdim=True)) * seen
        r_terms = torch.einsum("hqd,hkd,hqk->hqkd", q, k, r_scores / scores) / math.sqrt(dim)
        r_query, r_key = r_terms.sum(2) / 2, r_terms.sum(1) / 2
    r_qkv = torch.cat([part.transpose(0, 1).reshape(n, width) for part in (r_query, r_key, r_value)], dim=-1)
    r_a = linear_rule(a, attention.c_attn.weight, qkv, r_qkv)
    r_x = r_x + norm_rule(x, block.ln_1, a, r_a)
    return {
        "logit": y[-1] @ unembedding,
        "heads": r_mixed.sum((1, 2)),
        "tokens": r_x.sum(-1),
        "neurons": r_active.sum(0),
        "value": r_value.sum(1),
        "query": r_query.sum(1),
    }


@pytest.fixture(scope="module")
def one_layer():
    torch.manual_seed(3)
    module = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=8, n_embd=6, n_layer=1, n_head=2)).double().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


@pytest.mark.parametrize("rule", ["cp", "attn"])
def test_one_layer_equals_the_rules_worked_out_by_hand(one_layer, rule):
    ids = torch.tensor([3, 7, 1, 12, 5])
    with torch.no_grad():
        expected = by_hand(one_layer, ids, 9, rule)
    explanation = explain(Model(one_layer), {"input_ids": ids[None]}, target=9, rule=rule, vectors=("query", "value"))
    assert explanation.logit == pytest.approx(float(expected["logit"]), abs=1e-10)
    assert list(explanation.raw.values()) == pytest.approx(expected["heads"].tolist(), abs=1e-9)
    assert explanation.token_relevance() == pytest.approx(expected["tokens"].numpy(), abs=1e-9)
    assert explanation.neuron_relevance("L0") == pytest.approx(expected["neurons"].numpy(), abs=1e-9)
    assert explanation.neuron_relevance("L0", "value") == pytest.approx(expected["value"].numpy(), abs=1e-9)
    assert explanation.neuron_relevance("L0", "query") == pytest.approx(expected["query"].numpy(), abs=1e-9)
    share = 1 - float(expected["tokens"].sum() / expected["logit"])
    assert explanation.bias_share == pytest.approx(share, abs=1e-9)


def test_a_gated_product_gives_half_to_each_factor_and_a_norm_holds_its_scale():
    class Block(nn.Module):
        def forward(self, x):
            normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            return nn.functional.silu(normed) * (2 * normed)

    class Toy(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x):
            return self.block(x)

    x, toy = torch.randn(1, 3, 4), Toy()
    rules = Rules("cp", toy, {"main": "block"})
    with rules:
        out = toy(x)
    rules.check(out.sum())
    (slope,) = torch.autograd.grad(out.sum(), rules.streams["main"])
    assert torch.equal(out, toy(x))
    # Half through silu (the identity rule keeps all), half through 2 · normed: together the whole of each product.
    assert torch.allclose(slope * x, out, atol=1e-6)


# Conservation


CONSERVING = ["gpt2", "bert", "llama", "t5", "bart", "vit", "opt", "gpt_neox", "gemma2", "qwen3", "swin", "llava"]


@pytest.mark.parametrize("name", [*CONSERVING, "deberta_v2", "bloom"])
def test_cp_relevance_of_the_inputs_adds_up_to_the_logit_without_biases(name):
    model, inputs = model_and_inputs(name, biases=False)
    explanation = explain(model, inputs, position=where(name))
    for step, about in enumerate(explanation.steps):
        total = sum(explanation.by_token[stack][step].sum() for stack in explanation.input_stacks)
        assert total == pytest.approx(about.logit, abs=1e-4)
    assert set(explanation.by_head) == set(model.heads)


@pytest.mark.parametrize("name", ["gpt2", "bert", "vit", "bart"])
def test_with_biases_the_rest_is_told_as_their_share(name):
    model, inputs = model_and_inputs(name)
    explanation = explain(model, inputs, position=where(name))
    carried = sum(explanation.by_token[stack].sum(1) for stack in explanation.input_stacks)
    logits = np.array([step.logit for step in explanation.steps])
    assert carried + explanation.bias_shares * logits == pytest.approx(logits, abs=1e-6)
    assert np.abs(explanation.bias_shares).max() > 1e-3
    assert "bias share" in repr(explanation)


@pytest.mark.parametrize("rule", ["cp", "attn"])
@pytest.mark.parametrize("name", ["llama", "bart", "bloom"])
def test_the_explained_logit_is_the_models_own_to_the_last_bit(name, rule):
    model, inputs = model_and_inputs(name)
    with model.session():
        expected = model.module(**inputs).logits[0].max(-1).values
    explanation = explain(model, inputs, rule=rule, batch_size=1)
    for step in explanation.steps:
        assert step.logit == float(expected[step.position])


def test_the_model_is_left_as_it_was():
    model, inputs = model_and_inputs("gpt2")
    hooks = sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.module.modules())
    explain(model, inputs)
    assert hooks == sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.module.modules()
    )
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.module.parameters())


# What is asked


def test_heads_are_shares_of_their_layer():
    model, inputs = model_and_inputs("gpt2")
    explanation = explain(model, inputs)
    raw = np.array([explanation.raw[f"L1H{index}"] for index in range(4)])
    shares = np.array([explanation.heads[f"L1H{index}"] for index in range(4)])
    assert shares == pytest.approx(raw / np.abs(raw).sum())
    assert explanation.heads.settings["rule"] == "cp" and explanation.raw.settings["unit"] == "raw"


def test_a_contrast_is_the_difference_of_two_targets():
    model, inputs = model_and_inputs("gpt2")
    first, other = (explain(model, inputs, target=target, position=5) for target in (7, 8))
    both = explain(model, inputs, target=(7, 8), position=5)
    assert both.logit == pytest.approx(first.logit - other.logit, abs=1e-5)
    assert both.token_relevance() == pytest.approx(first.token_relevance() - other.token_relevance(), abs=1e-5)
    assert both.steps[0].other == 8
    assert both.token_relevance()[6:] == pytest.approx(0.0, abs=1e-7)  # the future has no part in it


def test_a_decoder_is_explained_step_by_step():
    model, inputs = model_and_inputs("bart")
    every = explain(model, inputs)
    assert [step.position for step in every.steps] == list(range(9))
    alone = explain(model, inputs, position=4)
    head = alone.raw.top(1)[0][0]
    assert every.by_head[head][4] == pytest.approx(alone.by_head[head][0], abs=1e-5)
    assert every.raw[head] == pytest.approx(every.by_head[head].mean())
    assert every.token_relevance("encoder").shape == (11,) and every.token_relevance("decoder").shape == (9,)
    assert every.by_token["decoder"][3, 4:] == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(NotRecordedError, match="no stack 'main'"):
        every.token_relevance("main")


def test_patches_of_an_image_lie_on_its_grid():
    model, inputs = model_and_inputs("vit")
    explanation = explain(model, inputs)
    patches = explanation.patch_relevance()
    assert patches.shape == (3, 3)
    assert patches.flatten() == pytest.approx(explanation.token_relevance()[1:])  # after [CLS]
    with pytest.raises(InputError, match="no image"):
        explain(*model_and_inputs("gpt2")).patch_relevance()


def test_targets_by_text_and_positions_by_token():
    module = FAMILIES["bert"].build()
    model = Model(module, tiny_bert_tokenizer())
    explanation = relevance(model, "the cat sat on the [MASK]", target="mat")
    assert explanation.steps[0].text.strip() == "mat" and explanation.steps[0].position == 6
    assert explanation.tokens["main"].texts[2] == "cat"
    with pytest.raises(InputError, match="not one token"):
        relevance(model, "the cat sat on the [MASK]", target="cathedral")
    with pytest.raises(InputError, match="mask a token"):
        relevance(model, "the cat sat")
    assert len(relevance(model, "the cat sat on the mat", position="the").steps) == 2


def test_edits_are_in_force():
    model, inputs = model_and_inputs("gpt2")
    edited = explain(model, inputs, interventions=[hs.silence("L1H2"), hs.temperature("L0", 2.0)])
    assert edited.raw["L1H2"] == 0
    plain = explain(model, inputs)
    assert edited.logit != plain.logit


def test_scores_of_several_inputs_are_the_means_of_each_alone():
    model, _ = model_and_inputs("bart")
    sources = [
        {"input_ids": tokens(length, seed=length)[:1], "decoder_input_ids": tokens(5, seed=length + 1)[:1]}
        for length in (6, 9)
    ]
    done = []
    read = [model.read(inputs=inputs) for inputs in sources]
    scores = relevance_scores(model, read, progress=done.append, batch_size=4)
    alone = [explain(model, inputs).heads for inputs in sources]
    for head, value in scores.items():
        assert value == pytest.approx(np.mean([heads[head] for heads in alone]), abs=1e-4)
        low, high = scores.intervals[head]
        assert low <= value + 1e-9 and value <= high + 1e-9
    assert scores.n_samples == 2 and scores.settings["steps"] == 10 and done[-1] == Progress("relevance", 10, 10)
    assert scores.settings["bias_share"] == scores.settings["bias_share"]


def test_threads_with_different_rules_never_mix():
    model, inputs = model_and_inputs("gpt2")
    expected = {rule: explain(model, inputs, rule=rule).token_relevance() for rule in ("cp", "attn")}
    with model.session():
        plain = model.module(**inputs).logits
    problems = []

    def repeat(rule):
        for _ in range(6):
            if not np.array_equal(explain(model, inputs, rule=rule).token_relevance(), expected[rule]):
                problems.append(rule)

    def run():
        for _ in range(20):
            with model.session():
                if not torch.equal(model.module(**inputs).logits, plain):
                    problems.append("plain")

    threads = [threading.Thread(target=repeat, args=("cp",)), threading.Thread(target=repeat, args=("attn",))]
    threads.append(threading.Thread(target=run))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


# What is refused


@pytest.mark.parametrize("name", ["mixtral", "gpt_oss", "deepseek_v3"])
def test_experts_are_refused(name):
    with pytest.raises(CaptureError, match="routers of experts"):
        explain(*model_and_inputs(name))


def test_windows_and_global_tokens_lose_nothing_where_nothing_has_a_bias():
    model, inputs = model_and_inputs("longformer", biases=False)
    explanation = explain(model, inputs, target=7, position=2)
    with torch.no_grad():
        logit = float(model.module(**inputs).logits[0, 2, 7])
    assert explanation.token_relevance().sum() == pytest.approx(logit, rel=1e-3)


def test_a_stream_that_goes_around_the_blocks_is_refused():
    model, inputs = model_and_inputs("home_multihead")
    with pytest.raises(CaptureError, match="around its blocks"):
        explain(model, inputs, position=2)


def test_a_model_without_logits_is_refused():
    model, inputs = model_and_inputs("clip")
    with pytest.raises(CaptureError, match="no logits"):
        explain(model, inputs, position=2)


def test_a_model_in_training_is_refused():
    module = FAMILIES["gpt2"].build()
    model = Model(module)
    module.train()
    with pytest.raises(CaptureError, match="dropout off"):
        explain(model, {"input_ids": tokens()[:1]})


@pytest.mark.parametrize(
    ("compute", "reason"),
    [
        (lambda x: x.exp(), "'Exp'"),
        (lambda x: x / (1 + x), "'Div'"),
        (lambda x: x.softmax(-1), "softmax that is not an attention"),
        (lambda x: x.sqrt(), "'Sqrt'"),
        (lambda x: x.clone().mul_(x), "'Mul'"),
        (lambda x: x.max(-1).values, "'Max'"),
        (lambda x: x.topk(2).values, "chooses by the size"),
        (lambda x: nn.functional.scaled_dot_product_attention(x, x, x), "no rule"),
    ],
)
@pytest.mark.parametrize("rule", ["cp", "attn"])
def test_what_has_no_rule_is_named(compute, reason, rule):
    class Block(nn.Module):
        def forward(self, x):
            return x + compute(x)[..., :1]

    module = nn.Sequential(Block())
    rules = Rules(rule, module, {"main": "0"})
    with pytest.raises(CaptureError, match=reason), rules:
        rules.check(module(torch.rand(1, 3, 4)).sum())


def test_wrong_requests_are_told():
    model, inputs = model_and_inputs("gpt2")
    with pytest.raises(InputError, match="no rule 'lrp'"):
        explain(model, inputs, rule="lrp")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="vectors are"):
        explain(model, inputs, vectors=("mixed",))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no answer 500"):
        explain(model, inputs, target=500)
    with pytest.raises(InputError, match="no tokenizer"):
        explain(model, inputs, target="cat")
    with pytest.raises(InputError, match="two targets"):
        explain(model, inputs, target=(1, 2, 3))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one input"):
        explain(model, {"input_ids": tokens()})
    with pytest.raises(NotRecordedError, match="vectors="):
        explain(model, inputs).neuron_relevance("L0", "key")
    with pytest.raises(InputError, match="answers once"):
        explain(*model_and_inputs("vit"), position=0)
    with pytest.raises(InputError, match="no class 'dog'"):
        explain(*model_and_inputs("vit"), target="dog")
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        explain(model, inputs, cancel=stop)
    assert VOCABULARY < 500
