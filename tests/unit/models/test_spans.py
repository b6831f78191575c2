"""Extractive question answering: spans, their relevance and effects, against the plain model."""

import pytest
import torch
from tiny_models import FAMILIES, tiny_bert_tokenizer
from transformers import BertConfig, BertForQuestionAnswering, LongformerConfig, LongformerForQuestionAnswering

import headscope as hs
from headscope.analysis import gate_importance
from headscope.analysis.attribution.relevance import relevance
from headscope.errors import InputError, NotRecordedError
from headscope.models.inputs.batch import Batch
from headscope.models.spans import span_logits
from headscope.traces import Tokens
from headscope.traces.spans import LONGEST, NO_SPAN, answer_places, span_id, span_of, span_text

QUESTION, CONTEXT = "the cat ?", "the cat sat on the mat and the dog ran"


def question_model(*, biases: bool = True) -> hs.Model:
    torch.manual_seed(3)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    tokenizer = tiny_bert_tokenizer()
    module = BertForQuestionAnswering(BertConfig(vocab_size=99, initializer_range=0.3, **sizes)).eval()
    if not biases:
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if name.endswith("bias"):
                    parameter.zero_()
    return hs.Model(module, tokenizer)


def plain_spans(model: hs.Model, trace: hs.Trace) -> tuple[torch.Tensor, torch.Tensor]:
    """Start and end logits of the module itself."""
    inputs = {name: tensor[None] for name, tensor in trace.inputs.model_inputs.items()}
    with torch.no_grad():
        outputs = model.module(**inputs)
    return outputs.start_logits[0], outputs.end_logits[0]


def best_span(start: torch.Tensor, end: torch.Tensor, places: list[int]) -> tuple[int, int]:
    """By trying every pair, the first token among them, as transformers' pipeline does where there may be no answer."""
    pairs = [(first, last) for first in places for last in places if first <= last < first + LONGEST]
    return max([(0, 0), *pairs], key=lambda pair: float(start[pair[0]] + end[pair[1]]))


def test_ids_of_spans_on_paper():
    assert (span_id(0, 0), span_id(0, 2), span_id(1, 1)) == (1, 3, LONGEST + 1)
    for span in ((0, 0), (7, 9), (400, 429)):
        assert span_of(span_id(*span)) == span
    assert span_of(NO_SPAN) is None
    assert span_text(Tokens.of(["a", "b"]), NO_SPAN) == "(no answer)"


def test_probabilities_by_hand():
    # Two tokens of context without specials; starts 3 : 1, ends 1 : 1. Of the four pairs, (1, 0) is no span.
    class Outputs:
        start_logits = torch.tensor([[3.0, 1.0]]).log()
        end_logits = torch.zeros(1, 2)

    tokens = {"main": Tokens.of(["a", "b"])}
    batch = Batch({}, {}, [hs.traces.Inputs("text", {}, tokens)])
    logits = span_logits(Outputs, batch)
    assert logits is not None
    chances = logits[0].softmax(-1)
    for span, chance in (((0, 0), 3 / 8), ((0, 1), 3 / 8), ((1, 1), 1 / 8)):
        assert float(chances[span_id(*span)]) == pytest.approx(chance)
    assert float(chances[NO_SPAN]) == pytest.approx(1 / 8)


def test_the_span_is_that_of_the_plain_model():
    model = question_model()
    for question in (QUESTION, "on ?", "the dog ran and sat"):
        trace = model.run(question, pair=CONTEXT)
        start, end = plain_spans(model, trace)
        places = answer_places(trace.tokens["main"])
        assert [trace.tokens["main"][place].text for place in places][:3] == ["the", "cat", "sat"]
        span = trace.span
        assert span.span == best_span(start, end, places)
        first, last = span.span
        expected = start.log_softmax(-1)[first] + end.log_softmax(-1)[last]
        assert span.logprob == pytest.approx(float(expected), abs=1e-5)
        assert all(prediction.id != NO_SPAN for prediction in trace.predictions(10))


def test_padding_changes_no_answer():
    model = question_model()
    short, long = model.run([(QUESTION, "the cat sat"), (QUESTION, CONTEXT)])
    assert short.span.logprob == pytest.approx(model.run(QUESTION, pair="the cat sat").span.logprob, abs=1e-5)
    assert long.span.span == model.run(QUESTION, pair=CONTEXT).span.span


def test_relevance_of_a_span_adds_up_to_its_two_logits():
    model = question_model(biases=False)
    trace = model.run(QUESTION, pair=CONTEXT)
    start, end = plain_spans(model, trace)
    for target in (None, "sat on the mat"):
        explained = relevance(model, trace.inputs, target=target)
        first, last = trace.span.span if target is None else (7, 10)
        assert explained.logit == pytest.approx(float(start[first] + end[last]), abs=1e-4)
        assert explained.token_relevance().sum() == pytest.approx(explained.logit, abs=1e-3)
        assert explained.steps[0].text == (trace.span.text if target is None else target)


def test_an_effect_is_that_of_the_plain_model_without_the_head():
    model, without = question_model(), question_model()
    trace = model.run(QUESTION, pair=CONTEXT)
    with torch.no_grad():
        without.module.get_submodule(without.layout.layers[1].out_projection).weight[:, 16:24] = 0.0
    change = hs.effect(model, trace, [hs.silence("L1H2")])
    (start, end), (start_now, end_now) = plain_spans(model, trace), plain_spans(without, trace)
    shift = change.predictions(1)[0]
    first, last = span_of(shift.id)
    before = start.log_softmax(-1)[first] + end.log_softmax(-1)[last]
    after = start_now.log_softmax(-1)[first] + end_now.log_softmax(-1)[last]
    assert (shift.before, shift.after) == pytest.approx((float(before), float(after)), abs=1e-5)
    assert abs(shift.before - shift.after) > 1e-4
    assert model.run(trace.inputs, [hs.silence("L1H2")]).span.span == without.run(trace.inputs).span.span


def test_importance_of_a_head_for_a_span_is_its_slope():
    model = question_model()
    trace = model.run(QUESTION, pair=CONTEXT)
    answer = trace.span.id
    scores = gate_importance(model, trace.inputs, target=answer)
    losses = []
    for factor in (1.01, 0.99):
        edited = model.run(trace.inputs, [hs.scale("L1H1", factor)])
        losses.append(-next(p.logprob for p in edited.predictions(50) if p.id == answer))
    assert scores["L1H1"] == pytest.approx(abs(losses[0] - losses[1]) / 0.02, rel=0.02, abs=1e-5)


def test_longformer_answers_with_its_question_as_global_tokens():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    tokenizer = tiny_bert_tokenizer()
    config = LongformerConfig(vocab_size=99, attention_window=4, sep_token_id=tokenizer.sep_token_id, **sizes)
    model = hs.Model(LongformerForQuestionAnswering(config).eval(), tokenizer)
    ids = tokenizer(QUESTION, CONTEXT)["input_ids"]
    ids.insert(ids.index(tokenizer.sep_token_id), tokenizer.sep_token_id)  # three separators, as RoBERTa has
    trace = model.run(inputs={"input_ids": torch.tensor([ids])})
    n_question = ids.index(tokenizer.sep_token_id)
    assert next(iter(trace.layers.values())).global_tokens == tuple(range(n_question))
    assert trace.answers.are_spans


def test_a_saved_trace_keeps_its_spans(tmp_path):
    trace = question_model().run(QUESTION, pair=CONTEXT)
    assert hs.load_trace(trace.save(tmp_path / "trace")).span == trace.span


def test_what_has_no_span_says_so():
    plain = hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer()).run(QUESTION, pair=CONTEXT)
    with pytest.raises(NotRecordedError, match="no head for question answering"):
        _ = plain.span
    model = question_model()
    trace = model.run(QUESTION, pair=CONTEXT)
    with pytest.raises(InputError, match="no span of at most 30 tokens"):
        relevance(model, trace.inputs, target="a bird")
    with pytest.raises(InputError, match="answers once"):
        relevance(model, trace.inputs, position=2)
