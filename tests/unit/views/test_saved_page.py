"""Saved pages: whole, small, safe, and honest about what was left out."""

import base64
import gzip
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from made_traces import random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula, Mask
from headscope.errors import InputError, LoadError
from headscope.sites import Site
from headscope.traces import LayerRecord, Token, Tokens, Trace
from headscope.views.parts import part
from headscope.views.saved_page import STATIC as BUILT
from headscope.views.saved_page import _list_of, page
from headscope.views.wire import Coded, decode

NASTY = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "日本", "\u202eabc", "\"&'", "<!--"]


class Elements(HTMLParser):
    """Every element with its attributes, and the text of scripts by their key."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.texts: dict[str, str] = {}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = dict(attrs).get("data-key") or dict(attrs).get("type") or tag

    def handle_data(self, data):
        self.texts[self.inside] = self.texts.get(self.inside, "") + data


def read(saved_page) -> dict:
    texts = Elements(saved_page.html).texts
    keys = [attrs["data-key"] for tag, attrs in Elements(saved_page.html).elements if "data-key" in attrs]
    return {key: decode(gzip.decompress(base64.b64decode(texts[key]))) for key in keys}


def random_trace(length: int, n_layers: int = 12, n_heads: int = 12, *, causal: bool) -> Trace:
    """Softmax patterns as of a random model: queries and keys drawn from a normal distribution."""
    mask = Mask(length, length, stop=torch.arange(1, length + 1)[None]) if causal else None
    formula, layers = Formula(0.125, mask=mask), {}
    from headscope.attention import Summariser, attend_in_tiles

    for index in range(n_layers):
        query, key, value = (1.4 * torch.randn(n_heads, length, 64) for _ in range(3))
        summariser = Summariser(n_heads, length, length)
        attend_in_tiles(query, key, value, formula, summariser=summariser)
        summary = summariser.summary()
        about = (Site("main", index), n_heads, length, length, "main", "routed", summary)
        norms = value.norm(dim=-1)
        layers[Site("main", index)] = LayerRecord(*about, formula=formula, query=query, key=key, value_norms=norms)
    tokens = Tokens(tuple(Token(f"word{index}", index % 90, word=index) for index in range(length)))
    return Trace("random", "heads", layers, {"main": tokens})


def test_a_page_holds_the_parts_that_the_view_needs():
    trace = trace_of_layers(random_layer(Formula(0.7), 20), random_layer(Formula(0.7), 20))
    view = hs.head_view(trace, "L1H2", top=3)
    parts = read(page(view))
    assert set(parts) == {
        "trace", "scores", "maps?size=96", "layer/L1?what=pattern", "layer/L0?what=pattern", "layer/L1?what=scores",
        "saved",
    }  # fmt: skip
    saved = parts["saved"].props
    assert (saved["view"], saved["notes"], saved["theme"]) == ("head", [], "system")
    assert saved["selection"]["site"] == "L1" and saved["selection"]["heads"] == [2]
    assert (saved["selection"]["filter"], saved["selection"]["top"]) == ("top", 3)
    exact = part(trace, "layer/L1?what=pattern").arrays["weights"]
    np.testing.assert_array_equal(parts["layer/L1?what=pattern"].arrays["weights"], exact)


def test_nothing_that_a_user_wrote_becomes_html():
    trace = Trace.from_patterns([torch.eye(6)[None]], NASTY, model="<b>model</b>")
    for view in (hs.head_view(trace), hs.model_view(trace)):
        html = page(view).html
        elements = Elements(html).elements
        assert not [tag for tag, _ in elements if tag in ("img", "b")]
        assert sum(tag == "script" for tag, _ in elements) == html.count("</script>")
        assert [attrs for tag, attrs in elements if tag == "script" and "type" not in attrs] == [{}]
        assert "alert(1)</script>" not in html
        # In ASCII, so that it can be written in any encoding.
        assert html.isascii()
        assert read(page(view))["trace"].props["stacks"][0]["texts"] == NASTY


def test_only_the_pages_own_script_and_style_may_run(stand_in):
    html = page(hs.model_view(Trace.from_patterns([torch.eye(3)[None]], "abc"))).html
    (rules,) = [attrs["content"] for _, attrs in Elements(html).elements if "http-equiv" in attrs]
    program = dict(re.findall(r'data-program="(\w+)">([^<]+)</script>', html))
    script, style = (gzip.decompress(base64.b64decode(program[name])).decode() for name in ("script", "style"))
    assert script == (stand_in / "headscope.js").read_text("utf-8")
    assert style == (stand_in / "headscope.css").read_text("utf-8")
    loader = re.search(r"<script>(.*?)</script>", html, re.DOTALL)[1]
    assert f"script-src {digest(loader)} {digest(script)};" in rules and f"style-src {digest(style)};" in rules
    assert "default-src 'none'" in rules and "unsafe" not in rules
    assert not re.search(r'(src|href)="', html)


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_same_view_makes_the_same_file():
    view = hs.model_view(Trace.from_patterns([torch.eye(3)[None]], "abc"))
    assert page(view).html == page(view).html


def test_without_scripts_the_strongest_connections_are_a_table():
    html = page(hs.head_view(Trace.from_patterns([torch.eye(3).flip(0)[None]], ["a", "<b>", "c"]))).html
    (table,) = re.findall(r"<noscript>(.*?)</noscript>", html, re.DOTALL)
    assert '<th scope="col">query token</th>' in table
    assert "<td>&lt;b&gt;</td>" in table and "<td>1.000</td>" in table


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "not"])
def test_pages_are_small(causal):
    short = page(hs.head_view(random_trace(128, causal=causal)))
    assert len(short.html) <= 2.7e6  # and what draws it: see below
    parts = read(short)
    layers = [key for key in parts if key.startswith("layer/") and key.endswith("pattern")]
    assert len(layers) == 12
    assert isinstance(parts["layer/L5?what=pattern"].arrays["weights"], Coded)
    assert parts["layer/L0?what=pattern"].arrays["weights"].dtype == np.float16
    assert short.notes == ["weights of 11 layers (L1 to L11) are rounded, to within 0.004"]


def test_what_draws_a_page_is_little_of_it():
    if not (BUILT / "headscope.js").is_file():
        pytest.skip("the page is not built")
    drawn_by = len(page(hs.model_view(Trace.from_patterns([torch.eye(3)[None]], "abc")), static=BUILT).html)
    # A page of 12 × 12 heads and 128 tokens is to take at most 3 MB.
    assert drawn_by <= 0.345e6


def test_long_pages_keep_to_their_budget_and_say_what_is_missing():
    trace = random_trace(200, 6, 8, causal=False)
    whole = page(hs.head_view(trace, "L2"))
    assert whole.notes == ["weights of 5 layers (L0 to L1, L3 to L5) are rounded, to within 0.004"]
    small = page(hs.head_view(trace, "L2"), budget=1.3)
    assert len(small.html) <= 1.3e6
    parts = read(small)
    forms = {key: parts[key].props["form"] for key in parts if key.startswith("layer/")}
    assert forms["layer/L2?what=pattern"] == "dense"
    assert "sparse" in forms.values()
    assert any("only the strongest keys of each query" in note for note in small.notes)
    assert read(small)["saved"].props["notes"] == small.notes
    tiny = page(hs.head_view(trace, "L2"), budget=0.2)
    assert any("left out but for their maps" in note for note in tiny.notes)
    with pytest.raises(InputError, match="outside 0 to 50"):
        page(hs.head_view(trace), budget=51)


def test_the_scores_that_are_asked_for_are_there():
    trace = trace_of_layers(random_layer(Formula(0.7), 20), random_layer(Formula(0.7), 20))
    assert "layer/L1?what=scores" in read(page(hs.head_view(trace, "L1", what="scores")))


def test_a_summary_makes_a_page_and_rows_say_what_to_record():
    summary = trace_of_layers(random_layer(Formula(1.0), record="summary"), record="summary")
    parts = read(page(hs.model_view(summary)))
    assert parts["layer/L0?what=pattern"].props["form"] == "sparse"
    rows = page(hs.model_view(trace_of_layers(random_layer(Formula(1.0), record="rows"), record="rows")))
    assert "record='summary'" in rows.notes[0]
    assert "trace" in read(rows)


def test_a_page_that_is_not_built_says_how_to(tmp_path):
    with pytest.raises(LoadError, match=r"headscope\.js is missing .*`python scripts/web`"):
        page(hs.model_view(Trace.from_patterns([torch.eye(3)[None]], "abc")), static=tmp_path)


def test_in_a_notebook_it_lives_in_a_frame_of_its_own():
    view = hs.model_view(Trace.from_patterns([torch.eye(3)[None]], "abc", model='"><b>'))
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"] == "View('model', '\"><b>')"
    ((tag, attrs),) = Elements(bundle["text/html"]).elements
    assert tag == "iframe" and attrs["sandbox"] == "allow-scripts allow-downloads"
    assert attrs["srcdoc"] == view.html()
    assert attrs["title"] == '"><b>: model view'


def test_layers_are_listed_in_order_whichever_was_looked_at():
    layers = list(random_trace(8, 6, 1, causal=False).layers.values())
    assert _list_of([layers[5], *layers[:5]]) == "6 layers (L0 to L5)"
    assert _list_of([layers[3], layers[0]]) == "L0, L3"
    stacks = [
        Site("encoder", 1),
        Site("encoder", 0),
        Site("decoder", 0),
        Site("decoder", 1),
        Site("decoder", 0, "cross"),
    ]
    expected = "5 layers (cross.L0, decoder.L0 to decoder.L1, encoder.L0 to encoder.L1)"
    assert _list_of([replace(layers[0], site=site) for site in stacks]) == expected


def test_a_page_does_not_tell_where_a_model_lies():
    trace = Trace.from_patterns([torch.eye(3)[None]], "abc", model="/home/anna/secret/tiny-gpt/")
    saved_page = page(hs.head_view(trace, "L0H0"))
    assert read(saved_page)["trace"].props["model"] == "tiny-gpt"
    assert "secret" not in saved_page.html and "<title>tiny-gpt, L0H0: head view</title>" in saved_page.html
