"""Calls that a user gets wrong: types, places, numbers, files. Each is answered by a `HeadscopeError`."""

import datetime
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headscope as hs

NAN, INF = float("nan"), float("inf")
TEXT = "The cat sat on the mat and the cat slept"


@dataclass(frozen=True)
class Material:
    """What the calls are made on."""

    model: hs.Model
    classifier: hs.Model
    trace: hs.Trace
    rows_trace: hs.Trace
    folder: Path


Call = tuple[str, Callable[[], Any]]


def _calls(prefix: str, function: Callable[..., Any], *arguments: tuple[Any, ...]) -> Iterator[Call]:
    for values in arguments:
        positional = values[:-1] if len(values) > 1 and isinstance(values[-1], dict) else values
        named = values[-1] if len(values) > 1 and isinstance(values[-1], dict) else {}
        text = ", ".join([*(repr(value)[:40] for value in positional), *(f"{k}={v!r}"[:40] for k, v in named.items())])
        yield f"{prefix}({text})", lambda positional=positional, named=named: function(*positional, **named)


def loading(material: Material) -> Iterator[Call]:
    """Models that are not there."""
    yield from _calls(
        "load", hs.load, ("",), (None,), (5,), ("builtin:none",), ("/no/such/folder",), (["gpt"],), (b"builtin:gpt",)
    )
    yield from _calls(
        "load",
        hs.load,
        ("builtin:gpt", {"device": "gpu0"}),
        ("builtin:gpt", {"dtype": "float7"}),
        ("builtin:gpt", {"device": 3.5}),
        ("builtin:gpt", {"dtype": 16}),
    )
    empty, damaged = material.folder / "empty", material.folder / "damaged"
    empty.mkdir(exist_ok=True)
    damaged.mkdir(exist_ok=True)
    (damaged / "config.json").write_text("{")
    yield from _calls("load", hs.load, (empty,), (damaged,), (damaged / "config.json",))


def running(material: Material) -> Iterator[Call]:
    """Inputs that cannot be run."""
    model = material.model
    yield from _calls(
        "model.run",
        model.run,
        (),
        (None,),
        (5,),
        (3.5,),
        ("",),
        ([],),
        ([""],),
        ([None],),
        ([1, 2],),
        (["a", 5],),
        (b"bytes",),
        ({"a": 1}, {}),
        (object(),),
        (np.zeros(3),),
        (torch.zeros(3),),
        ({"a", "b"},),
        (TEXT, {"record": "all"}),
        (TEXT, {"record": 5}),
        (TEXT, {"interventions": "silence"}),
        (TEXT, {"interventions": [5]}),
        (TEXT, {"interventions": 5}),
        (TEXT, {"interventions": [None]}),
        (TEXT, {"keep": "gpu"}),
        (TEXT, {"inputs": {"input_ids": torch.zeros(1, 3, dtype=torch.long)}}),
        (None, {"inputs": {}}),
        (None, {"inputs": 5}),
        (None, {"inputs": {"input_ids": "abc"}}),
        (None, {"inputs": {"input_ids": torch.zeros(1, 3)}}),
        (None, {"inputs": {"input_ids": torch.tensor([[10**9]])}}),
        (None, {"inputs": {"input_ids": torch.tensor([[-1]])}}),
        (None, {"inputs": {"input_ids": torch.zeros(1, 0).long()}}),
        (None, {"inputs": {"nothing": torch.zeros(1, 3)}}),
        (TEXT, {"target": "x"}),
        (TEXT, {"target": 5}),
        ("word " * 5000,),
    )
    yield from _calls("model.read", model.read, (None,), (5,), ("",), ([],), (object(),))
    yield from _calls(
        "model.generate",
        model.generate,
        ("",),
        (None,),
        (5,),
        (TEXT, {"max_new_tokens": 10**9}),
        (TEXT, {"max_new_tokens": 0}),
        (TEXT, {"max_new_tokens": -1}),
        (TEXT, {"max_new_tokens": "3"}),
        (TEXT, {"max_new_tokens": 2.5}),
        (TEXT, {"record": "none"}),
        (TEXT, {"interventions": [5]}),
        (TEXT, {"temperature": -1.0}),
        (TEXT, {"max_new_tokens": None}),
    )
    yield from _calls("classifier.generate", material.classifier.generate, (TEXT,))
    yield from _calls(
        "model.lens",
        model.lens,
        (None,),
        (5,),
        (TEXT,),
        (material.trace, {"k": 0}),
        (material.trace, {"k": -1}),
        (material.trace, {"k": "3"}),
    )
    yield from _calls("model.activations", model.activations, (None,), (5,))
    yield "pickle.dumps(model)", lambda: pickle.dumps(model)


def tracing(material: Material) -> Iterator[Call]:
    """Places and tokens that a trace does not have."""
    trace, rows = material.trace, material.rows_trace
    places = (
        None,
        5,
        "",
        "L",
        "L99H0",
        "L0H99",
        "H3",
        "L0H0H0",
        "L-1H0",
        "l0 h0",
        3.5,
        [],
        ["L0H0"],
        ("L0", 0),
        b"L0H0",
        {},
    )
    for name in ("pattern", "scores", "contribution", "query", "key", "value", "mixed", "summary"):
        yield from _calls(f"trace.{name}", getattr(trace, name), *((place,) for place in places[:8] + places[10:12]))
    yield from _calls("trace.layer", trace.layer, *((place,) for place in places))
    yield from _calls("trace.find", trace.find, *((place,) for place in places))
    yield from _calls(
        "trace.pattern",
        trace.pattern,
        ("L0H0", {"rows": True}),
        ("L0H0", {"rows": 99}),
        ("L0H0", {"rows": "none"}),
        ("L0H0", {"rows": 1.5}),
        ("L0H0", {"columns": object()}),
        ("L0H0", {"rows": [[0]]}),
        ("L0H0", {"columns": -99}),
    )
    yield from _calls("trace.patterns", trace.patterns, (None,), (5,), ("L99",), ([],))
    yield from _calls("rows_trace.residual", rows.residual, ("L0",), (None,), (5,))
    yield from _calls("rows_trace.query", rows.query, ("L0H0",))
    yield from _calls(
        "trace.thumbnail",
        trace.thumbnail,
        ("L0H0", {"size": 0}),
        ("L0H0", {"size": -3}),
        ("L0H0", {"size": "big"}),
        (None,),
        ("L0H0", {"size": 2.5}),
    )
    yield from _calls("trace.residual", trace.residual, ("L99",), (None,), (5,), ("",))
    yield from _calls("trace.neurons", trace.neurons, ("L99",), (None,), (5,))
    yield from _calls("trace.tensor", trace.tensor, ("nothing", "L0H0"), (None, "L0H0"), (5, "L0H0"), ("query", None))
    yield from _calls(
        "trace.predictions",
        trace.predictions,
        ("3",),
        (0,),
        (-1,),
        (None,),
        (2.5,),
        (1, {"answer": 99}),
        (1, {"answer": "last"}),
        (1, {"answer": None}),
    )
    yield from _calls(
        "trace.without", trace.without, (None,), (99,), ("zebra",), (3.5,), ([99],), (object(),), ([[0]],)
    )
    yield from _calls("trace.save", trace.save, (None,), (5,), ("",), ("/proc/none/x",))
    yield from _calls("load_trace", hs.load_trace, (5,), (None,), ("",), ("/no/such",), (material.folder,), ([],))
    yield from _calls(
        "compare", hs.compare, (None, trace), (trace, None), (5, 5), (trace, TEXT), (trace, trace, {"by": "x"})
    )


def editing(material: Material) -> Iterator[Call]:
    """Edits that say nothing, or nothing that can be done."""
    yield from _calls(
        "silence",
        hs.silence,
        (None,),
        (5,),
        ("",),
        ([],),
        ("L",),
        ("zebra",),
        ({},),
        (b"L0H0",),
        ("L0H0", {"tokens": object()}),
        ("L0H0", {"tokens": 1.5}),
    )
    yield from _calls(
        "scale",
        hs.scale,
        ("L0H0", None),
        ("L0H0", "2"),
        ("L0H0", NAN),
        ("L0H0", INF),
        (None, 2.0),
        ("L0H0", [1]),
        ("L0H0", 1j),
        ("L0H0", True),
    )
    yield from _calls("gate", hs.gate, ("L0H0", None), ("L0H0", 5), ("L0H0", "x"), (None, torch.ones(1)))
    yield from _calls(
        "patch",
        hs.patch,
        ("L3H2", None),
        ("L3H2", 5),
        ("L3H2", "x"),
        (None, torch.ones(3, 4)),
        ("L3H2", [[NAN]]),
        ("L3H2", torch.ones(0)),
        ("L3H2", [["a"]]),
        ("L3H2", object()),
    )
    yield from _calls("mean_ablate", hs.mean_ablate, (None,), (5,), ("L0H0", {"tokens": 2.5}))
    yield from _calls(
        "temperature",
        hs.temperature,
        ("L0H0", 0),
        ("L0H0", -1),
        ("L0H0", NAN),
        ("L0H0", "hot"),
        ("L0H0", None),
        (5, 1.0),
    )
    yield from _calls("uniform", hs.uniform, (5,), ("",), ([],))
    yield from _calls("distance_bias", hs.distance_bias, ("L0H0", NAN), ("L0H0", "x"), ("L0H0", None), (5, 1.0))
    yield from _calls(
        "block", hs.block, ("L0H0", None, 0), ("L0H0", 0, None), (5, 0, 0), ("L0H0", 1.5, 0), ("L0H0", object(), 0)
    )
    yield from _calls(
        "set_weight",
        hs.set_weight,
        ("L0H0", 0, 0, NAN),
        ("L0H0", 0, 0, -1),
        ("L0H0", 0, 0, "x"),
        ("L0H0", 0, 0, 2),
        (None, 0, 0, 0.5),
        ("L0H0", None, 0, 0.5),
    )
    yield from _calls(
        "set_row",
        hs.set_row,
        ("L0H0", 0, None),
        ("L0H0", 0, "x"),
        ("L0H0", 0, [NAN]),
        ("L0H0", 0, [-1]),
        (None, 0, [1.0]),
        ("L0H0", 0, 5),
    )
    yield from _calls(
        "replace_pattern", hs.replace_pattern, ("L0H0", None), ("L0H0", "x"), (None, torch.ones(2, 2)), ("L0H0", 5)
    )
    yield from _calls(
        "set_neuron",
        hs.set_neuron,
        ("L0H0", "query", None, 1.0),
        ("L0H0", "nothing", 0, 1.0),
        (None, "mlp", 0, 1.0),
        ("L0", "mlp", 0, NAN),
        ("L0", "mlp", "x", 1.0),
        ("L0", "mlp", 0, "x"),
        ("L0", "mlp", -1, 1.0),
    )
    yield from _calls("replace_token", hs.replace_token, (None,), (1.5,), (0, -1), (0, 2.5), (0, object()))
    yield from _calls(
        "save_interventions",
        hs.save_interventions,
        (None, "x.json"),
        ([5], material.folder / "x.json"),
        ([hs.silence("L0H0")], None),
        ([hs.silence("L0H0")], 5),
        ("silence", material.folder / "x.json"),
    )
    yield from _calls("load_interventions", hs.load_interventions, (None,), (5,), ("/no/such",), (material.folder,))
    run = material.model.run
    for name, make in {
        "patch of a row that would broadcast": lambda: hs.patch("L3H2", torch.ones(1, 24)),
        "patch of a number that would broadcast": lambda: hs.patch("L3H2", torch.ones(1, 1)),
        "patch of another width": lambda: hs.patch("L3H2", torch.ones(10, 7)),
        "a pattern of another size": lambda: hs.replace_pattern("L0H0", torch.ones(3, 3) / 3),
        "a row of another length": lambda: hs.set_row("L0H0", 1, torch.ones(3) / 3),
        "a head that is not there": lambda: hs.silence("L99H0"),
        "a token that is not there": lambda: hs.silence("L0H0", tokens=99),
        "a word that is not there": lambda: hs.block("L0H0", "zebra", "cat"),
        "a neuron that is not there": lambda: hs.set_neuron("L0", "mlp", 10**6, 1.0),
        "a token id that is not there": lambda: hs.replace_token(0, 10**9),
        "a token text of many tokens": lambda: hs.replace_token(0, "many words here"),
    }.items():
        yield f"model.run with {name}", lambda make=make: run(TEXT, interventions=[make()])


def analysing(material: Material) -> Iterator[Call]:
    """Measures, searches and use cases of nothing."""
    model, trace = material.model, material.trace
    yield from _calls(
        "measure",
        hs.measure,
        (None, trace),
        ("nothing", trace),
        (5, trace),
        ("entropy", None),
        ("entropy", []),
        ("entropy", 5),
        ("entropy", TEXT),
        ("entropy", [None]),
        ("copying", trace),
    )
    scores = hs.measure("entropy", trace)
    yield from _calls("scores.top", scores.top, (-1,), (0,), ("3",), (None,), (2.5,))
    yield from _calls("scores.above", scores.above, (-1,), (0,), (None,))
    yield from _calls("scores[]", scores.__getitem__, ("L99H0",), (None,), (5,), ("",))
    yield from _calls(
        "find_heads",
        hs.find_heads,
        (trace, {"pattern": "nothing"}),
        (trace, {"pattern": 5}),
        (None, {"pattern": "induction"}),
        (5, {"pattern": "induction"}),
        ([], {"pattern": "induction"}),
        (trace,),
    )
    yield from _calls(
        "effect",
        hs.effect,
        (None, TEXT, []),
        (model, None, []),
        (model, 5, []),
        (model, TEXT, "L99H0"),
        (model, TEXT, [hs.silence("L99H0")]),
        (model, TEXT, 5),
        (model, [], []),
    )
    yield from _calls(
        "relevance",
        hs.relevance,
        (None, TEXT),
        (model, None),
        (model, ""),
        (model, TEXT, {"target": 10**9}),
        (model, TEXT, {"target": "no such word at all"}),
        (model, TEXT, {"rule": "x"}),
    )
    yield from _calls(
        "examples",
        hs.examples,
        (None, [TEXT], "L0H0"),
        (model, None, "L0H0"),
        (model, [], "L0H0"),
        (model, [TEXT], None),
        (model, [TEXT], "L99H0"),
        (model, [TEXT], "L0H0", {"k": 0}),
        (model, [TEXT], "L0H0", {"k": "3"}),
        (model, 5, "L0H0"),
    )
    yield from _calls(
        "heads",
        hs.heads,
        (None, [TEXT], material.folder / "h"),
        (model, None, material.folder / "h"),
        (model, [], material.folder / "h"),
        (model, 5, material.folder / "h"),
        (model, [TEXT], 5),
    )
    yield from _calls("corpus", hs.corpus, (None,), (5,), ("/no/such.txt",), (object(),), (datetime.date(2026, 1, 1),))
    yield from _calls(
        "bake",
        hs.bake,
        (None, [], material.folder / "b"),
        (model, 5, material.folder / "b"),
        (model, [hs.temperature("L0H0", 2.0)], material.folder / "b"),
        (model, [], None),
    )
    yield from _calls(
        "atlas",
        hs.atlas,
        (None, [TEXT]),
        (model, []),
        (model, None),
        (model, 5),
        (model, [TEXT], {"dims": 5}),
        (model, [TEXT], {"map": "x"}),
        (model, [TEXT], {"points": 0}),
        (model, [TEXT], {"heads": ["L99"]}),
    )
    yield from _calls("open_atlas", hs.open_atlas, (None,), (5,), ("/no/such",), (material.folder,))
    yield from _calls("Head", hs.Head, ("main", -1, 0), ("main", 0, -1), ("main", "x", 0))


def viewing(material: Material) -> Iterator[Call]:
    """Views of nothing."""
    trace = material.trace
    for name in ("head_view", "model_view"):
        yield from _calls(name, getattr(hs, name), (None,), (5,), (TEXT,), ([],))
    yield from _calls("head_view", hs.head_view, (trace, "L99H0"), (trace, {"by": "letters"}))
    yield from _calls("neuron_view", hs.neuron_view, (None,), (5,), (trace, "L99H0"), (trace, {"head": 5}))
    yield from _calls("side_by_side", hs.side_by_side, (None, trace), (trace, 5))
    view = hs.head_view(trace)
    yield from _calls(
        "view.save", view.save, (None,), (5,), ("",), ("/proc/none/x.html",), (material.folder / "x.docx",)
    )


SECTIONS = {
    "loading": loading,
    "running": running,
    "tracing": tracing,
    "editing": editing,
    "analysing": analysing,
    "viewing": viewing,
}
