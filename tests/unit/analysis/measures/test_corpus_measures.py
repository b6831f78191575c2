"""Which measures apply to a corpus; and that a corpus run gives what traces give, one by one."""

import pickle

import pytest
from made_treebank import HEADS, RELATIONS, TAGS, WORDS, example
from tiny_models import FAMILIES, tiny_bert_tokenizer, tiny_tokenizer

import headscope as hs
from headscope.analysis.measures.catalogue import MEASURES
from headscope.analysis.measures.corpus_contents import take_inventory
from headscope.analysis.measures.corpus_measures import streaming
from headscope.analysis.measures.grating_images import colours, gratings
from headscope.corpora import Example


def sentences(n):
    """Trees over words that the tiny tokenizers know in part, of different lengths; the second half are longer."""
    verbs = ("saw", "crossed", "read", "gave", "jumps")
    examples = []
    for at in range(n):
        words = (*WORDS[:3], verbs[at % 5], *(("the", "lazy", "dog", "because", "it", "was", "tired") * 2)[: at % 13])
        heads = (*HEADS[:4], *([3] * (len(words) - 4)))
        examples.append(
            example(
                words,
                (*TAGS[:4], *(["X"] * (len(words) - 4))),
                heads,
                (*RELATIONS[:4], *(["obj"] * (len(words) - 4))),
                f"s{at}",
            )
        )
    return examples


def names(measures):
    return {measure.name for measure in measures}


def test_every_measure_says_what_it_is_about_and_what_it_needs():
    for name, measure in MEASURES.items():
        assert measure.name == name and measure.term.meaning and measure.needs
        assert sum(way is not None for way in (measure.target, measure.function, measure.build)) == 1, name


def test_a_corpus_is_measured_by_what_it_has():
    plain = names(streaming(["One sentence.", "Another."]))
    assert {"confidence", "positional", "induction", "variability", "norm"} <= plain
    assert not plain & {"tags", "syntactic", "a_to_b", "patch_self", "rare_word", "hue"}
    assert names(streaming(sentences(3))) - plain == {"tags", "syntactic", "dependency_alignment"}
    assert {"a_to_b", "same_word_across"} <= names(streaming([("One.", "Two.")]))
    pictures = names(streaming(colours(2)))
    assert {"hue", "like_frequency", "patch_distance", "confidence"} <= pictures
    assert not pictures & {"induction", "variability", "names"}
    assert names(streaming(sentences(3), names=["tags", "hue"])) == {"tags"}


def test_measures_travel_to_workers():
    chosen = streaming(sentences(3))
    assert names(pickle.loads(pickle.dumps(chosen))) == names(chosen)


def test_an_inventory_counts_tokens_and_knows_of_cropped_pictures():
    model = hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer())
    contents = take_inventory([Example("a", text="it was it"), Example("b", text="it")], model)
    it_id = model.tokenizer.convert_tokens_to_ids("it")
    assert (
        contents.n_examples == 2 and contents.tokens[it_id] == 3 and not contents.crops and contents.tag_column is None
    )


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_run_over_a_corpus_gives_what_traces_give(family, tmp_path, monkeypatch):
    monkeypatch.setattr("headscope.analysis.measures.rare_words.N_FREQUENT", 3)
    monkeypatch.setattr("headscope.analysis.measures.catalogue.N_FREQUENT", 3)
    tokenizer = tiny_bert_tokenizer() if family == "bert" else tiny_tokenizer()
    model = hs.Model(FAMILIES[family].build(), tokenizer, name=family)
    examples = sentences(24)
    chosen = streaming(examples, model)
    scores = hs.runs.run(model, examples, chosen, tmp_path / "run", batch_size=5).scores()
    traces = [model.run(example.text) for example in examples]
    expected = hs.analysis.measure_all([measure.name for measure in chosen], traces, examples=examples, skip=True)
    assert set(scores) == set(expected) and len(scores) > 30
    assert {"rare_word", "variability", "norm", "positional", "syntactic/nsubj→head", "tags/to NOUN"} <= set(scores)
    for name, from_traces in expected.items():
        other = scores[name]
        assert dict(other) == pytest.approx(dict(from_traces), abs=2e-4, nan_ok=True), name
        assert other.baselines == pytest.approx(from_traces.baselines, abs=2e-4, nan_ok=True), name
        assert other.n_samples == from_traces.n_samples and other.settings == from_traces.settings, name
        for head, bounds in from_traces.intervals.items():
            assert other.intervals[head] == pytest.approx(bounds, abs=2e-3, nan_ok=True), name


def test_pictures_give_the_same_over_a_corpus_and_over_traces(tmp_path):
    model = hs.load("builtin:vit")
    examples = [*colours(3), *gratings(3)]
    chosen = [
        measure
        for measure in streaming(examples, model)
        if measure.name in ("hue", "frequency", "like_brightness", "patch_distance")
    ]
    scores = hs.runs.run(model, examples, chosen, tmp_path / "run", batch_size=4).scores()
    traces = [model.run(example.image) for example in examples]
    expected = hs.analysis.measure_all([measure.name for measure in chosen], traces, examples=examples)
    assert set(scores) == set(expected) and "hue/red" in scores and len(scores) == 9
    for name, from_traces in expected.items():
        assert dict(scores[name]) == pytest.approx(dict(from_traces), abs=1e-4, nan_ok=True), name
