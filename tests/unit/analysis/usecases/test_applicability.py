"""Use cases asked of models that they do not fit, or of nothing: refused in words, before anything is run."""

import pytest

import headscope as hs
from headscope.analysis import antecedents, between_sentences, bias, decay
from headscope.errors import InputError


@pytest.mark.parametrize("case", [bias, antecedents, decay])
def test_a_model_that_reads_no_text_or_two_is_refused(case):
    with pytest.raises(InputError, match=r"does not fit builtin:translate: .* a source and a target"):
        case(hs.load("builtin:translate"))
    with pytest.raises(InputError, match="does not fit builtin:vit: it needs a model that reads text"):
        case(hs.load("builtin:vit"))


def test_pairs_need_a_model_that_reads_both_ways():
    with pytest.raises(InputError, match=r"does not fit builtin:gpt: .* pairs of sentences both ways"):
        between_sentences(hs.load("builtin:gpt"))


def test_distances_need_texts_long_enough():
    gpt = hs.load("builtin:gpt")
    with pytest.raises(InputError, match="decay needs texts"):
        decay(gpt, [])
    with pytest.raises(InputError, match=r"the longest has \d tokens, and 16 is the least"):
        decay(gpt, ["short one."])
