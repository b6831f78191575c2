"""Layer probes: vectors with a tag planted at one depth, controls that stay at chance, then the built-in model."""

import threading

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.analysis.structure.probes import Words, layer_probes, probe
from headscope.corpora import Example
from headscope.errors import Cancelled, InputError
from headscope.progress import Progress

TAGS = ("NOUN", "VERB", "ADJ", "ADV")


def words_with_planted_tag(n_sentences: int = 120, length: int = 8, depth: int = 1) -> Words:
    """Three depths of noise; at one of them a direction for each tag. Each word is a form of its own kind."""
    rng = np.random.default_rng(0)
    n = n_sentences * length
    tags = rng.choice(len(TAGS), n, p=[0.4, 0.3, 0.2, 0.1])
    vectors = torch.tensor(rng.normal(size=(3, n, 12)), dtype=torch.float32)
    vectors[depth, torch.arange(n), torch.tensor(tags)] += 6.0
    forms = [f"w{rng.integers(60)}" for _ in range(n)]
    return Words(vectors, forms, [TAGS[tag] for tag in tags], np.repeat(np.arange(n_sentences), length))


def test_the_planted_depth_is_found_and_controls_stay_at_chance():
    probes = probe(words_with_planted_tag(), "upos")
    assert probes.best.depth == 1 and probes.best_layer == "L0"
    assert probes.best.accuracy > 0.95 and probes.best.macro_f1 > 0.95
    low, high = probes.best.interval
    assert low <= probes.best.accuracy <= high
    assert probes.majority == pytest.approx(0.4, abs=0.08)
    for depth in probes.depths:
        assert depth.shuffled < probes.majority + 0.08
        assert depth.control < probes.majority + 0.1  # vectors that do not know the form cannot learn its tag
        if depth.depth != 1:
            assert depth.accuracy < probes.majority + 0.08
    assert probes.best.selectivity > 0.4
    assert probes.n_words == {"train": 576, "dev": 192, "test": 192} and probes.n_tags == 4


def test_a_probe_that_knows_the_word_does_as_well_on_the_control_task():
    words = words_with_planted_tag()
    forms = sorted(set(words.forms))
    known = torch.nn.functional.one_hot(torch.tensor([forms.index(form) for form in words.forms])).float()
    by_form = [TAGS[forms.index(form) % 4] for form in words.forms]
    probes = probe(Words(known[None], words.forms, by_form, words.sentences), "upos")
    assert probes.by_word > 0.99 and probes.best.accuracy > 0.99 and probes.best.control > 0.99
    assert abs(probes.best.selectivity) < 0.01 and probes.best_layer == "embeddings"


def test_the_same_seed_gives_the_same_numbers():
    words = words_with_planted_tag(30)
    probes = probe(words, "upos", penalties=[1e-2])
    assert probes.depths == probe(words, "upos", penalties=[1e-2]).depths
    assert probes.depths != probe(words, "upos", penalties=[1e-2], seed=1).depths


def test_a_tag_that_training_never_saw_is_wrong():
    words = words_with_planted_tag(40)
    last = next(place for place in range(len(words.tags)) if words.sentences[place] == 39)
    tags = [*words.tags]
    tags[last] = "X"
    assert probe(words._replace(tags=tags), "upos").n_tags in (4, 5)


def tagged_sentence(number: int, *words: str) -> Example:
    ends = np.cumsum([len(word) + 1 for word in words])
    spans = tuple((int(end) - len(word) - 1, int(end) - 1) for word, end in zip(words, ends, strict=True))
    tags = tuple("DET" if word in ("the", "a") else "OTHER" for word in words)
    return Example(f"made:{number}", " ".join(words), words=words, spans=spans, tags={"upos": tags})


def test_a_real_model_by_its_words():
    animals = ["cat", "dog", "horse", "bird", "elephant", "rhinoceros"]
    corpus = [
        tagged_sentence(number, article, first, "saw", two, second)
        for number, (article, two, first, second) in enumerate(
            (article, two, first, second)
            for article in ("the", "a")
            for two in ("the", "a")
            for first in animals[:3]
            for second in animals[2:]
        )
    ]
    done = []
    probes = layer_probes(hs.load("builtin:bert"), corpus, limit=20, penalties=[1e-3], progress=done.append)
    assert len(probes.depths) == 7 and probes.best.accuracy == 1.0 and probes.by_word == 1.0
    assert sum(probes.n_words.values()) == 100  # a word in pieces is one word
    assert Progress("examples", 20, 20) in done and done[-1] == Progress("probing layers", 7, 7)
    assert "best on the dev part" in str(probes)


def test_what_cannot_be_probed_is_said():
    model = hs.load("builtin:bert")
    with pytest.raises(InputError, match="'ner': its columns are upos"):
        layer_probes(model, [tagged_sentence(0, "the", "cat")], "ner")
    with pytest.raises(InputError, match="at least 5 sentences"):
        layer_probes(model, [tagged_sentence(0, "the", "cat")])
    with pytest.raises(InputError, match="nothing to tell apart"):
        probe(words_with_planted_tag(20)._replace(tags=["NOUN"] * 160), "upos")
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        probe(words_with_planted_tag(20), "upos", cancel=stop)
