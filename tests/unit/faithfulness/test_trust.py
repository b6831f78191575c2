"""`hs.trust` end to end: models whose verdict is known, reports on disk, and input that does not fit."""

import functools
import json
from dataclasses import replace

import pytest
import torch
import transformers as hf
from hand_made_taggers import attention_explains, random_weights, tagger, texts
from tiny_models import tiny_bert_tokenizer

import headscope as hs
from headscope.corpora import Example
from headscope.errors import Cancelled, HeadscopeError, InputError, LoadError
from headscope.faithfulness import AdversaryOptions, HeadTests, trust_run
from headscope.faithfulness.seed_change import seed_change
from headscope.faithfulness.trust_measure import TrustMeasure
from headscope.faithfulness.verdict_rule import VerdictPart

EXPLAINS, IGNORED, RANDOM = (
    functools.cache(make) for make in (attention_explains, lambda: attention_explains(is_ignored=True), random_weights)
)
TESTS = HeadTests(n_permutations=3, n_random=2, adversary=AdversaryOptions(patterns=2, steps=10, rate=0.3))
FAST = HeadTests(n_permutations=2, n_random=1, adversary=None)


def test_a_head_whose_attention_is_the_explanation_is_supported(tmp_path):
    report = hs.trust(EXPLAINS(), texts(), folder=tmp_path / "trust", tests=TESTS)
    trust = report.heads["L0H0"]
    assert trust.verdict == "supported" and [part.outcome for part in trust.parts] == ["pass"] * 3
    assert trust.figures["tau_left_out"] > 0.9 and trust.figures["change_uniform"] > 0.5
    assert report.counts()["supported"] == 1 and report.about["task"] == "tagging"
    # Layers are not searched for adversaries, so they cannot be exclusive, and never supported.
    assert report.whole is not None and report.whole.part("exclusive").outcome == "not tested"
    assert report.whole.verdict == "mixed"


def test_a_head_that_the_output_ignores_is_not_supported(tmp_path):
    report = hs.trust(IGNORED(), texts(), folder=tmp_path / "trust", tests=TESTS)
    assert report.heads["L0H0"].verdict == "not supported"
    assert report.heads["L0H0"].part("need").outcome == report.heads["L0H0"].part("exclusive").outcome == "fail"


def test_no_head_of_a_model_with_random_weights_is_supported(tmp_path):
    report = hs.trust(RANDOM(), texts(), folder=tmp_path / "trust", tests=FAST)
    assert report.counts() == {"supported": 0, "mixed": 0, "not supported": 4, "not tested": 0}


@pytest.fixture(scope="module")
def ignored(tmp_path_factory) -> hs.TrustReport:
    folder = tmp_path_factory.mktemp("reports") / "trust"
    return hs.trust(IGNORED(), texts(10), folder=folder, tests=FAST)


def test_a_report_is_read_back_as_it_was_written(ignored):
    again = hs.TrustReport.load(ignored.folder)
    assert again.to_json() == ignored.to_json() and "not supported" in repr(again)
    assert again.heads["L0H0"].sentences == ignored.heads["L0H0"].sentences


def test_the_page_names_every_verdict_in_words_and_needs_nothing_else(ignored):
    page = ignored.page.read_text(encoding="utf-8")
    assert "○ not supported" in page and 'id="L0H0"' in page and "all heads" in page
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")


def test_the_table_has_a_row_for_every_head_layer_and_the_model(ignored):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(ignored.folder / "trust.parquet").to_pylist()
    assert [(row["scope"], row["name"]) for row in rows] == [("head", "L0H0"), ("layer", "L0"), ("model", "all heads")]
    assert rows[0]["verdict"] == "not supported" and rows[0]["need_value"] < 0.01


def test_a_damaged_report_is_refused(ignored, tmp_path):
    data = json.loads((ignored.folder / "trust.json").read_text())
    data["heads"][0]["verdict"] = "supported"
    (tmp_path / "trust.json").write_text(json.dumps(data))
    with pytest.raises(LoadError, match="does not match its checksum"):
        hs.TrustReport.load(tmp_path)
    with pytest.raises(LoadError, match="there is no report of trust"):
        hs.TrustReport.load(tmp_path / "elsewhere")


def test_a_folder_of_others_is_left_alone(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(LoadError, match="is not a report of trust"):
        hs.trust(EXPLAINS(), texts(10), folder=tmp_path, tests=FAST)
    assert (tmp_path / "report.html").read_text() == "mine"


def test_a_stopped_run_goes_on_where_it_was(tmp_path, monkeypatch):
    model, n_calls, figures = EXPLAINS(), 0, TrustMeasure._figures

    def figures_until_stopped(self, question, references):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 14:  # 4 texts for heads, layers and model are a shard
            raise KeyboardInterrupt
        return figures(self, question, references)

    monkeypatch.setattr(TrustMeasure, "_figures", figures_until_stopped)
    with pytest.raises(Cancelled, match="stopped with 1 of 3 shards done"):
        hs.trust(model, texts(10), folder=tmp_path / "trust", tests=FAST)
    resumed = hs.trust(model, texts(10), folder=tmp_path / "trust", tests=FAST)
    assert n_calls == 14 + 6 * 3
    assert resumed.to_json() == hs.trust(model, texts(10), folder=tmp_path / "other", tests=FAST).to_json()


def test_few_texts_are_not_tested_and_say_so():
    report = hs.trust(EXPLAINS(), texts(3), tests=FAST)
    trust = report.heads["L0H0"]
    assert trust.verdict == "not tested" and "3 texts could be tested, at least 10 are needed" in trust.sentences[1]


def test_why_some_texts_were_not_tested_does_not_hide_why_a_part_was_not():
    reason = "no adversary was searched for"
    few = VerdictPart("agreement", "not tested", 0.1, 0.0, 0.2, 0.0, float("nan"), 9, "9 texts could be tested")
    open_part = VerdictPart("exclusive", "not tested", 0.1, 0.0, 0.2, 0.5, 0.3, 12, reason)
    trust = trust_run._head_trust(
        "L0H0", [few, replace(few, name="need"), open_part], {}, "in 3 texts it saw too little"
    )
    assert trust.part("agreement").reason == "9 texts could be tested; in 3 texts it saw too little"
    assert trust.part("exclusive").reason == reason


def test_every_text_is_a_sample_however_many_there_are(monkeypatch):
    monkeypatch.setattr("headscope.runs.batch_plan.MAX_BLOCKS", 4)
    report = hs.trust(IGNORED(), texts(10), tests=FAST)
    assert report.heads["L0H0"].n_texts == 10


def test_a_scope_whose_rows_do_not_fit_is_left_out_and_the_rest_is_tested(monkeypatch):
    # 8 tokens: 64 cells for a head, 256 for all heads
    monkeypatch.setattr("headscope.faithfulness.head_tests.CELLS", 200)
    monkeypatch.setattr("headscope.faithfulness.model_attention.CELLS", 200)
    report = hs.trust(RANDOM(), texts(2), tests=replace(FAST, query_rows="all", erasure_share=None))
    assert {trust.n_texts for trust in report.heads.values()} == {2}
    assert report.whole is not None and report.whole.verdict == "not tested"
    assert report.about["notes"] == [
        "2 more texts were not tested for all heads together: the rows of these heads have 256 cells, more than 200: "
        "give fewer heads at once, or replace the rows of the answer only."
    ]


def test_layers_have_the_epsilon_of_the_adversary_without_its_search():
    adversary = AdversaryOptions(patterns=1, steps=1, epsilon=1.0)
    report = hs.trust(EXPLAINS(), texts(10), tests=HeadTests(n_permutations=1, adversary=adversary))
    assert report.layers[0].figures["farthest_share"] > 0.5  # every pattern that was tried counts
    assert report.layers[0].part("exclusive").outcome == "fail"


def test_texts_that_are_too_short_are_counted_and_if_all_are_the_run_is_refused():
    report = hs.trust(EXPLAINS(), [*texts(10), "a", "b"], tests=FAST)
    assert report.about["n_texts"] == 10 and report.about["notes"][0].startswith("2 of 12 texts were not tested")
    with pytest.raises(InputError, match="none of 2 texts could be tested, the first because the text has fewer than"):
        hs.trust(EXPLAINS(), ["a", "b"], tests=FAST)


def classifier(n_labels: int = 2) -> hs.Model:
    tokenizer = tiny_bert_tokenizer()
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 1}
    config = hf.BertConfig(vocab_size=len(tokenizer), num_labels=n_labels, **sizes)
    return hs.Model(hf.BertForSequenceClassification(config).eval(), tokenizer)


def labelled(n_labels: int) -> list[Example]:
    return [Example(str(place), text=text, label=str(place % n_labels)) for place, text in enumerate(texts(10))]


def test_labels_give_a_score_and_labels_that_do_not_fit_are_refused():
    model = classifier()
    report = hs.trust(model, labelled(2), tests=FAST, heads=["L0H1"])
    assert report.about["score"]["metric"] == "accuracy" and report.about["score"]["n"] == 10
    assert list(report.heads) == [hs.Head("main", 0, 1)]
    assert "<tr><th><th>H1<tr><th>L0<td>" in report.page.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="the data has 3 classes"):
        hs.trust(model, labelled(3), tests=FAST)


def test_models_that_differ_in_their_seed_set_the_threshold():
    module, tokenizer = tagger(n_layers=2, n_heads=2)
    other = hs.Model(module, tokenizer)
    report = hs.trust(RANDOM(), texts(10), tests=FAST, heads=["L1"], others=[other])
    assert report.about["seed_change"] == 0.0  # the same weights
    assert report.heads["L1H0"].part("need").threshold == 0.05
    with pytest.raises(HeadscopeError, match="has 2 answers and"):
        hs.trust(classifier(3), texts(10), tests=FAST, heads=["L0H0"], others=[classifier()])


def test_a_text_that_is_too_long_does_not_end_the_comparison_of_seeds():
    model = RANDOM()
    examples = [Example(str(place), text=text) for place, text in enumerate([" ".join("abcdefgh" * 9), *texts(2)])]
    assert seed_change(model, [model], "tagging", examples) == 0.0
    with pytest.raises(InputError, match="no text could be answered"):
        seed_change(model, [model], "tagging", examples[:1])


def test_a_model_without_a_head_for_any_task_is_refused_before_anything_is_written(tmp_path):
    tokenizer = tiny_bert_tokenizer()
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 1}
    bare = hs.Model(hf.BertModel(hf.BertConfig(vocab_size=len(tokenizer), **sizes)).eval(), tokenizer)
    with pytest.raises(InputError, match="has no head for such a task"):
        hs.trust(bare, texts(10), folder=tmp_path / "trust")
    assert not (tmp_path / "trust").exists()
