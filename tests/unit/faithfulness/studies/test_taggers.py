"""The tagger of the chunking study: its size, what its attention does, and what a frozen attention really does."""

import math

import pytest
import torch

from headscope.faithfulness.studies.stack_parts import Dropout, draw_linear, pick, stack
from headscope.faithfulness.studies.stacked_tagger import Attend, TaggerShape, draw_tagger, own_log_pattern, tag
from headscope.faithfulness.studies.tagger_attention import FrozenAttention, ReplacedAttention, no_attention
from headscope.faithfulness.studies.tagger_tasks import BaseTags, GoldTags, TaggerOptions, tagger_figures

SHAPE = TaggerShape(8, 16, 4, 8)
OPTIONS = TaggerOptions(batch_size=8, width=16, warmup=5)


def taggers(*seeds: int) -> dict[str, torch.Tensor]:
    return stack([draw_tagger(SHAPE, seed) for seed in seeds])


@pytest.fixture
def batch(data):
    return data.batch(data.train, [0, 1, 2])


def test_the_tagger_has_as_many_parameters_as_the_report() -> None:
    assert sum(parameter.numel() for parameter in draw_tagger(TaggerShape(), 0).values()) == 140_953


def test_parameters_depend_on_seed_and_name_alone() -> None:
    first, second = draw_tagger(SHAPE, 1), draw_tagger(TaggerShape(8, 16, 4, 5), 1)
    assert all(torch.equal(first[name], second[name]) for name in first if "classifier" not in name)
    assert not torch.equal(first["query.weight"], first["key.weight"])
    assert not torch.equal(first["query.weight"], draw_tagger(SHAPE, 2)["query.weight"])
    parameters: dict[str, torch.Tensor] = {}
    draw_linear(parameters, "x", (400, 400), 0, bias=True)
    assert float(parameters["x.weight"].abs().max()) == pytest.approx(1 / math.sqrt(400), rel=1e-3)


def test_models_of_a_stack_are_those_run_alone(batch) -> None:
    both = taggers(1, 2)
    together = tag(both, batch.inputs, batch.mask)
    for model in range(2):
        alone = tag(pick(both, model), batch.inputs, batch.mask)
        torch.testing.assert_close(together.logits[model], alone.logits[0])
        torch.testing.assert_close(together.pattern[model], alone.pattern[0])


def test_padding_changes_nothing_and_rows_sum_to_one(data, batch) -> None:
    parameters = taggers(3)
    padded, alone = (data.batch(data.train, places) for places in ([0, 1, 2, 3], [1]))
    length = int(alone.mask.sum())
    whole, single = (tag(parameters, each.inputs, each.mask) for each in (padded, alone))
    torch.testing.assert_close(whole.logits[0, 1, :length], single.logits[0, 0])
    assert not whole.pattern[..., ~padded.mask[1]][0, 1].any()
    torch.testing.assert_close(whole.pattern.sum(-1), torch.ones(whole.pattern.shape[:-1]))


def test_replacements_are_uniform_and_identity(batch) -> None:
    uniform, identity = (ReplacedAttention(kind)(batch).pattern for kind in ("uniform", "identity"))
    length = int(batch.mask[1].sum())
    assert uniform is not None and identity is not None
    assert uniform[0, 1, 0, 0].tolist() == pytest.approx([1 / length] * length + [0] * (batch.mask.shape[1] - length))
    assert torch.equal(identity[0, 1, 0, :length, :length], torch.eye(length))


def test_with_identity_or_without_attention_words_are_tagged_by_themselves(batch) -> None:
    parameters, other = taggers(4), batch.inputs.clone()
    other[:, 2] += 1.0
    for attend in (ReplacedAttention("identity")(batch), no_attention(batch)):
        before, after = (tag(parameters, inputs, batch.mask, attend).logits for inputs in (batch.inputs, other))
        changed = (before - after).abs().amax((0, 1, 3)) > 1e-6
        assert changed.nonzero().flatten().tolist() == [2]


@pytest.mark.parametrize("has_residual", [True, False])
def test_a_probe_attends_by_the_frozen_pattern_and_learns_no_queries(data, batch, has_residual) -> None:
    sources = [pick(taggers(5), 0), pick(taggers(6), 0), None, pick(taggers(5), 0)]
    attends = FrozenAttention(sources, [False, False, False, True], n_heads=4, has_residual=has_residual)
    probes = taggers(7, 7, 7, 7)
    logits = tag(probes, batch.inputs, batch.mask, attends(batch)).logits.detach()
    real = logits[:, batch.mask]
    for first in range(4):  # the probes have the same weights: only the frozen attention differs
        for second in range(first):
            assert float((real[first] - real[second]).abs().max()) > 1e-3
    task = GoldTags(data, OPTIONS, attends)
    task.losses(probes, batch, torch.Generator().manual_seed(0)).sum().backward()
    assert probes["query.weight"].grad is None and probes["key.weight"].grad is None
    for name in ("value.weight", "output.weight", "projection.weight"):
        gradient = probes[name].grad
        assert gradient is not None and gradient.any()


def test_frozen_attention_is_that_of_its_source(batch) -> None:
    source = pick(taggers(5), 0)
    frozen = FrozenAttention([source, None], [False, False], n_heads=4, has_residual=True)(batch).pattern
    assert frozen is not None
    torch.testing.assert_close(frozen[0], own_log_pattern(source, batch.inputs, batch.mask)[0].exp())
    torch.testing.assert_close(frozen[1, 1, 0], ReplacedAttention("uniform").pattern(batch)[1])


def test_the_control_has_the_same_weights_on_other_words(batch) -> None:
    source = pick(taggers(5), 0)
    attends = FrozenAttention([source, source], [False, True], n_heads=4, has_residual=False)
    pattern, again = attends(batch).pattern, attends(batch).pattern
    assert pattern is not None and again is not None and torch.equal(pattern, again)
    real = batch.mask[None, :, None, :, None].expand_as(pattern)
    plain, permuted = (torch.where(real, pattern, 0.0)[model].sort(-1).values for model in range(2))
    torch.testing.assert_close(plain, permuted)
    assert not torch.equal(pattern[0], pattern[1])
    assert not pattern[1][..., ~batch.mask[1]][1].any()


def test_without_residual_what_a_word_is_reaches_its_tag_through_attention_alone(batch) -> None:
    elsewhere = torch.zeros(1, 3, 1, *batch.mask.shape[1:] * 2)
    elsewhere[..., 0] = 1.0  # every query attends to the first word only
    parameters, other = taggers(8), batch.inputs.clone()
    other[:, 3] += 1.0
    attend = Attend(elsewhere, has_residual=False)
    before, after = (tag(parameters, inputs, batch.mask, attend).logits for inputs in (batch.inputs, other))
    torch.testing.assert_close(before, after)


def test_figures_against_itself_are_zero_and_against_another_are_not(data) -> None:
    both, base = taggers(1, 2), pick(taggers(1), 0)
    same, other = tagger_figures(GoldTags(data, OPTIONS), both, data.test, base)
    assert same["tvd"] == same["jsd"] == same["kl_row"] == 0.0
    assert other["tvd"] > 0 and 0 < other["jsd"] < math.log(2)
    assert other["kl_row"] > other["kl_cell"] > 0


def test_adversaries_lower_the_objective_that_is_stated(data, batch) -> None:
    both, base = taggers(1, 2), pick(taggers(1), 0)
    task = BaseTags(data, TaggerOptions(batch_size=8, width=16, dropout=0.0), base, (0.5, 2.0), seed=0)
    losses = task.losses(both, batch, torch.Generator())
    run = tag(both, batch.inputs, batch.mask)
    answers = tag(base, batch.inputs, batch.mask).logits[0].argmax(-1)
    total, cells = torch.zeros(2), 0
    for sentence, n in enumerate(batch.mask.sum(1).tolist()):
        ours, theirs = run.pattern[:, sentence, :, :n, :n], run.pattern[:1, sentence, :, :n, :n]
        total += (ours * (ours / theirs).log()).sum((1, 2, 3))
        cells += 4 * n * n
    log_probabilities = run.logits.log_softmax(-1)
    nll = -log_probabilities.gather(-1, answers.expand(2, -1, -1)[..., None])[..., 0][:, batch.mask].mean(1)
    torch.testing.assert_close(losses, nll - torch.tensor([0.5, 2.0]) * total / cells)


def test_dropout_keeps_the_mean_and_drops_the_stated_share() -> None:
    values = Dropout(0.2, torch.Generator().manual_seed(0))(torch.ones(1001, 101))
    assert float((values == 0).float().mean()) == pytest.approx(0.2, abs=0.005)
    assert float(values.max()) == pytest.approx(1.25) and float(values.mean()) == pytest.approx(1.0, abs=0.01)
