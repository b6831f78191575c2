"""`hs.neuron_view`: what it opens with, its table, its page, and what it refuses."""

import base64
import gzip
import re
from dataclasses import replace

import numpy as np
import pytest
from made_traces import DIM, random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula, Mask
from headscope.errors import HeadscopeError
from headscope.server.exports import TableQuery, view_of
from headscope.server.messages import PageRequest
from headscope.sites import Site
from headscope.views.saved_page import page
from headscope.views.selection import Selection, Spot
from headscope.views.wire import decode

TRACE = trace_of_layers(random_layer(Formula(0.5, mask=Mask.causal(9, 9)), 9), random_layer(Formula(0.5), 9))


def read(saved_page) -> dict:
    """The parts of a page, by key."""
    matches = re.findall(r'data-key="([^"]+)">([^<]+)</script>', saved_page.html)
    return {key.replace("&amp;", "&"): decode(gzip.decompress(base64.b64decode(text))) for key, text in matches}


def test_it_opens_with_the_last_query_of_the_first_head():
    view = hs.neuron_view(TRACE)
    assert (view.kind, view.title) == ("neuron", "made, L0H0: neuron view")
    assert repr(view) == "View('neuron', 'made', L0H0)"
    assert view.selection == Selection(scale="neuron", site="L0", heads=[0], token=Spot("query", 8))


def test_the_table_adds_up():
    table = hs.neuron_view(TRACE, "L1H2", token=4).table()
    columns = table.columns
    products = np.stack([columns[f"q×k {index}"] for index in range(DIM)], 1)
    assert products.sum(1) == pytest.approx(columns["q·k"], abs=1e-5)
    weights = np.exp(columns["score"]) / np.exp(columns["score"]).sum()
    assert weights == pytest.approx(columns["weight"], abs=1e-5)
    assert (np.diff(columns["weight"]) <= 0).all()
    output = np.stack([columns[f"a·v {index}"] for index in range(DIM)], 1).sum(0)
    assert output == pytest.approx(TRACE.mixed("L1H2")[4], abs=1e-5)
    assert set(columns["query position"]) == {4}


def test_neurons_are_ordered():
    def order(**options) -> list[int]:
        names = hs.neuron_view(TRACE, "L1H0", **options).table().columns
        return [int(name.split()[1]) for name in names if name.startswith(("q×k", "query ")) and name[-1].isdigit()]

    assert order() == list(range(DIM))
    query, key = TRACE.query("L1H0"), TRACE.key("L1H0")
    assert order(token=3, sort=2) == np.argsort(-np.abs(query[3] * key[2]), kind="stable").tolist()
    weights = TRACE.pattern("L1H0")[3]
    expected = np.abs(query[3]) * (weights @ np.abs(key))
    assert order(token=3, sort="contribution") == np.argsort(-expected, kind="stable").tolist()
    spread = query.std(0) / np.sqrt(query.mean(0) ** 2 + query.var(0))
    assert order(every="query", sort="spread") == np.argsort(spread, kind="stable").tolist()


def test_all_tokens_make_a_table_of_vectors():
    table = hs.neuron_view(TRACE, "L0H1", every="value").table()
    assert len(table) == 9
    assert np.stack([table.columns[f"value {index}"] for index in range(DIM)], 1) == pytest.approx(TRACE.value("L0H1"))


@pytest.mark.parametrize("suffix", [".html", ".png", ".svg", ".pdf", ".csv", ".json", ".parquet"])
def test_it_is_saved_as_anything(suffix, tmp_path):
    assert hs.neuron_view(TRACE, "L0H1", token=2).save(tmp_path / f"x{suffix}").stat().st_size > 500


def test_a_page_holds_neurons_of_all_heads_where_they_are_few():
    parts = read(page(hs.neuron_view(TRACE, "L1H3", token=2, sort=1, fold="value")))
    assert {f"neuron/L{layer}H{head}" for layer in (0, 1) for head in range(4)} <= set(parts)
    assert parts["vectors/L1H3?of=key&rows=0:9"].arrays["vectors"].shape == (9, DIM)
    selection = parts["saved"].props["selection"]
    assert (selection["scale"], selection["order"], selection["against"], selection["fold"]) == (
        "neuron",
        "token",
        1,
        ["value"],
    )
    assert parts["saved"].props["notes"] == []


def test_a_long_page_holds_the_query_and_says_so():
    trace = trace_of_layers(random_layer(Formula(1.0), 600))
    saved_page = page(hs.neuron_view(trace, "L0H1", token=77))
    parts = read(saved_page)
    assert "neuron/L0H1?query=77" in parts and "neuron/L0H1" not in parts
    assert {"vectors/L0H1?of=key&rows=0:512", "vectors/L0H1?of=value&rows=512:600"} <= set(parts)
    assert "of L0H1 only query 77 is here" in saved_page.notes


def test_cross_attention_has_its_own_tokens():
    layer = random_layer(Formula(1.0), 5, 7, site=Site("decoder", 0, "cross"), key_stack="encoder")
    view = hs.neuron_view(trace_of_layers(layer), "cross.L0H0", token=-2, sort=6)
    columns = view.table().columns
    assert columns["query token"][0] == "d3"
    assert sorted(columns["key token"]) == [f"e{index}" for index in range(7)]


@pytest.mark.parametrize(
    "options, error_text",
    [
        ({"head": "L0"}, "say which"),
        ({"head": "L7H0"}, "L7H0"),
        ({"token": 9}, "9 queries, 0 to 8"),
        ({"token": True}, "no position"),
        ({"sort": 9}, "9 keys, 0 to 8"),
        ({"sort": "size"}, "'contribution'"),
        ({"sort": "token"}, "give its position"),
        ({"sort": "spread"}, "every='query'"),
        ({"every": "query", "sort": "contribution"}, "'index' or 'spread'"),
        ({"every": "heads"}, "'mixed'"),
        ({"fold": "query"}, "'weighted'"),
    ],
)
def test_what_makes_no_sense_is_refused(options, error_text):
    with pytest.raises(HeadscopeError, match=error_text):
        hs.neuron_view(TRACE, **options)


def test_without_a_token_the_last_looks_and_a_key_of_self_attention_looks_too():
    """As on the page; a page of a long input holds the query that it opens with."""
    trace = trace_of_layers(random_layer(Formula(1.0), 600))
    opened = hs.neuron_view(trace, "L0H1")
    for token, query in ((None, 599), (Spot("key", 70), 70), (Spot("query", 30), 30)):
        view = replace(opened, selection=replace(opened.selection, token=token))
        assert f"neuron/L0H1?query={query}" in read(page(view))
        assert set(view.table().columns["query position"]) == {query}
        assert f"query {query}: m{query}" in view.figure().get_supxlabel()
        looking_token = view_of(trace, PageRequest("neuron", view.selection)).selection.token
        assert looking_token == Spot("query", query)
    layer = random_layer(Formula(1.0), 5, 7, site=Site("decoder", 0, "cross"), key_stack="encoder")
    between = hs.neuron_view(trace_of_layers(layer), "cross.L0H0")
    view = replace(between, selection=replace(between.selection, token=Spot("key", 6)))
    assert set(view.table().columns["query position"]) == {4}


def test_the_server_makes_the_same_view():
    selection = Selection(
        scale="neuron", site="L1", head=2, heads=[2], token=Spot("query", 3), order="token", against=4
    )
    view = view_of(TRACE, PageRequest("neuron", selection))
    assert view.selection == selection
    rows = TableQuery(view="neuron", heads="L1H2", query=3).bytes(TRACE).decode("utf-8-sig").splitlines()
    assert rows[0].startswith("head,query position,query token,key position,key token,q·k,score,weight")
    assert len(rows) == 10
    with pytest.raises(HeadscopeError, match="0 to 8"):
        view_of(TRACE, PageRequest("neuron", Selection(scale="neuron", site="L1", token=Spot("query", 30))))
