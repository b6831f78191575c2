"""BertViz's neuron view with only the import changed, on models it knows and on others."""

import numpy as np
import pytest
import tiny_models

import headscope as hs
from headscope.compat.bertviz.neuron_view import get_attention, show
from headscope.compat.bertviz.views import Html
from headscope.errors import LoadError


@pytest.fixture(scope="module")
def bert():
    """Model and tokenizer as BertViz's notebook loads them."""
    from headscope.compat.bertviz.transformers_neuron_view import BertModel, BertTokenizer

    model = BertModel.from_pretrained("builtin:bert", output_attentions=True)
    return model, BertTokenizer.from_pretrained("builtin:bert", do_lower_case=True)


def test_the_notebook_runs_with_only_the_import_changed(bert):
    model, tokenizer = bert
    page = show(model, "bert", tokenizer, "The cat sat on the mat", "The cat lay on the rug", layer=2, head=3,
                html_action="return")  # fmt: skip
    assert isinstance(page, Html)
    assert 'data-key="neuron/L2H3"' in page.data
    assert "L2H3: neuron view" in page.data


def test_outside_a_notebook_the_view_is_returned(bert):
    view = show(*bert[:1], "bert", bert[1], "The cat sat")
    assert isinstance(view, hs.View)
    assert (view.kind, view.theme, view.selection.site, view.selection.head) == ("neuron", "dark", "L0", 0)


def test_attention_is_described_as_bertviz_does(bert):
    model, tokenizer = bert
    attention = get_attention(model, "bert", tokenizer, "The cat sat", "The dog", include_queries_and_keys=True)
    assert set(attention) == {"all", "aa", "ab", "ba", "bb"}
    trace = hs.Model(model, tokenizer).run("The cat sat", pair="The dog")
    n_layers, n_heads = len(trace.layers), trace.layers[trace.heads[0].site].n_heads
    every = attention["all"]
    assert len(every["attn"]) == n_layers
    assert np.array(every["attn"][1])[2] == pytest.approx(trace.pattern("L1H2"), abs=1e-6)
    assert np.array(every["queries"][1])[2] == pytest.approx(trace.query("L1H2"), abs=1e-6)
    assert np.array(every["keys"][1])[2] == pytest.approx(trace.key("L1H2"), abs=1e-6)
    texts = every["left_text"]
    assert texts[0] == "[CLS]" and texts[-1] == "[SEP]" and texts == every["right_text"]
    first, second = attention["ab"]["left_text"], attention["ab"]["right_text"]
    assert first + second == texts
    assert first[-1] == second[-1] == "[SEP]"
    assert np.array(attention["ba"]["attn"][0]).shape == (n_heads, len(second), len(first))
    joined = np.block([[np.array(attention[a + b]["attn"][0])[1] for b in "ab"] for a in "ab"])
    assert joined == pytest.approx(trace.pattern("L0H1"), abs=1e-6)
    assert len(attention["ab"]["queries"][0][0]) == len(first)
    assert len(attention["ab"]["keys"][0][0]) == len(second)


def test_one_sentence_has_no_pairs_and_vectors_come_when_asked_for(bert):
    attention = get_attention(bert[0], "bert", bert[1], "The cat sat")
    assert set(attention) == {"all"}
    assert set(attention["all"]) == {"attn", "left_text", "right_text"}


def test_heads_that_share_keys_each_have_them():
    model, tokenizer = tiny_models.FAMILIES["llama"].build(), tiny_models.tiny_tokenizer()
    attention = get_attention(model, "llama", tokenizer, "the cat sat", include_queries_and_keys=True)["all"]
    keys = np.array(attention["keys"][0])
    assert keys.shape[0] == np.array(attention["queries"][0]).shape[0] == tiny_models.N_HEADS
    assert (keys[0] == keys[1]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sentence_a": ""}, "Sentence A is required"),
        ({"layer": 99}, "layers 0 to"),
        ({"head": 99}, "goes beyond"),
        ({"display_mode": "blue"}, "choose 'dark' or 'light'"),
        ({"html_action": "print"}, "must be 'view' or 'return'"),
    ],
)
def test_mistakes_are_told(bert, options, message):
    with pytest.raises(ValueError, match=message):
        show(bert[0], "bert", bert[1], **({"sentence_a": "The cat"} | options))


def test_a_class_that_transformers_does_not_have_is_named():
    from headscope.compat.bertviz import transformers_neuron_view

    with pytest.raises(LoadError, match="has no TransfoXLHugeModel"):
        _ = transformers_neuron_view.TransfoXLHugeModel
    with pytest.raises(AttributeError):
        _ = transformers_neuron_view.cached_path
