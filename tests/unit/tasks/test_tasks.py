"""Tasks: what they read, their loss, their metrics, and the models that they refuse."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_models import SENTENCES
from tiny_tasks import PAIRS, bert, gpt, language_task, marian, tagged, wrap

import headscope as hs
from headscope import tasks
from headscope.corpora import Example
from headscope.errors import HeadscopeError, HeadscopeWarning, InputError, LoadError, MissingExtraError
from headscope.tasks.translation_task import bleu

# Language modelling


def test_bits_per_byte_of_a_uniform_model_are_known_by_hand() -> None:
    model = gpt()
    with torch.no_grad():
        model.module.transformer.wte.weight.zero_()  # all logits are 0: each of 128 tokens has probability 1/128
    text = "the cat sat on the mat"
    tokens = model.read(text).tokens["main"]
    score = tasks.language_modelling().evaluate(model, [Example("mine", text=text)])
    # No token stands before the first: it is not predicted, and its bytes do not count.
    n_bytes = len(text[tokens[0].end :].encode())
    assert score.value == pytest.approx((len(tokens) - 1) * math.log2(128) / n_bytes, rel=1e-6)
    loss = tasks.language_modelling().evaluate(model, [Example("mine", text=text)], metric="loss")
    assert loss.value == pytest.approx(math.log(128), rel=1e-6)


def test_the_loss_is_that_of_transformers() -> None:
    model = gpt()
    task = language_task()
    batch = task.read(model, [Example("mine", text=SENTENCES[0])])
    ids = batch[0].inputs.model_inputs["input_ids"][None]
    expected = model.module(input_ids=ids, labels=ids).loss
    torch.testing.assert_close(task.loss(model, batch, training=False), expected)


def test_long_texts_are_read_in_parts_and_nothing_is_left_out() -> None:
    model, text = gpt(), " ".join(SENTENCES)
    inputs = tasks.language_modelling().read(model, [Example("mine", text=text)])
    assert len(inputs) > 2 and max(part.length for part in inputs) <= 24
    ids = [int(number) for part in inputs for number in part.inputs.model_inputs["input_ids"]]
    assert model.tokenizer.decode(ids) == text
    assert tasks.language_modelling().evaluate(model, [Example("mine", text=text)]).n == 1


def test_the_score_does_not_depend_on_batches_and_edits_change_it() -> None:
    model, task = gpt(), language_task()
    scores = [task.evaluate(model, "train", batch_size=size).value for size in (1, 3, 32)]
    assert np.ptp(scores) < 1e-6
    edited = task.evaluate(model, "train", [hs.silence("L0H0"), hs.silence("L1H1")]).value
    assert abs(edited - scores[0]) > 1e-6
    score = task.evaluate(model, "train", interval=True)
    assert score.interval is not None and score.interval[0] < score.value < score.interval[1]


# Masked language modelling


def test_evaluation_hides_the_same_tokens_whatever_the_batch() -> None:
    model, task = bert(), tasks.masked_language_modelling()
    examples = [Example(str(number), text=text) for number, text in enumerate(SENTENCES)]
    inputs = task.read(model, examples)
    first = task.prepare_batch(model, inputs, training=False)
    again = task.prepare_batch(model, inputs[::-1], training=False)[::-1]
    for masked, same, plain in zip(first, again, inputs, strict=True):
        assert masked.inputs == same.inputs and torch.equal(masked.labels, same.labels)
        ids = plain.inputs.model_inputs["input_ids"]
        is_hidden = masked.labels != -100
        assert int(is_hidden.sum()) == max(1, round(0.15 * (len(ids) - 2)))
        assert torch.equal(masked.labels[is_hidden], ids[is_hidden])
        assert not is_hidden[0] and not is_hidden[-1]  # [CLS] and [SEP]
    assert task.evaluate(model, examples, batch_size=1).value == pytest.approx(task.evaluate(model, examples).value)
    other = tasks.masked_language_modelling(seed=1).prepare_batch(model, inputs, training=False)
    assert any(not torch.equal(masked.labels, others.labels) for masked, others in zip(first, other, strict=True))


def test_training_hides_other_tokens_each_time_from_torchs_random_numbers() -> None:
    model, task = bert(), tasks.masked_language_modelling(share=0.5)
    inputs = task.read(model, [Example("mine", text=SENTENCES[1])])
    torch.manual_seed(3)
    first, second = (task.prepare_batch(model, inputs, training=True)[0].labels for _ in range(2))
    torch.manual_seed(3)
    assert torch.equal(first, task.prepare_batch(model, inputs, training=True)[0].labels)
    assert not torch.equal(first, second)


# Translation


def test_labels_of_a_translation_are_the_decoders_input_one_step_on() -> None:
    model = marian()
    task = tasks.translation(train=PAIRS)
    inputs = task.inputs(model, "train")[0]
    decoder_ids = inputs.inputs.model_inputs["decoder_input_ids"]
    assert torch.equal(inputs.labels[:-1], decoder_ids[1:])
    batch = model.module(
        input_ids=inputs.inputs.model_inputs["input_ids"][None], labels=inputs.labels[None], decoder_input_ids=None
    )
    torch.testing.assert_close(task.loss(model, [inputs], training=False), batch.loss)


def test_bleu_is_sacrebleus_own() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    model = hs.load("builtin:translate")
    sources, targets = ["I love you very much.", "Where is the station?"], ["Я тебя очень люблю.", "Где вокзал?"]
    task = tasks.translation(dev=list(zip(sources, targets, strict=True)), num_beams=2, max_target=12)
    written = [model.generate(text, num_beams=2, max_new_tokens=12).text for text in sources]
    assert task.translate(model, "dev", batch_size=2) == written
    score = task.evaluate(model, "dev", interval=True)
    assert score.value == pytest.approx(sacrebleu.corpus_bleu(written, [targets]).score)
    assert score.n == 2 and score.interval is not None


def test_the_interval_of_bleu_stays_between_0_and_100() -> None:
    pytest.importorskip("sacrebleu")
    targets = [f"the cat sat on mat {number} by the door" for number in range(8)]
    for written in ([targets[0], *["nothing like that"] * 7], targets):
        score = bleu(written, targets, interval=True)
        assert score.interval is not None and 0 <= score.interval[0] <= score.interval[1] <= 100


def test_without_sacrebleu_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(MissingExtraError, match=r"headscope\[tasks\]"):
        tasks.translation(dev=PAIRS[:1], max_target=2, num_beams=1).evaluate(marian())


# Classes


def test_classes_are_known_by_their_names_or_by_their_order() -> None:
    rows = [Example("1", text=SENTENCES[0], label="good"), Example("2", text=SENTENCES[1], label="bad")]
    task = tasks.sequence_classification(train=rows, dev=rows)
    assert task.labels == ("bad", "good")
    assert task.class_ids(bert("SequenceClassification")) == {"bad": 0, "good": 1}
    own = bert("SequenceClassification", id2label={0: "good", 1: "bad"}, label2id={"good": 0, "bad": 1})
    assert [int(task_input.labels) for task_input in task.read(own, rows)] == [0, 1]
    logits = model_logits(own, rows)
    accuracy = np.mean([logits[0].argmax() == 0, logits[1].argmax() == 1])
    assert task.evaluate(own).value == pytest.approx(accuracy)
    assert tasks.sequence_classification(train=[*rows, Example("3", text="it", label="10")]).labels[-1] == "10"


def model_logits(model: hs.Model, rows: list[Example]) -> list[np.ndarray]:
    return [
        model.module(**{name: ids[None] for name, ids in model.read(row.text).model_inputs.items()})
        .logits[0]
        .detach()
        .numpy()
        for row in rows
    ]


def test_more_classes_than_the_model_has_are_refused() -> None:
    rows = [Example(str(number), text="the cat", label=f"class {number}") for number in range(3)]
    with pytest.raises(InputError, match=r"3 classes .*has 2 .*num_labels=3"):
        tasks.sequence_classification(train=rows).inputs(bert("SequenceClassification"), "train")


def test_the_first_token_of_a_word_answers_for_it() -> None:
    rows = [tagged("1", "the cat was tired unbelievably", "B-NP I-NP B-VP I-VP O")]
    model = bert("TokenClassification", num_labels=5)
    task = tasks.tagging(dev=rows)
    inputs = task.inputs(model, "dev")[0]
    assert inputs.words == (1, 2, 3, 4, 5) and inputs.length > 7  # the last word is spelt
    numbers = task.class_ids(model)
    assert inputs.labels[1:6].tolist() == [numbers[tag] for tag in rows[0].tags["chunk"]]
    assert set(inputs.labels[6:].tolist()) == {-100}
    predicted = (
        model.module(**{name: ids[None] for name, ids in inputs.inputs.model_inputs.items()}).logits[0].argmax(-1)
    )
    names = {number: tag for tag, number in numbers.items()}
    tags = [names[int(predicted[place])] for place in inputs.words]
    assert task.metric == "f1"
    assert task.evaluate(model).value == pytest.approx(tasks.chunk_f1([rows[0].tags["chunk"]], [tags]))
    accuracy = task.evaluate(model, metric="accuracy").value
    assert accuracy == pytest.approx(
        np.mean([tag == gold for tag, gold in zip(tags, rows[0].tags["chunk"], strict=True)])
    )


def test_tags_that_are_not_phrases_are_judged_by_accuracy() -> None:
    rows = [tagged("1", "the cat", "B-NP I-NP", "DT NN")]
    task = tasks.tagging(dev=rows, column="pos")
    assert task.metric == "accuracy"
    with pytest.raises(InputError, match="no IOB tag"):
        task.evaluate(bert("TokenClassification"), metric="f1")
    with pytest.raises(InputError, match="no tags 'ner': it has chunk, pos"):
        tasks.tagging(dev=rows, column="ner")


def test_images_of_a_folder_are_classified(tmp_path: Path) -> None:
    import transformers as hf

    for number, name in enumerate(("dark", "light")):
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8), (200 * number, 200 * number, 200 * number)).save(tmp_path / name / "1.png")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    module = hf.ViTForImageClassification(hf.ViTConfig(image_size=8, patch_size=4, **sizes))
    size = {"height": 8, "width": 8}
    model = wrap(module, hf.ViTImageProcessor(size=size))
    task = tasks.image_classification(train=tmp_path, dev=tmp_path)
    assert task.evaluate(model, metric="loss").n == 2
    options = tasks.FitOptions(steps=30, batch_size=2, rate=1e-2, evaluate_every=10)
    assert tasks.fit(model, task, options, folder=tmp_path / "fit").best.value == 1.0
    assert model.config.id2label == {0: "dark", 1: "light"}


# What does not fit


def test_a_model_that_does_not_fit_is_told_what_does() -> None:
    with pytest.raises(InputError, match=r"tagging needs a model with classes for every token.*: language_modelling\."):
        tasks.tagging(dev=[tagged("1", "a", "O")]).evaluate(gpt())
    with pytest.raises(InputError, match="Tasks that fit this model: masked_language_modelling"):
        tasks.language_modelling(dev=["text"]).evaluate(bert())
    with pytest.raises(InputError, match="Tasks that fit this model: translation"):
        tasks.masked_language_modelling(dev=["text"]).evaluate(marian())


def test_unknown_metrics_absent_data_and_absent_fields_are_named() -> None:
    with pytest.raises(InputError, match="no metric 'bleu': choose one of bits_per_byte, loss, accuracy"):
        tasks.language_modelling(metric="bleu")
    with pytest.raises(InputError, match=r"no dev data: tasks\.language_modelling\(dev=…\)"):
        tasks.language_modelling(train=["a"]).evaluate(gpt())
    with pytest.raises(InputError, match="no split 'valid'"):
        language_task().evaluate(gpt(), "valid")
    with pytest.raises(InputError, match="no source and target"):
        tasks.translation(dev=["alone"]).evaluate(marian())
    with pytest.raises(InputError, match="no label"):
        tasks.sequence_classification(dev=["alone"]).evaluate(bert("SequenceClassification"))
    with pytest.raises(InputError, match="the data is empty"):
        language_task().evaluate(gpt(), [])


def test_datasets_are_opened_by_name_if_the_package_is_there(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match="pip install datasets"):
        tasks.language_modelling(dev="dataset:some/texts:train")
    with pytest.raises(InputError, match="dataset:NAME:SPLIT"):
        tasks.language_modelling(dev="dataset:some/texts")
    with pytest.raises(HeadscopeError):
        tasks.language_modelling(dev="no-such-file.txt")


class Rows:
    """Stands in for a split of a Hugging Face dataset: columns, features with names of classes, rows."""

    def __init__(self, columns: list[str], rows: list[dict], **names: list[str]) -> None:
        self.column_names, self.rows = columns, rows
        self.features = {column: SimpleNamespace(names=classes) for column, classes in names.items()}

    def __iter__(self):
        return iter(self.rows)


def test_data_is_read_from_a_dataset_by_its_name(monkeypatch) -> None:
    calls: list[tuple] = []
    reviews = Rows(
        ["sentence", "label"], [{"sentence": text, "label": n % 2} for n, text in enumerate(SENTENCES[:4])],
        label=["bad", "good"],
    )  # fmt: skip
    pairs = Rows(["translation"], [{"translation": {"en": source, "ru": target}} for source, target in PAIRS])

    def load_dataset(*name: str, split: str) -> Rows:
        calls.append((*name, split))
        if split == "none":
            raise ValueError("Unknown split 'none'")
        return pairs if name[0] == "pairs" else reviews

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    task = tasks.sequence_classification(dev="dataset:nyu-mll/glue:sst2:validation")
    assert calls == [("nyu-mll/glue", "sst2", "validation")]
    assert [example.label for example in task.data("dev")] == ["bad", "good"] * 2
    assert task.evaluate(bert("SequenceClassification", id2label={0: "bad", 1: "good"})).n == 4
    translation = tasks.translation(dev="dataset:pairs:test", metric="loss")
    by_list = tasks.translation(dev=PAIRS, metric="loss").evaluate(marian())
    assert calls[-1] == ("pairs", "test") and translation.evaluate(marian()) == by_list
    texts = tasks.language_modelling(dev="dataset:reviews:train", columns={"text": "sentence"})
    assert texts.evaluate(gpt()).value == tasks.language_modelling(dev=[*SENTENCES[:4]]).evaluate(gpt()).value
    with pytest.raises(LoadError, match="could not load 'dataset:pairs:none': Unknown split"):
        tasks.translation(dev="dataset:pairs:none")


def test_what_is_cut_is_counted_in_one_warning() -> None:
    rows = [Example(str(number), text=" ".join(SENTENCES), label=str(number)) for number in range(2)]
    with pytest.warns(HeadscopeWarning, match="2 of 2 examples were cut") as caught:
        tasks.sequence_classification(dev=rows).evaluate(bert("SequenceClassification"))
    assert len(caught) == 1


def test_tasks_load_without_what_a_bare_machine_lacks() -> None:
    import subprocess

    absent = "typer pandas datasets sacrebleu pyarrow duckdb scipy sklearn rich matplotlib"
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r}.split()))\n"  # None there: cannot be imported
        "import headscope.tasks as tasks; print(len([getattr(tasks, name) for name in dir(tasks)]))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) > 10
