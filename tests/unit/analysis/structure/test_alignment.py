"""Cross-attention as alignment: attention made by hand that follows known links, then the built-in translator."""

import numpy as np
import pytest
from made_layers import batch_layer, batch_of, in_pieces, ledger_of

import headscope as hs
from headscope.analysis.memory_table import MemoryTable
from headscope.analysis.structure.alignment import _Aligning, _by_site, _error_rates, _words, cross_alignment
from headscope.analysis.structure.word_aligner import Links
from headscope.corpora import Example
from headscope.errors import InputError
from headscope.progress import Progress
from headscope.sites import Head, Site

PAIRS = [
    ("one two three", "tri odin dva", [2, 0, 1]),
    ("the white house stands", "dom belyj stoit", [2, 1, 3]),
]


def links_of(order: list[int], n_source: int) -> Links:
    links = np.array(order)[:, None] == np.arange(n_source)
    return Links(links, links, links)


def count_links(shift: int, piece: int = 100) -> MemoryTable:
    """Two heads: one follows the links, `shift` steps early; one looks at the first word always."""
    examples, tokens, patterns, links = [], [], [], {}
    for number, (text, target, order) in enumerate(PAIRS):
        example = Example(f"made:{number}", text=text, target=target)
        source, written = in_pieces(text, piece), in_pieces(target, piece, marks=False)
        links[example.id] = links_of(order, len(text.split(" ")))
        pattern = np.zeros((2, len(written), len(source)))
        pattern[0, :, -1] = 0.1  # the end of the source always has something
        for at, token in enumerate(written):
            if token.word is not None:
                keys = [place for place, source_token in enumerate(source) if source_token.word == order[token.word]]
                pattern[0, at - shift, keys] = 0.9 / len(keys)
        pattern[1, :, 1] = 1.0
        examples.append(example)
        tokens.append({"encoder": source, "decoder": written})
        patterns.append(pattern)
    measure = _Aligning(links)
    measure._sums, measure._any = {}, Head("decoder", 0, 0, "cross")
    batch = batch_of(examples, tokens)
    layer = batch_layer(batch, patterns, Site("decoder", 0, "cross"), "encoder")
    table = MemoryTable(measure, len(PAIRS))
    table.take(ledger_of(measure, layer), 0)
    return table


@pytest.mark.parametrize("piece", [100, 3])
@pytest.mark.parametrize(("shift", "step", "other"), [(1, "writes", "reads"), (0, "reads", "writes")])
def test_attention_along_the_links_agrees_at_its_own_step_only(shift, step, other, piece):
    table = count_links(shift, piece)
    assert table.mean(f"{step} f1")["cross.L0H0"] == 1.0
    assert _error_rates(table, step)["cross.L0H0"] == 0.0
    assert table.mean(f"{other} f1")["cross.L0H0"] < 1.0


def test_figures_by_hand():
    table = count_links(1)
    # The head that looks at the first word is right for "odin" alone: 1 of 6 links.
    assert table.mean("writes f1")["cross.L0H1"] == pytest.approx(1 / 6)
    assert _error_rates(table, "writes")["cross.L0H1"] == pytest.approx(5 / 6)
    assert table.mean("writes f1").baselines[Head("decoder", 0, 1, "cross")] == pytest.approx((1 + 3 / 4) / 6)
    # The diagonal of three words on three is wrong throughout; three on four go to 0, 2, 3: right for one.
    diagonal = _by_site(table, "diagonal")[Site("decoder", 0, "cross")]
    assert diagonal.f1 == pytest.approx(1 / 6) and diagonal.error_rate == pytest.approx(5 / 6)
    assert _by_site(table, "forward")[Site("decoder", 0, "cross")].f1 == 1.0
    low, high = _error_rates(table, "writes").intervals[Head("decoder", 0, 1, "cross")]
    assert 0.0 <= low <= 5 / 6 <= high <= 1.0


def test_the_mean_over_a_layer_is_of_attention_not_of_scores():
    table = count_links(1)
    # 0.9 on the link against 1.0 on the first word: the mean of the two heads follows the second.
    assert _by_site(table, "writes layer")[Site("decoder", 0, "cross")].f1 == pytest.approx(1 / 6)
    assert _by_site(table, "writes all") == _by_site(table, "writes layer")


def test_words_are_those_of_the_tokens():
    model = hs.load("builtin:translate")
    text, target = "The doctor's house is old, isn't it?", "Дом доктора старый, не так ли?"
    inputs = model.read(text, target=target)
    for stack, sentence in (("encoder", text), ("decoder", target)):
        numbers = [token.word for token in inputs.tokens[stack] if token.word is not None]
        assert sorted(set(numbers)) == list(range(len(_words(sentence))))


def test_the_translator_against_the_aligner():
    pairs = [
        Example(f"made:{number}", text=f"{word} {two}.", target=f"{other} {another}.")
        for number, ((word, other), (two, another)) in enumerate(
            (first, second)
            for first in (("Tom", "Том"), ("Mary", "Мэри"), ("He", "Он"))
            for second in (("sleeps", "спит"), ("sings", "поёт"), ("reads", "читает"), ("works", "работает"))
        )
    ]
    done = []
    alignment = cross_alignment(hs.load("builtin:translate"), pairs, limit=8, more=pairs[8:], progress=done.append)
    assert done[-1] == Progress("examples", 8, 8) and (alignment.n_pairs, alignment.n_trained_on) == (8, 12)
    assert alignment.baselines["aligner, source to target"].f1 > 0.95 and alignment.baselines["diagonal"].f1 > 0.95
    assert len(alignment.f1["writes"]) == 32 and len(alignment.layers["writes"]) == 4
    best = alignment.f1["writes"].top(1)[0][1]
    assert best > 0.7 > alignment.f1["writes"].baseline and "no link" in str(alignment)


def test_what_does_not_translate_is_refused():
    with pytest.raises(InputError, match="no cross-attention"):
        cross_alignment(hs.load("builtin:gpt"), [Example("one", text="a", target="b")])
    with pytest.raises(InputError, match="no target"):
        cross_alignment(hs.load("builtin:translate"), ["A sentence."])
