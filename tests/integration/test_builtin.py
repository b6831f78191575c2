"""The built-in models: they load anywhere, keep to their size, and have the heads their cards name."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoImageProcessor,
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForPreTraining,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

import headscope as hs

ROOT = Path(__file__).parents[2]
FOLDER = Path(hs.__file__).parent / "builtin"
NAMES = ["gpt", "bert", "vit", "translate"]


@pytest.fixture(scope="module")
def models():
    return {name: hs.load(f"builtin:{name}") for name in NAMES}


@pytest.fixture(scope="module")
def examples():
    return json.loads((FOLDER / "examples.json").read_text())


def known_heads_script():
    """The script that named the heads, as a module."""
    spec = importlib.util.spec_from_file_location("known_heads", ROOT / "training" / "known_heads.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_known_heads_are_measured_again_and_agree(name):
    written = json.loads((FOLDER / name / "known_heads.json").read_text())
    heads_by_measure = known_heads_script().known_heads(name)
    assert heads_by_measure.keys() == written.keys()
    for measure, about in written.items():
        assert heads_by_measure[measure]["heads"] == pytest.approx(about["heads"], abs=0.01)
        assert all(score > about["chance"] for score in about["heads"].values())


def test_the_language_model_has_induction_and_previous_token_heads():
    heads = json.loads((FOLDER / "gpt" / "known_heads.json").read_text())
    assert max(heads["induction"]["heads"].values()) >= 0.8
    assert max(heads["previous_token"]["heads"].values()) >= 0.5


def test_no_file_is_too_large_and_all_fit_together():
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert max(path.stat().st_size for path in files) <= 14e6
    assert sum(path.stat().st_size for path in files) <= 41e6
    assert all(path.stat().st_size <= 1e6 for path in files if path.name == "atlas.zip")


def test_plain_transformers_loads_them():
    gpt = AutoModelForCausalLM.from_pretrained(FOLDER / "gpt", dtype=torch.float32)
    tokens = AutoTokenizer.from_pretrained(FOLDER / "gpt")("Once upon a time", return_tensors="pt")
    assert gpt(**tokens).logits.isfinite().all()
    bert = AutoModelForPreTraining.from_pretrained(FOLDER / "bert", dtype=torch.float32)
    pair = AutoTokenizer.from_pretrained(FOLDER / "bert")("He came.", "She went.", return_tensors="pt")
    assert set(pair["token_type_ids"][0].tolist()) == {0, 1} and bert(**pair).prediction_logits.isfinite().all()
    translate = AutoModelForSeq2SeqLM.from_pretrained(FOLDER / "translate", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(FOLDER / "translate")
    written = translate.generate(**tokenizer("I do not know.", return_tensors="pt"), max_new_tokens=20)
    assert tokenizer.decode(written[0], skip_special_tokens=True).strip().startswith("Я не знаю")
    vit = AutoModelForImageClassification.from_pretrained(FOLDER / "vit")
    assert vit.config.num_labels == 10 and AutoImageProcessor.from_pretrained(FOLDER / "vit") is not None


def test_the_language_model_writes_english(models):
    story = models["gpt"].generate("The doctor asked the nurse a question. She", max_new_tokens=12)
    assert len(story.text.split()) >= 6
    trace = models["gpt"].run("The doctor asked the nurse a question. She")
    assert {"was", "said", "had", "answered", "replied"} & {
        prediction.text.strip() for prediction in trace.predictions(5)
    }


def test_induction_heads_do_the_copying(models):
    """Random tokens can only be guessed the second time, and only by heads that find the first.

    Every head of the induction heads' layers is silenced in turn: nats of loss on the second half, 6 inputs.
    """
    model = models["gpt"]
    inputs = hs.analysis.repeated_tokens(model, n_inputs=6, length=50)
    induction = json.loads((FOLDER / "gpt" / "known_heads.json").read_text())["induction"]["heads"]

    def second_half_loss(edits):
        losses = []
        for example in inputs:
            ids, logits = example.model_inputs["input_ids"], model.run(example, edits, record="full").logits
            losses.append(torch.nn.functional.cross_entropy(logits[:-1], ids[1:], reduction="none")[-49:].mean())
        return float(torch.stack(losses).mean())

    plain = second_half_loss([])
    layers = {head.partition("H")[0] for head in induction}
    raised = {
        str(head): second_half_loss([hs.silence(head)]) - plain for head in model.heads if str(head.site) in layers
    }
    others = [value for head, value in raised.items() if head not in induction]
    assert len(raised) == 8 * len(layers) and min(raised[head] for head in induction) > max(others)
    assert max(raised, key=raised.get) in induction and max(raised.values()) > 1.0 and max(others) < 0.1
    assert plain < 1.0 and second_half_loss([hs.silence(head) for head in induction]) - plain > 5.0


def test_a_masked_word_is_filled(models):
    answers = [
        prediction.text for prediction in models["bert"].run("She opened the [MASK] and went out.").predictions(5)
    ]
    assert "door" in answers


def test_our_drawings_are_recognised(models):
    expected = {"aeroplane": "airplane", "lorry": "truck", "sailing_boat": "ship"}
    for name, label in expected.items():
        trace = models["vit"].run(FOLDER / "images" / f"{name}.png")
        assert trace.predictions(1)[0].text == label


@pytest.mark.parametrize("name", NAMES)
def test_every_example_runs(models, examples, name):
    assert examples[name]
    for example in examples[name]:
        source = FOLDER / example["image"] if "image" in example else example["text"]
        trace = models[name].run(source, pair=example.get("pair"), target=example.get("target"))
        assert trace.heads and not trace.warnings


@pytest.mark.parametrize("name", NAMES)
def test_every_card_states_its_figures(name):
    card = (FOLDER / name / "README.md").read_text()
    assert "license:" in card and "## Known heads" in card
    assert json.loads((FOLDER / name / "figures.json").read_text())
