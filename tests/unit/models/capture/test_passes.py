"""A pass: the model called once, its mode restored, observers told, broken edits named."""

import ast
import copy
from pathlib import Path

import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.errors import InterventionError
from headscope.models.capture.passes import Pass
from headscope.models.capture.session import Observer
from headscope.sites import Site

TEXT = "the cat sat on the mat"


@pytest.fixture
def gpt() -> hs.Model:
    return hs.Model(FAMILIES["gpt2"].build(), tiny_tokenizer(), name="tiny gpt")


def run_pass(model: hs.Model, *interventions, **options):
    return Pass.of(model, [model.read(TEXT)], interventions).run(**options)


class Counter(Observer):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Site]] = []
        self.patterns: list[torch.Tensor] = []

    def layer(self, captured) -> None:
        self.seen.append(("layer", captured.layer.site))
        self.patterns.append(captured.pattern)

    def residual(self, site: Site, stream: torch.Tensor) -> None:
        self.seen.append(("residual", site))

    def neurons(self, site: Site, activations: torch.Tensor) -> None:
        self.seen.append(("neurons", site))

    def contribution(self, site: Site, kind: str, output: torch.Tensor) -> None:
        self.seen.append((kind, site))


def test_its_output_is_the_plain_models(gpt) -> None:
    ids = gpt.read(TEXT).model_inputs["input_ids"][None]
    with torch.no_grad():
        plain = copy.deepcopy(gpt.module)(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    torch.testing.assert_close(run_pass(gpt).logits, plain, rtol=0, atol=1e-5)  # (its SDPA sums in another order)


def test_fewer_logits_are_the_last_ones(gpt) -> None:
    every = run_pass(gpt).logits
    last, answers = run_pass(gpt, logits=2).logits, run_pass(gpt, logits="answers").logits
    torch.testing.assert_close(last, every[:, -2:], rtol=0, atol=1e-5)
    torch.testing.assert_close(answers, every[:, -1:], rtol=0, atol=1e-5)


def test_observers_see_every_place_of_a_layer_once_and_in_order(gpt) -> None:
    counter = Counter()
    run_pass(gpt, observers=[counter], record="heads")
    first = [kind for kind, site in counter.seen if site.layer == 0]
    assert first == ["residual", "layer", "attention", "neurons", "mlp"]
    assert all(pattern is not None for pattern in counter.patterns)


def test_observers_see_what_edits_made(gpt) -> None:
    counter = Counter()
    run_pass(gpt, hs.replace_pattern("L0H0", torch.eye(9)), observers=[counter])
    assert torch.equal(counter.patterns[0][0, 0], torch.eye(9))


def test_training_mode_is_set_for_the_pass_and_restored(gpt) -> None:
    gpt.module.train()
    gpt.module.transformer.h[0].eval()
    before = {part: part.training for part in gpt.module.modules()}
    assert torch.equal(run_pass(gpt, training=False).logits, run_pass(gpt, training=False).logits)
    assert {part: part.training for part in gpt.module.modules()} == before
    with pytest.raises(InterventionError):
        run_pass(gpt, hs.scale("L0H0", 1e300), training=False)
    assert {part: part.training for part in gpt.module.modules()} == before


def test_dropout_is_kept_and_gradients_flow_when_training(gpt) -> None:
    options = {"training": True, "grad": True, "check": False}
    first, second = (run_pass(gpt, **options).logits for _ in range(2))
    assert not torch.equal(first, second)
    first.sum().backward()
    assert all(weight.grad is not None for weight in gpt.module.transformer.h.parameters())
    assert not gpt.module.training


def test_corpus_runs_restore_the_mode_of_the_module(gpt, tmp_path) -> None:
    from headscope import runs

    def count(layer):
        yield layer.tally(layer.pattern.sum((2, 3)), layer.queries.sum(-1))

    gpt.module.train()
    runs.run(gpt, [TEXT], [runs.OfLayers("count", count)], tmp_path / "run")
    assert gpt.module.training


def test_the_edit_that_breaks_the_output_is_named(gpt) -> None:
    with pytest.raises(InterventionError, match=r"hs\.scale\('L1H1', 1e\+300\) makes the model's output NaN"):
        run_pass(gpt, hs.silence("L0H0"), hs.scale("L1H1", 1e300))


def calls_a_forward(node: ast.AST) -> bool:
    """Whether this is `module(**inputs)`."""
    if not isinstance(node, ast.Call) or all(keyword.arg for keyword in node.keywords):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("module", "baked")


def test_only_passes_call_a_models_forward() -> None:
    """Beside what compares with, searches or times the plain module."""
    source = Path(hs.__file__).parent
    callers = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if any(calls_a_forward(node) for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    }
    comparing = {"models/capture/verification_runs.py", "models/baking.py", "models/slimming.py"}
    searching = {"models/probed_module.py", "models/head_rows.py"}  # where the attention is; which weights a head uses
    timing = {"pruning/size_and_speed.py"}
    assert callers == {"models/capture/passes.py"} | comparing | searching | timing
