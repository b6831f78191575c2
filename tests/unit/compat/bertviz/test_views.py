"""BertViz's functions: its signatures, its README, its mistakes said the same way, and none of its faults."""

import base64
import gzip
import inspect
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_models
import torch
import transformers

from headscope.compat import bertviz
from headscope.compat.bertviz import head_view, model_view, views
from headscope.compat.bertviz.util import format_attention, format_special_chars, num_heads, num_layers
from headscope.views.wire import decode

README = [
    # Sample code
    """
from transformers import AutoTokenizer, AutoModel, utils
from bertviz import model_view
utils.logging.set_verbosity_error()  # Suppress standard warnings

model_name = "microsoft/xtremedistil-l12-h384-uncased"  # Find popular HuggingFace models here: https://huggingface.co/models
input_text = "The cat sat on the mat"
model = AutoModel.from_pretrained(model_name, output_attentions=True)  # Configure model to return attention values
tokenizer = AutoTokenizer.from_pretrained(model_name)
inputs = tokenizer.encode(input_text, return_tensors='pt')  # Tokenize input text
outputs = model(inputs)  # Run model
attention = outputs[-1]  # Retrieve attention from model outputs
tokens = tokenizer.convert_ids_to_tokens(inputs[0])  # Convert input ids to token strings
model_view(attention, tokens)  # Display model view
""",
    # Head view, options
    """
from transformers import AutoTokenizer, AutoModel, utils
utils.logging.set_verbosity_error()  # Suppress standard warnings
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
model = AutoModel.from_pretrained("bert-base-uncased", output_attentions=True)
inputs = tokenizer.encode("The cat sat on the mat", return_tensors='pt')
outputs = model(inputs)
attention = outputs[-1]  # Output includes attention weights when output_attentions=True
tokens = tokenizer.convert_ids_to_tokens(inputs[0])
from bertviz import head_view
head_view(attention, tokens)
from bertviz import model_view
model_view(attention, tokens, display_mode="light")
model_view(attention, tokens, include_layers=[0, 1])
head_view(attention, tokens, layer=1, heads=[1,3])
html_head_view = head_view(attention, tokens, html_action='return')

with open("head_view.html", 'w') as file:
    file.write(html_head_view.data)
""",
    # Encoder-decoder
    """
from transformers import AutoTokenizer, AutoModel

tokenizer = AutoTokenizer.from_pretrained("Helsinki-NLP/opus-mt-en-de")
model = AutoModel.from_pretrained("Helsinki-NLP/opus-mt-en-de", output_attentions=True)
encoder_input_ids = tokenizer("She sees the small elephant.", return_tensors="pt", add_special_tokens=True).input_ids
decoder_input_ids = tokenizer("Sie sieht den kleinen Elefanten.", return_tensors="pt").input_ids

outputs = model(input_ids=encoder_input_ids, decoder_input_ids=decoder_input_ids)

encoder_text = tokenizer.convert_ids_to_tokens(encoder_input_ids[0])
decoder_text = tokenizer.convert_ids_to_tokens(decoder_input_ids[0])
from bertviz import model_view
model_view(
    encoder_attention=outputs.encoder_attentions,
    decoder_attention=outputs.decoder_attentions,
    cross_attention=outputs.cross_attentions,
    encoder_tokens= encoder_text,
    decoder_tokens = decoder_text
)
""",
    # Sentence pairs
    """
from bertviz import head_view
from transformers import AutoTokenizer, AutoModel, utils
utils.logging.set_verbosity_error()  # Suppress standard warnings

# NOTE: This code is model-specific
model_version = 'bert-base-uncased'
model = AutoModel.from_pretrained(model_version, output_attentions=True)
tokenizer = AutoTokenizer.from_pretrained(model_version)
sentence_a = "the rabbit quickly hopped"
sentence_b = "The turtle slowly crawled"
inputs = tokenizer(sentence_a, sentence_b, return_tensors='pt')
input_ids = inputs['input_ids']
token_type_ids = inputs['token_type_ids'] # token type id is 0 for Sentence A and 1 for Sentence B
attention = model(input_ids, token_type_ids=token_type_ids)[-1]
sentence_b_start = token_type_ids[0].tolist().index(1) # Sentence B starts at first index of token type id 1
token_ids = input_ids[0].tolist() # Batch index 0
tokens = tokenizer.convert_ids_to_tokens(token_ids)
head_view(attention, tokens, sentence_b_start)
""",
]


@pytest.mark.parametrize("snippet", README, ids=["sample", "options", "encoder-decoder", "pair"])
def test_its_readme_runs_with_only_the_import_changed(snippet, monkeypatch, tmp_path, caplog):
    """Where it downloads a model, a tiny one stands in: eager, and one whose last output is its attention.

    In transformers 5 that of BERT is no longer: `outputs[-1]` is its empty cross-attention, which is told apart.
    """
    is_marian = "opus-mt" in snippet

    def model(name, **options):
        assert options == {"output_attentions": True}
        settings = tiny_models.TEXT | {"max_position_embeddings": 128, "output_attentions": True}
        if is_marian:
            built = tiny_models.FAMILIES["marian"].build()
            built.config.output_attentions = True
            return built
        config = transformers.AlbertConfig(**settings)
        return tiny_models.tiny(transformers.AlbertModel, config)

    tokenizer = tiny_models.tiny_tokenizer() if is_marian else tiny_models.tiny_bert_tokenizer()
    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", model)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda name: tokenizer)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(snippet.replace("from bertviz import", "from headscope.compat.bertviz import"), names)
    written = re.findall(r"view is in (\S+\.html)", caplog.text)
    assert len(written) == snippet.count("\nhead_view(") + snippet.count("\nmodel_view(")
    if "html_action" in snippet:
        assert (tmp_path / "head_view.html").read_text().startswith("<!doctype html>")


def test_signatures_are_its_own():
    assert str(inspect.signature(head_view)).count("=") and list(inspect.signature(head_view).parameters) == [
        "attention", "tokens", "sentence_b_start", "prettify_tokens", "layer", "heads", "encoder_attention",
        "decoder_attention", "cross_attention", "encoder_tokens", "decoder_tokens", "include_layers", "html_action",
    ]  # fmt: skip
    assert list(inspect.signature(model_view).parameters) == [
        "attention", "tokens", "sentence_b_start", "prettify_tokens", "display_mode", "encoder_attention",
        "decoder_attention", "cross_attention", "encoder_tokens", "decoder_tokens", "include_layers", "include_heads",
        "html_action",
    ]  # fmt: skip
    defaults = {name: parameter.default for name, parameter in inspect.signature(model_view).parameters.items()}
    assert (defaults["display_mode"], defaults["prettify_tokens"], defaults["html_action"]) == ("dark", True, "view")


# What it shows


def maps(n_layers: int, n_queries: int = 3, n_keys: int | None = None, n_heads: int = 4) -> list[torch.Tensor]:
    return [torch.rand(1, n_heads, n_queries, n_keys or n_queries).softmax(-1) for _ in range(n_layers)]


def parts_of(page) -> dict:
    parts = re.findall(r'data-key="([^"]+)">([^<]*)<', page.data)
    return {key.replace("&amp;", "&"): decode(gzip.decompress(base64.b64decode(text))) for key, text in parts}


def props(page) -> dict:
    return parts_of(page)["trace"].props


def test_the_page_holds_what_was_given():
    attention = maps(2)
    parts = parts_of(head_view(attention, ["a", "b", "c"], layer=1, heads=[0, 2], html_action="return"))
    exact = parts["layer/L1?what=pattern"].arrays["weights"]
    assert exact == pytest.approx(attention[1][0].numpy(), abs=1e-3)
    selection = parts["saved"].props["selection"]
    assert (selection["site"], selection["heads"], selection["scale"]) == ("L1", [0, 2], "head")
    assert parts_of(model_view(attention, ["a", "b", "c"], html_action="return"))["saved"].props["theme"] == "dark"


def test_layers_and_heads_keep_their_numbers():
    page = model_view(maps(6), ["a", "b", "c"], include_layers=[5, 2], include_heads=[1, 3], html_action="return")
    assert [layer["site"] for layer in props(page)["layers"]] == ["L2", "L5"]
    parts = parts_of(page)
    assert parts["saved"].props["selection"]["colour"] == "included"
    assert parts["scores"].arrays["included"].tolist() == [0, 1, 0, 1] * 2


def test_stacks_of_different_depth_are_all_there():
    for n_encoder, n_decoder in ((6, 3), (3, 6)):
        page = model_view(
            encoder_attention=maps(n_encoder, 3),
            decoder_attention=maps(n_decoder, 2),
            cross_attention=maps(n_decoder, 2, 3),
            encoder_tokens=["a", "b", "c"],
            decoder_tokens=["x", "y"],
            html_action="return",
        )
        assert len(props(page)["layers"]) == n_encoder + 2 * n_decoder


def test_the_steps_of_generate_are_joined():
    whole = torch.tril(torch.rand(1, 2, 5, 5))
    steps = ((whole[:, :, :3, :3],), (whole[:, :, 3:4, :4],), (whole[:, :, 4:, :],))
    page = head_view(steps, ["a", "b", "c", "d", "e"], html_action="return")
    assert parts_of(page)["layer/L0?what=pattern"].arrays["weights"] == pytest.approx(whole[0].numpy(), abs=1e-3)
    # The last token was written and never read: users hand over all of them.
    assert len(props(head_view(steps, list("abcdef"), html_action="return"))["stacks"][0]["texts"]) == 5


def test_the_steps_of_a_real_model_are_joined():
    model = tiny_models.FAMILIES["gpt2"].build()
    ids = tiny_models.tokens()[:1]
    output = model.generate(
        ids, max_new_tokens=3, do_sample=False, output_attentions=True, return_dict_in_generate=True,
        attention_mask=torch.ones_like(ids), pad_token_id=0, eos_token_id=None,
    )  # fmt: skip
    names = [str(token_id) for token_id in output.sequences[0].tolist()]
    page = head_view(output.attentions, names, html_action="return")
    once = model(output.sequences[:, :-1], output_attentions=True).attentions
    assert parts_of(page)["layer/L0?what=pattern"].arrays["weights"] == pytest.approx(
        once[0][0].detach().numpy(), abs=2e-3
    )


def test_sentence_b_begins_where_said():
    page = head_view(maps(1, 4), ["[CLS]", "a", "b", "[SEP]"], 2, html_action="return")
    assert props(page)["stacks"][0]["segments"] == ["A", "A", "B", "B"]
    assert props(page)["stacks"][0]["special"] == [0, 3]


# Its faults


def test_a_token_that_ends_a_script_stays_a_text():
    page = head_view(maps(1), ["</script>", "<img src=x onerror=alert(1)>", "b"], html_action="return")
    assert "alert(1)>" not in page.data
    assert props(page)["stacks"][0]["texts"] == ["</script>", "<img src=x onerror=alert(1)>", "b"]


def test_fused_attention_says_what_to_do():
    with pytest.raises(ValueError, match="attn_implementation='eager'"):
        head_view((None, None), ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"outputs\.attentions"):
        head_view((), ["a", "b", "c"])
    with pytest.raises(ValueError, match="at least one attention argument"):
        head_view(None, ["a"])


@pytest.mark.parametrize(
    "options, error_text",
    [
        ({"tokens": None}, "'tokens' is required"),
        ({"tokens": ["a", "b"]}, "Attention has 3 positions, while number of tokens is 2 for tokens: a b"),
        ({"encoder_tokens": ["a"]}, "you may not specify any encoder-decoder arguments"),
        ({"layer": 7}, r"Layer 7 is not in include_layers: \[0, 1\]"),
        ({"layer": 0, "include_layers": [1]}, r"Layer 0 is not in include_layers: \[1\]"),
        ({"html_action": "save"}, "'html_action' parameter must be 'view' or 'return'"),
        ({"include_layers": []}, "include_layers is empty"),
        ({"heads": []}, "heads is empty"),
        ({"sentence_b_start": 3}, "not inside the 3 tokens"),
        ({"attention": [torch.rand(4, 3, 3)]}, "correct number of dimensions"),
        ({"attention": [torch.rand(2, 4, 3, 3)]}, "holds a batch of 2"),
        ({"attention": torch.rand(2, 1, 4, 3, 3)}, "give a list of them, one a layer"),
    ],
)
def test_mistakes_are_value_errors_as_its_own_are(options, error_text):
    arguments = {"attention": maps(2), "tokens": ["a", "b", "c"]} | options
    with pytest.raises(ValueError, match=error_text):
        head_view(**arguments)


def test_places_that_are_not_there_are_refused_not_ignored():
    with pytest.raises(LookupError, match="4 heads, 0 to 3: there is no 9"):
        head_view(maps(2), ["a", "b", "c"], heads=[9])
    with pytest.raises(LookupError, match="2 layers, 0 to 1: there is no -1"):
        model_view(maps(2), ["a", "b", "c"], include_layers=[-1])
    with pytest.raises(ValueError, match="include_heads is empty"):
        model_view(maps(2), ["a", "b", "c"], include_heads=[])
    with pytest.raises(ValueError, match="choose 'dark' or 'light'"):
        model_view(maps(2), ["a", "b", "c"], display_mode="blue")


@pytest.mark.parametrize("stack, missing", [("encoder", "encoder"), ("decoder", "decoder"), ("cross", "encoder")])
def test_tokens_of_a_stack_are_required(stack, missing):
    with pytest.raises(ValueError, match=f"'{missing}_tokens' required if '{stack}_attention' is not None"):
        model_view(**{f"{stack}_attention": maps(1)})


# Where it goes


def test_in_a_notebook_it_is_displayed(monkeypatch):
    views = []
    shell = SimpleNamespace(kernel=True)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=views.append))
    assert bertviz.head_view(maps(1), ["a", "b", "c"]) is None
    assert [view.kind for view in views] == ["head"]
    page = bertviz.head_view(maps(1), ["a", "b", "c"], html_action="return")
    assert page._repr_html_().startswith("<iframe") and page.data.startswith("<!doctype html>")


# Its helpers


def test_its_helpers_are_there():
    attention = maps(3)
    assert (num_layers(attention), num_heads(attention)) == (3, 4)
    assert format_attention(attention).shape == (3, 4, 3, 3)
    assert torch.equal(format_attention(attention, [2], [1, 3]), attention[2][:, [1, 3]])
    assert format_special_chars(["Ġa", "▁b", "c</w>"]) == [" a", " b", "c"]
    with pytest.raises(ValueError, match="correct number of dimensions"):
        format_attention([torch.rand(3, 3)])
    with pytest.raises(ValueError, match="eager"):
        format_attention([None])


def test_outside_a_notebook_pages_share_a_folder_that_goes_when_python_ends(monkeypatch, caplog):
    at_exit = []
    monkeypatch.setattr(views.atexit, "register", lambda *call, **options: at_exit.append((call, options)))
    views._folder.cache_clear()
    try:
        for _ in range(2):
            head_view(maps(1), ["a", "b", "c"])
        first, second = map(Path, re.findall(r"view is in (\S+\.html)", caplog.text))
        assert first != second and first.parent == second.parent and first.is_file() and second.is_file()
        (((remove, *arguments), options),) = at_exit
        remove(*arguments, **options)
        assert not first.parent.exists()
    finally:
        views._folder.cache_clear()
