"""The classifier of the sentiment study: its BiLSTM is torch's, words without context, and the tests by hand."""

import math
from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope.errors import InputError
from headscope.faithfulness.kendall_tau import rank_agreement
from headscope.faithfulness.studies.classifier_tasks import (
    BaseAnswers,
    ClassifierOptions,
    GoldLabels,
    classifier_figures,
    uniform_attention,
)
from headscope.faithfulness.studies.classifier_tests import classifier_tests, summary
from headscope.faithfulness.studies.sentiment_data import SentimentData, words_of
from headscope.faithfulness.studies.stack_parts import pick, stack
from headscope.faithfulness.studies.stacked_classifier import ClassifierShape, classify, draw_classifier, encode
from headscope.faithfulness.studies.stacked_tagger import tag

OPTIONS = ClassifierOptions(batch_size=8, width=8)


def classifiers(encoder, *seeds: int) -> dict[str, torch.Tensor]:
    return stack([draw_classifier(ClassifierShape(encoder, 8, 8), seed) for seed in seeds])


@pytest.fixture(scope="module")
def texts(opinions: tuple[Path, Path, Path], tiny_bert: hs.Model) -> SentimentData:
    return SentimentData(opinions, tiny_bert, size=8)


@pytest.fixture
def batch(texts):
    return texts.batch(texts.train, range(6))


def test_the_stacked_bilstm_is_that_of_torch(batch) -> None:
    both = classifiers("bilstm", 1, 2)
    states = encode(both, batch.inputs, batch.mask)
    for model in range(2):
        reference = torch.nn.LSTM(8, 8, bidirectional=True, batch_first=True)
        with torch.no_grad():
            for direction, suffix in enumerate(("", "_reverse")):
                columns = slice(32 * direction, 32 * (direction + 1))
                getattr(reference, f"weight_ih_l0{suffix}").copy_(both["input.weight"][model, :, columns].T)
                getattr(reference, f"bias_ih_l0{suffix}").copy_(both["input.bias"][model, columns])
                getattr(reference, f"weight_hh_l0{suffix}").copy_(both["recurrent.weight"][model, direction].T)
                getattr(reference, f"bias_hh_l0{suffix}").zero_()
        for text, length in enumerate(batch.mask.sum(1).tolist()):
            expected = reference(batch.inputs[text, :length])[0]
            torch.testing.assert_close(states[model, text, :length], expected)


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_attention_is_on_words_alone_and_padding_changes_nothing(encoder, texts, batch) -> None:
    parameters = classifiers(encoder, 3)
    whole = classify(parameters, batch.inputs, batch.mask, batch.attended)
    assert not whole.attention[0].transpose(1, 2)[~batch.attended].any()
    torch.testing.assert_close(whole.attention.sum(-1), torch.ones(1, 6, 4 if encoder == "transformer" else 1))
    alone = texts.batch(texts.train, [2])
    single = classify(parameters, alone.inputs, alone.mask, alone.attended)
    torch.testing.assert_close(whole.logits[0, 2], single.logits[0, 0])


def test_words_of_the_average_encoder_know_no_context(batch) -> None:
    other = batch.inputs.clone()
    other[:, 1] += 1.0
    for encoder, n_changed in (("bilstm", batch.mask.shape[1]), ("transformer", batch.mask.shape[1]), ("average", 1)):
        parameters = classifiers(encoder, 4)
        before, after = (encode(parameters, inputs, batch.mask) for inputs in (batch.inputs, other))
        longest = int(batch.mask.sum(1).argmax())
        assert int(((before - after)[0, longest].abs().amax(-1) > 1e-7).sum()) == n_changed


def test_a_transformer_reads_its_answer_from_the_first_token_of_its_tagger(batch) -> None:
    """With every token attended, the classifier is the two-layer tagger, read at its first token."""
    parameters = classifiers("transformer", 1, 2)
    classified = classify(parameters, batch.inputs, batch.mask, batch.mask)
    tagged = tag(parameters, batch.inputs, batch.mask)
    torch.testing.assert_close(classified.logits, tagged.logits[:, :, 0, 0])
    torch.testing.assert_close(classified.attention, tagged.pattern[:, :, :, 0])
    frozen = classify(parameters, batch.inputs, batch.mask, batch.mask, classified.attention)
    torch.testing.assert_close(frozen.logits, classified.logits)


def test_a_width_that_heads_cannot_share_is_refused() -> None:
    with pytest.raises(InputError, match="multiple of 4"):
        draw_classifier(ClassifierShape("transformer", 8, 6), 0)


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_a_classifier_against_itself_and_with_uniform_attention(encoder, texts) -> None:
    both, base = classifiers(encoder, 1, 2), pick(classifiers(encoder, 1), 0)
    same, other = classifier_figures(GoldLabels(texts, OPTIONS), both, texts.test, base)
    assert [same[name] for name in ("tvd", "jsd", "kl")] == pytest.approx([0, 0, 0], abs=1e-6) and other["jsd"] > 0
    row = classifier_figures(GoldLabels(texts, OPTIONS, uniform_attention), base, texts.test, base)[0]
    assert 0 < row["jsd"] < math.log(2) and row["tvd"] > 0


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_adversaries_lower_the_objective_that_is_stated(encoder, texts, batch) -> None:
    both, base = classifiers(encoder, 1, 2), pick(classifiers(encoder, 1), 0)
    losses = BaseAnswers(texts, OPTIONS, base, (0.5, 2.0), seed=0).losses(both, batch, torch.Generator())
    run = classify(both, batch.inputs, batch.mask, batch.attended)
    expected = torch.zeros(2)
    for text in range(6):
        words = batch.attended[text]
        ours, theirs = run.attention[:, text, :, words], run.attention[0, text, :, words]
        apart = (run.logits[:, text].sigmoid() - run.logits[0, text].sigmoid()).abs() / 2
        expected += (apart - torch.tensor([0.5, 2.0]) * (ours * (ours / theirs).log()).sum(2).mean(1)) / 6
    torch.testing.assert_close(losses, expected)
    assert float(losses[0].detach()) == pytest.approx(0.0, abs=1e-6)


def test_where_attention_is_all_that_counts_the_rankings_agree(texts, monkeypatch) -> None:
    """A word's state is its first input alone, which is above 0, and so is its weight: a word with more of it is
    attended more, and adds more to the answer.
    """
    parameters = {name: torch.zeros_like(value) for name, value in pick(classifiers("average", 1), 0).items()}
    parameters["input.weight"][0, 0, 0] = 0.01  # tanh is nearly the identity here
    parameters["attention.weight"][0, 0, 0] = 30.0
    parameters["attention_vector.weight"][0, 0, 0] = 3.0
    parameters["output.weight"][0, 0, 0] = 10.0
    monkeypatch.setattr(texts, "vectors", texts.vectors.abs())
    lines = classifier_tests(parameters, texts, n_texts=5, n_permutations=5)
    assert all(line["tau_gradient"] == 1.0 for line in lines if line["reason"] is None)
    assert any(line["reason"] is None for line in lines)


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_tests_of_texts_say_why_a_text_was_not_tested(encoder, texts) -> None:
    lines = classifier_tests(pick(classifiers(encoder, 1), 0), texts, n_texts=50, n_permutations=5)
    short = [line for line in lines if line["words"] < 3]
    assert short and all(line["tau_gradient"] is None and "tokens to rank" in line["reason"] for line in short)
    row = summary(lines, "leave_one_out")
    assert row["texts"] == len(lines) - len(short) and -1 <= row["mean"] <= 1 and 0 <= row["significant"] <= 1


def test_each_ranking_has_its_own_name(texts) -> None:
    """The published code swaps the names of the two: here each is worked out on a text, by its definition."""
    parameters = pick(classifiers("bilstm", 1), 0)
    lines = classifier_tests(parameters, texts, n_texts=5, n_permutations=5)
    line = next(line for line in lines if line["words"] == 6)
    batch = texts.batch(texts.test, [line["place"]])
    classified = classify(parameters, batch.inputs, batch.mask, batch.attended)
    weights, words = classified.attention[:, 0, 0], range(1, 7)
    inputs = batch.inputs.clone().requires_grad_()
    frozen = classify(parameters, inputs, batch.mask, batch.attended, classified.attention)
    slope = torch.autograd.grad(frozen.logits[0, 0].sigmoid(), inputs)[0]
    gradient = (slope * inputs.detach()).sum(-1).abs()
    change = torch.zeros_like(weights)
    for word in words:
        others = [place for place in range(8) if place != word]
        inner = torch.tensor([[False, *[True] * 5, False]])
        shorter = classify(parameters, batch.inputs[:, others], batch.mask[:, others], inner)
        change[0, word] = (shorter.logits.sigmoid() - classified.logits.sigmoid()).abs()[0, 0]
    expected = {"tau_gradient": gradient, "tau_leave_one_out": change}
    taus = {
        name: float(rank_agreement(weights[:, words], values[:, words]).tau[0]) for name, values in expected.items()
    }
    assert {name: line[name] for name in taus} == pytest.approx(taus)
    assert taus["tau_gradient"] != taus["tau_leave_one_out"]


def test_numbers_are_one_word() -> None:
    assert words_of("By 1999 the 2nd Film") == ["by", "qqq", "the", "qqq", "film"]


def test_texts_of_other_than_two_classes_are_refused(tiny_bert, tmp_path) -> None:
    file = tmp_path / "three.tsv"
    file.write_text("text\tlabel\na b c d\t0\ne f g\t1\nh i\t2\n")
    with pytest.raises(InputError, match="two classes, and the texts have 3"):
        SentimentData((file, file, file), tiny_bert, columns={"text": "text", "label": "label"}, size=4)
