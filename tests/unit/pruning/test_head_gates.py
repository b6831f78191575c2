"""Hard Concrete gates: closed forms against draws, penalties on paper, and what a closed gate does to a model."""

import math

import pytest
import torch
from tiny_models import SENTENCES
from tiny_tasks import gpt

import headscope as hs
from headscope.errors import InputError
from headscope.pruning import GateOptions, HeadMask, PrunableLayer, layers_of
from headscope.pruning.head_gates import HeadGates, p_one, p_open, sample_gates, soft_gates
from headscope.sites import Site

TWO_TYPES = [PrunableLayer(Site("encoder", 0), "encoder", 2, 2), PrunableLayer(Site("decoder", 0), "decoder", 4, 2)]


def gates_at(model: hs.Model, *log_alpha: float, **options) -> HeadGates:
    gates = HeadGates(layers_of(model), GateOptions(**options))
    with torch.no_grad():
        gates.log_alpha.copy_(torch.tensor(log_alpha))
    return gates


def answers(model: hs.Model, edits) -> torch.Tensor:
    trace = model.run(SENTENCES[0], edits, record="full")
    return trace.tensor("residual", "L1")


def test_the_closed_forms_on_paper() -> None:
    # sigmoid(0.33 · ln 11) = 1 / (1 + 11^-0.33)
    assert float(p_open(torch.tensor(0.0))) == pytest.approx(1 / (1 + 11**-0.33))
    assert float(p_one(torch.tensor(0.0))) == pytest.approx(1 / (1 + 11**0.33))
    halves = GateOptions(tau=1.0, stretch=(-1.0, 2.0))
    assert float(p_open(torch.tensor(0.0), halves)) == pytest.approx(2 / 3)  # odds: high / −low
    assert float(p_one(torch.tensor(0.0), halves)) == pytest.approx(1 / 3)


@pytest.mark.parametrize("options", [GateOptions(), GateOptions(tau=0.7, stretch=(-0.3, 1.2))])
@pytest.mark.parametrize("log_alpha", [-3.0, -1.0, 0.0, 0.5, 2.0])
def test_draws_are_zero_and_one_as_often_as_the_closed_forms_say(log_alpha: float, options: GateOptions) -> None:
    n = 200_000
    torch.manual_seed(0)
    draws = sample_gates(torch.full((n,), log_alpha), options)
    assert bool(((draws >= 0) & (draws <= 1)).all())
    for frequency, p in (
        ((draws > 0).double().mean(), p_open(torch.tensor(log_alpha), options)),
        ((draws == 1).double().mean(), p_one(torch.tensor(log_alpha), options)),
    ):
        deviation = math.sqrt(float(p * (1 - p)) / n)
        assert float(frequency) == pytest.approx(float(p), abs=4.5 * deviation)


def test_one_is_likelier_than_zero_exactly_where_log_alpha_is_above_zero() -> None:
    log_alpha = torch.tensor([-2.0, -1e-3, 1e-3, 2.0])
    assert ((p_one(log_alpha) > 1 - p_open(log_alpha)) == (log_alpha > 0)).all()


def test_the_soft_gate_of_the_papers_code_is_0_and_1_beyond_2_398() -> None:
    edge = math.log(11)
    assert soft_gates(torch.tensor([-edge - 1e-3, edge + 1e-3, 0.0])).tolist() == [0.0, 1.0, 0.5]


def test_the_penalty_counts_heads_that_are_expected_to_be_open() -> None:
    p = 1 / (1 + 11**-0.33)
    both = {"encoder": 0.1, "decoder": 0.01}

    def penalty(step: int = 0, **options) -> float:
        return float(HeadGates(TWO_TYPES, GateOptions(log_alpha=0.0, **options)).penalty(both, step).detach())

    assert penalty() == pytest.approx((2 * 0.1 + 4 * 0.01) * p, rel=1e-5)
    assert penalty(penalty="mean") == pytest.approx((2 * 0.1 + 4 * 0.01) * p / 2, rel=1e-5)
    assert penalty(per="group") == pytest.approx(penalty(), rel=1e-5)  # a group counts as its heads
    rising = [penalty(step, warmup=4) / penalty() for step in (0, 1, 3, 9)]
    assert rising == pytest.approx([0.25, 0.5, 1.0, 1.0], rel=1e-5)


def test_the_penalty_pulls_every_gate_towards_closed() -> None:
    gates = HeadGates(TWO_TYPES, GateOptions())
    gates.penalty({"encoder": 0.1, "decoder": 0.01}, 0).backward()
    slopes = gates.log_alpha.grad
    assert slopes is not None and bool((slopes > 0).all())
    assert float(slopes[0] / slopes[2]) == pytest.approx(10.0)


def test_a_draw_is_shared_by_a_batch_has_a_gradient_and_follows_from_the_seed() -> None:
    gates = HeadGates(TWO_TYPES, GateOptions(log_alpha=0.0))

    def draw() -> list[torch.Tensor]:
        torch.manual_seed(7)
        return [edit.edit.factor for edit in gates.sample()]  # type: ignore[union-attr]

    first, again = draw(), draw()
    assert [tuple(factor.shape) for factor in first] == [(2,), (4,)]  # one number per head, none per example
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    assert not torch.equal(first[1], gates.sample()[1].edit.factor)  # type: ignore[union-attr]
    sum(factor.sum() for factor in first).backward()  # type: ignore[union-attr]
    assert gates.log_alpha.grad is not None


def test_query_heads_of_a_key_value_group_may_share_a_gate() -> None:
    gates = HeadGates(TWO_TYPES, GateOptions(per="group"))
    assert gates.sizes == [2, 2]
    rows = gates.by_layer(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert [row.tolist() for row in rows.values()] == [[1.0, 2.0], [3.0, 3.0, 4.0, 4.0]]


def test_glorots_start_is_uniform_around_zero_and_seeded() -> None:
    layers = [PrunableLayer(Site("main", number), "self", 8, 8) for number in range(200)]
    starts = [HeadGates(layers, GateOptions.voita(), seed=seed).log_alpha.detach() for seed in (0, 0, 1)]
    assert torch.equal(starts[0], starts[1]) and not torch.equal(starts[0], starts[2])
    bound = math.sqrt(6 / 16)
    assert float(starts[0].abs().max()) <= bound and float(starts[0].std()) == pytest.approx(bound / 3**0.5, rel=0.05)


def test_a_closed_gate_is_the_head_silenced() -> None:
    model = gpt()
    gates = gates_at(model, 5.0, -5.0, -1.0, 5.0)
    silenced = [hs.silence("L0H1"), hs.silence("L1H0")]
    assert torch.equal(answers(model, gates.at_evaluation()), answers(model, silenced))
    assert not torch.allclose(answers(model, silenced), answers(model, []))
    mask = gates.mask(HeadMask.full(model))
    assert [str(head) for head in mask.heads_kept()] == ["L0H0", "L1H1"]
    assert torch.equal(answers(model, mask.interventions()), answers(model, silenced))


def test_a_layer_without_open_gates_is_its_residual_path() -> None:
    model = gpt()
    gates = gates_at(model, -5.0, -5.0, 5.0, 5.0)
    block = model.module.transformer.h[0]
    torch.nn.init.normal_(block.attn.c_proj.bias)
    ids = model.read(SENTENCES[0]).model_inputs["input_ids"][None]
    with torch.no_grad():
        embedded = model.module.transformer.wte(ids) + model.module.transformer.wpe(torch.arange(ids.shape[1]))
        after = embedded + block.attn.c_proj.bias  # what attention adds without heads
        expected = after + block.mlp(block.ln_2(after))
    observed = model.run(SENTENCES[0], gates.at_evaluation(), record="full").tensor("residual", "L1")
    torch.testing.assert_close(observed, expected[0])


@pytest.mark.parametrize(
    "options",
    [
        *(
            {"tau": 0.0},
            {"stretch": (0.1, 1.1)},
            {"warmup": -1},
            {"rate": 0.0},
            {"log_alpha": "warm"},
            {"per": "layer"},
        ),
        *({name: float("nan")} for name in ("tau", "rate", "log_alpha")),
        {"stretch": (float("-inf"), 1.1)},
    ],
)
def test_settings_that_make_no_gate_are_refused(options: dict) -> None:
    with pytest.raises(InputError):
        GateOptions(**options)
