"""The tests on a model: rows in place of others, answers, and the quick set."""

from dataclasses import replace

import pytest
import torch
import transformers as hf
from hand_made_taggers import attention_explains, random_weights, texts
from tiny_models import GPT, tiny, tiny_bert_tokenizer, tiny_tokenizer

import headscope as hs
from headscope import faithfulness as faith
from headscope.errors import BudgetError, Cancelled, InputError
from headscope.faithfulness import HeadTests, head_tests, quick_set
from headscope.faithfulness import model_attention as module_of_rows
from headscope.faithfulness.answer_tokens import AnswerTokens
from headscope.faithfulness.head_tests import head_figures
from headscope.faithfulness.model_attention import ModelAttention
from headscope.faithfulness.questions import countable_tokens, question_of, task_name
from headscope.progress import Cancel

TEXT = "the cat sat on the mat and the dog sat on the log"
FAST = HeadTests(n_permutations=2, adversary=None)


def bert_config(tokenizer, n_layers: int, **more) -> hf.BertConfig:
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    return hf.BertConfig(**sizes, num_hidden_layers=n_layers, **more)


@pytest.fixture(scope="module")
def gpt() -> hs.Model:

    return hs.Model(tiny(hf.GPT2LMHeadModel, hf.GPT2Config(**GPT)), tiny_tokenizer(), name="tiny")


@pytest.fixture(scope="module")
def explaining() -> hs.Model:
    return attention_explains()


def question_for(model: hs.Model, text: str = TEXT, seed: int = 0):
    return question_of(model, task_name(model), model.read(text), seed=seed)


def rows_of_all_heads(model: hs.Model, query_rows: str = "answer") -> ModelAttention:
    question = question_for(model)
    queries = question.positions if query_rows == "answer" else range(len(question.tokens[question.stack]))
    return ModelAttention(model, question, [[head] for head in model.heads], queries)


def test_the_rows_as_they_are_give_the_answer_as_it_is(gpt):
    attention = rows_of_all_heads(gpt)
    again = attention.answer(attention.rows.pattern[None])[0]
    torch.testing.assert_close(again, attention.before.expand_as(again), atol=1e-6, rtol=0)
    assert attention.rows.pattern.sum(-1).allclose(torch.ones(()))


@pytest.mark.parametrize("query_rows", ["answer", "all"])
def test_uniform_rows_are_those_of_the_intervention(gpt, query_rows):
    attention = rows_of_all_heads(gpt, query_rows)
    question = attention.question
    answers = attention.answer(faith.REPLACEMENTS["uniform"](attention.rows)[None])[0]
    tokens = list(question.positions) if query_rows == "answer" else None
    for place in (0, 3, len(gpt.heads) - 1):
        trace = gpt.run(question.inputs, [hs.uniform(gpt.heads[place], tokens=tokens)], record="full")
        expected = trace.logits[question.positions[0]].softmax(-1)
        torch.testing.assert_close(answers[place], expected, atol=1e-5, rtol=0)


def test_a_silenced_head_is_that_of_the_intervention(gpt):
    attention = rows_of_all_heads(gpt)
    silenced = attention.silenced()
    for place in (1, len(gpt.heads) - 1):
        trace = gpt.run(attention.question.inputs, [hs.silence(gpt.heads[place])], record="full")
        torch.testing.assert_close(silenced[place], trace.logits[-1].softmax(-1), atol=1e-5, rtol=0)


def test_a_layer_is_replaced_at_once(gpt):
    question = question_for(gpt)
    heads = [head for head in gpt.heads if head.layer == 1]
    attention = ModelAttention(gpt, question, [heads], question.positions)
    answer = attention.answer(faith.REPLACEMENTS["uniform"](attention.rows)[None])[0, 0]
    trace = gpt.run(question.inputs, [hs.uniform("L1", tokens=list(question.positions))], record="full")
    torch.testing.assert_close(answer, trace.logits[-1].softmax(-1), atol=1e-5, rtol=0)


def test_nothing_looks_ahead_in_a_causal_model(gpt):
    rows = rows_of_all_heads(gpt, "all").rows
    future = torch.ones(rows.pattern.shape[1:]).triu(1).bool()
    assert not rows.visible[:, future].any() and rows.visible[:, ~future].all()
    for pattern in (*faith.permutations(rows, 3), faith.REPLACEMENTS["uniform"](rows)):
        assert (pattern[:, future] == 0).all()


def test_rows_that_would_not_fit_are_refused(gpt, monkeypatch):
    monkeypatch.setattr(module_of_rows, "CELLS", 10)
    with pytest.raises(BudgetError, match="give fewer heads at once"):
        rows_of_all_heads(gpt)


def test_figures_do_not_depend_on_how_many_heads_share_a_pass(gpt, monkeypatch):
    groups = [[head] for head in gpt.heads[2:5]]
    together = head_figures(gpt, question_for(gpt), groups, FAST)
    monkeypatch.setattr("headscope.faithfulness.head_tests.CELLS", 1)
    monkeypatch.setattr(module_of_rows, "_MOST_COPIES", 3)
    apart = head_figures(gpt, question_for(gpt), groups, FAST)
    for name, values in together.by_name.items():
        if name not in ("change_permuted", "tau_permuted", "farthest", "farthest_share"):  # random orders differ
            torch.testing.assert_close(values, apart.by_name[name], atol=1e-5, rtol=0, equal_nan=True)


def test_the_median_of_two_orders_is_their_mean(gpt):
    attention = rows_of_all_heads(gpt)
    moved = faith.output_change(attention.before.expand(len(gpt.heads), -1), attention.answer(
        faith.permutations(attention.rows, 2)))  # fmt: skip
    figures = head_figures(gpt, question_for(gpt), None, FAST).by_name["change_permuted"]
    torch.testing.assert_close(figures, moved.mean(0), atol=1e-6, rtol=0)
    assert (moved[0] != moved[1]).any()
    badges = faith.quick_check(gpt, attention.question.inputs, n_permutations=2)
    by_hand = [badge.figures["change_permuted"] for badge in badges.values()]
    torch.testing.assert_close(torch.tensor(by_hand)[:8], moved.mean(0)[:8], atol=1e-6, rtol=0)  # 8 share a draw


def test_groups_may_differ_in_their_number_of_heads(gpt):
    groups, tests = [gpt.heads[:1], gpt.heads[1:3], gpt.heads[3:4]], replace(FAST, erasure_share=None)
    figures = head_figures(gpt, question_for(gpt), groups, tests)
    assert figures.heads == tuple(group[0] for group in groups)
    for place, group in enumerate(groups):
        alone = head_figures(gpt, question_for(gpt), [group], tests).by_name["change_uniform"]
        torch.testing.assert_close(figures.by_name["change_uniform"][place : place + 1], alone, atol=1e-6, rtol=0)


def test_an_adversary_is_searched_for_a_few_heads_at_a_time_without_gradients_of_parameters(gpt, monkeypatch):
    n_heads_of_searches, needs_gradient, search = [], [], head_tests.adversaries

    def count_heads(rows, answer, options, **more):
        n_heads_of_searches.append(len(rows.pattern))

        def watched(patterns):
            hook = gpt.module.transformer.h[0].register_forward_hook(
                lambda *_: needs_gradient.append(any(parameter.requires_grad for parameter in gpt.module.parameters()))
            )
            try:
                return answer(patterns)
            finally:
                hook.remove()

        return search(rows, watched if len(n_heads_of_searches) == 1 else answer, options, **more)

    gpt.module.requires_grad_(True)
    monkeypatch.setattr(head_tests, "adversaries", count_heads)
    tests = HeadTests(n_permutations=1, adversary=faith.AdversaryOptions(patterns=2, steps=1), always_search=True)
    question, groups = question_for(gpt), [[head] for head in gpt.heads[:3]]
    head_figures(gpt, question, groups, tests)
    assert n_heads_of_searches == [3]
    # Room for 4 copies is room for 2 heads of 2 patterns.
    attention = ModelAttention(gpt, question, groups, question.positions)
    n_cells = module_of_rows._GRAPH_CELLS // attention.most_copies_with_gradient
    monkeypatch.setattr(module_of_rows, "_GRAPH_CELLS", 5 * n_cells)
    assert attention.most_copies_with_gradient in (4, 5)
    head_figures(gpt, question, groups, tests)
    assert n_heads_of_searches == [3, 2, 1]
    assert needs_gradient[0] is False and all(parameter.requires_grad for parameter in gpt.module.parameters())


def test_without_a_search_the_epsilon_of_the_adversary_still_counts(gpt):
    lenient = HeadTests(n_permutations=1, adversary=faith.AdversaryOptions(epsilon=1.0))
    strict = HeadTests(n_permutations=1, adversary=faith.AdversaryOptions(tolerance=0.0, epsilon=0.0))
    far, near = (
        head_figures(gpt, question_for(gpt), [[head] for head in gpt.heads[:2]], tests, search=False).by_name[
            "farthest"
        ]
        for tests in (lenient, strict)
    )
    assert (far > near).all()


def test_edits_that_name_tokens_are_refused_where_tokens_are_deleted(gpt):
    question, groups = question_for(gpt), [[gpt.heads[0]]]
    with pytest.raises(InputError, match=r"names tokens by their place, which moves where .* choose removal='mask'"):
        head_figures(gpt, question, groups, FAST, interventions=[hs.uniform("L1H0", tokens=[1])])
    figures = head_figures(gpt, question, groups, FAST, interventions=[hs.uniform("L1H0")])
    assert figures.by_name["change_uniform"].isfinite().all()


def test_a_run_that_is_cancelled_stops(gpt):
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Cancelled):
        head_figures(gpt, question_for(gpt), None, FAST, cancel=cancel)


# What is asked


def test_the_next_token_is_asked_at_a_place_and_what_follows_is_cut_off(gpt):
    question = question_for(gpt)
    assert question.positions == (len(question.tokens["main"]) - 1,)
    assert len(question.tokens["main"]) < len(gpt.read(TEXT).tokens["main"])
    assert question_for(gpt).positions == question.positions
    assert len({question_for(gpt, seed=seed).positions for seed in range(8)}) > 1


def test_a_masked_model_is_asked_for_a_token_that_is_masked_for_the_purpose():
    tokenizer = tiny_bert_tokenizer()
    config = bert_config(tokenizer, 2, max_position_embeddings=64)
    model = hs.Model(tiny(hf.BertForMaskedLM, config), tokenizer)
    question = question_for(model)
    ids = question.inputs.model_inputs["input_ids"]
    assert int(ids[question.positions[0]]) == tokenizer.mask_token_id
    assert question.positions[0] not in countable_tokens(question)
    # Without the mask token itself, deleting a token before it moves it up.
    tokens = AnswerTokens(model, question)
    place = question.positions[0]
    inputs = tokens.without([(1,)])
    ids_without = torch.cat([ids[:1], ids[2:]])[None]
    with torch.no_grad():
        logits = model.module(input_ids=ids_without, token_type_ids=torch.zeros_like(ids_without)).logits
    torch.testing.assert_close(inputs[0], logits[0, place - (place > 1)].softmax(-1), atol=1e-5, rtol=0)


def test_texts_that_are_too_short_are_refused_with_the_reason(gpt, explaining):
    for model, text in ((gpt, "the"), (explaining, "a"), (explaining, "a b c")):
        with pytest.raises(InputError, match="fewer than 3 tokens to attend to"):
            question_for(model, text)


def test_models_without_a_task_head_are_refused():
    tokenizer = tiny_bert_tokenizer()
    config = bert_config(tokenizer, 1)
    bare = hs.Model(tiny(hf.BertModel, config), tokenizer)
    with pytest.raises(InputError, match="has no head for such a task"):
        task_name(bare)
    classifier = hs.Model(tiny(hf.BertForSequenceClassification, config), tokenizer)
    with pytest.raises(InputError, match="cannot do tagging: it can do sequence_classification"):
        task_name(classifier, "tagging")
    with pytest.raises(InputError, match="is not tested on 'translation'"):
        task_name(classifier, "translation")


def test_models_whose_classes_do_not_exclude_each_other_are_refused():
    tokenizer = tiny_bert_tokenizer()
    for options in ({"num_labels": 1}, {"num_labels": 3, "problem_type": "multi_label_classification"}):
        model = hs.Model(tiny(hf.BertForSequenceClassification, bert_config(tokenizer, 1, **options)), tokenizer)
        with pytest.raises(InputError, match=r"answers of which exactly one is right: .* has num_labels="):
            task_name(model)
        with pytest.raises(InputError, match="answers of which exactly one is right"):
            faith.quick_check(model, TEXT)


def test_a_causal_classifier_without_a_padding_token_is_refused():
    model = hs.Model(tiny(hf.GPT2ForSequenceClassification, hf.GPT2Config(**GPT, num_labels=2)), tiny_tokenizer())
    model.module.config.pad_token_id = None
    with pytest.raises(InputError, match="has no padding token, without which it classifies one text at a time"):
        task_name(model)
    model.module.config.pad_token_id = 0
    assert task_name(model) == "sequence_classification"


def test_a_causal_tagger_is_asked_at_a_word_and_what_follows_is_cut_off():
    model = hs.Model(tiny(hf.GPT2ForTokenClassification, hf.GPT2Config(**GPT, num_labels=3)), tiny_tokenizer())
    n_tokens = len(model.read(TEXT).tokens["main"])
    for seed in range(8):
        question = question_for(model, seed=seed)
        assert question.positions == (len(question.tokens["main"]) - 1,)
        assert max(countable_tokens(question)) < question.positions[0] < n_tokens
        assert len(countable_tokens(question)) >= 3
    with torch.no_grad():
        logits = model.module(input_ids=model.read(TEXT).model_inputs["input_ids"][None]).logits
    answer = AnswerTokens(model, question).before
    torch.testing.assert_close(answer, logits[0, question.positions[0]].softmax(-1), atol=1e-5, rtol=0)


# What the answer depends on


def test_an_answer_that_depends_on_no_attention_is_refused():
    tokenizer = tiny_bert_tokenizer()
    model = hs.Model(tiny(hf.BertForSequenceClassification, bert_config(tokenizer, 1, num_labels=2)), tokenizer)
    torch.nn.init.zeros_(model.module.classifier.weight)
    with pytest.raises(InputError, match="does not depend on the attention of its last layer"):
        AnswerTokens(model, question_for(model)).gradient()


def test_a_classifier_reads_its_first_token_and_its_gradient_is_that_of_the_embeddings():
    tokenizer = tiny_bert_tokenizer()
    config = bert_config(tokenizer, 2, num_labels=3)
    model = hs.Model(tiny(hf.BertForSequenceClassification, config), tokenizer)
    question = question_for(model)
    importance, reads = AnswerTokens(model, question).gradient()
    assert reads == [0] and question.positions == ()
    # By hand: the layers written out with the patterns as they are.
    ids = question.inputs.model_inputs["input_ids"][None]
    embeddings = model.module.bert.embeddings(input_ids=ids).detach().requires_grad_()
    trace = model.run(question.inputs, record="heads")
    by_hand = _gradient_by_hand(model, embeddings, {head: torch.tensor(trace.pattern(head)) for head in model.heads})
    torch.testing.assert_close(importance, by_hand, atol=1e-5, rtol=1e-3)


def _gradient_by_hand(model: hs.Model, embeddings: torch.Tensor, patterns: dict) -> torch.Tensor:
    """|Σ e · ∂p/∂e| of a BERT classifier, its layers written out with given patterns."""
    x = embeddings
    bert = model.module.bert
    for number, layer in enumerate(bert.encoder.layer):
        value = layer.attention.self.value(x).unflatten(-1, (2, -1)).transpose(1, 2)
        pattern = torch.stack([patterns[head] for head in model.heads if head.layer == number])[None]
        mixed = (pattern.float() @ value).transpose(1, 2).flatten(2)
        x = layer.attention.output(mixed, x)
        x = layer.output(layer.intermediate(x), x)
    probabilities = model.module.classifier(bert.pooler(x)).softmax(-1)
    return faith.gradient_times_input(probabilities.amax(-1), embeddings)[0]


def test_removal_by_a_token_that_the_tokenizer_lacks_is_refused(gpt):
    gpt_2 = hs.load("builtin:gpt")
    with pytest.raises(InputError, match="has no mask token: choose removal='delete'"):
        head_figures(gpt_2, question_for(gpt_2), None, HeadTests(removal="mask"))
    with pytest.raises(InputError, match="query_rows is"):
        HeadTests(query_rows="some")  # type: ignore[arg-type]


@pytest.mark.parametrize("removal", ["delete", "mask", "unknown"])
def test_each_way_of_removal_ranks_the_tokens_of_the_hand_made_model_alike(explaining, removal):
    question = question_for(explaining, texts()[0])
    tokens = AnswerTokens(explaining, question, removal=removal)
    gradient, reads = tokens.gradient()
    assert reads == list(question.positions)
    agreement = faith.rank_agreement(tokens.left_out()[None], gradient[None], tokens.countable[None])
    assert float(agreement.tau) > 0.8


# The quick set


def test_the_quick_set_refutes_a_head_that_is_not_needed_and_never_supports():
    ignored = faith.quick_check(attention_explains(is_ignored=True), texts()[0])
    assert [badge.verdict for badge in ignored.values()] == ["not supported"]
    needed = faith.quick_check(attention_explains(), texts()[0], "L0H0")["L0H0"]
    assert needed.verdict == "mixed" and needed.figures["tau_gradient"] > 0.9
    assert (
        needed.sentence.startswith("Permuting the pattern, and making it uniform, changes this answer (")
        and needed.to_json()["head"] == "L0H0"
    )


def test_the_quick_set_says_which_change_is_small():
    figures = {"change_permuted": 0.0, "change_uniform": 0.7, "farthest_share": 0.2, "tau_gradient": 0.1}
    sink = quick_set._badge(hs.Head("main", 0, 0), figures, None, "")
    assert sink.verdict == "mixed"
    assert sink.sentence.startswith("Making the pattern uniform changes this answer; permuting it hardly does, but ")
    far = quick_set._badge(hs.Head("main", 0, 0), figures | {"farthest_share": 0.8}, None, "")
    assert far.verdict == "not supported" and "which can be permuted with hardly a change (" in far.sentence


def test_the_quick_set_gives_a_badge_to_every_head_and_reports_progress():
    model, heard = random_weights(), []
    badges = faith.quick_check(model, texts()[0], progress=heard.append)
    assert list(badges) == model.heads and {badge.verdict for badge in badges.values()} == {"not supported"}
    assert heard[-1].done == heard[-1].total == len(model.heads)


def test_the_quick_set_explains_the_mask_that_is_there_and_the_token_that_comes_next(gpt):
    bert = hs.load("builtin:bert")
    trace = bert.run("The doctor asked the [MASK] a question.")
    badge = faith.quick_check(bert, trace, "L5H3")["L5H3"]
    assert badge.answer.endswith(f"at token {trace.answers.positions[0]}")
    last = len(gpt.read(TEXT).tokens["main"]) - 1
    assert faith.quick_check(gpt, TEXT, "L0H0")["L0H0"].answer.endswith(f"at token {last}")
    with pytest.raises(InputError, match="one input at a time"):
        faith.quick_check(gpt, [TEXT, TEXT])
