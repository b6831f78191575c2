import json
from pathlib import Path

import made_media
import numpy as np
import pytest
import tiny_models
import torch
import transformers
from families import enliven
from PIL import Image
from small_configs import small_config

import headscope as hs
from headscope.cli.edit_options import parse_edit
from headscope.cli.trace import token_line
from headscope.errors import InterventionError
from headscope.traces import Token, Tokens, store
from headscope.traces.tokens import ImagePatch

TEXT = "the cat sat on the mat"


def test_a_trace_is_shown_with_its_tokens_coverage_predictions_and_heads(call, models: Path) -> None:
    result = call("trace", models / "gpt", TEXT, "--top", 3)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "2/2 attention modules captured" in result.stdout
    assert "tokens 9: the c at s at o n the mat" in result.stdout
    assert "predicts at 8 (mat): " in result.stdout
    assert "The 3 sharpest of 8 heads" in result.stdout
    assert result.stdout.count("→") == 3


def test_the_figures_are_those_of_the_trace(call, models: Path) -> None:
    printed = json.loads(call("trace", models / "gpt", TEXT, "--json", "--top", 4).stdout)
    trace = hs.load(models / "gpt").run(TEXT)
    assert [head["head"] for head in printed["heads"]] == sorted(
        (str(head) for head in trace.heads), key=lambda head: -trace.summary(head).max.mean()
    )
    assert printed["tokens"]["main"]["texts"] == trace.tokens["main"].texts
    first = trace.predictions(1)[0]
    assert printed["predictions"][0]["top"][0]["id"] == first.id
    assert printed["predictions"][0]["top"][0]["logprob"] == pytest.approx(first.logprob, abs=1e-5)
    assert len(printed["predictions"][0]["top"]) == 4
    for head in printed["heads"]:
        pattern = trace.pattern(head["head"])
        entropy = -(pattern * np.log(np.where(pattern > 0, pattern, 1))).sum(-1).mean()
        distances = np.abs(np.arange(9)[:, None] - np.arange(9))
        assert head["peak_weight"] == pytest.approx(pattern.max(-1).mean(), abs=1e-5)
        assert head["entropy"] == pytest.approx(entropy, abs=1e-4)
        assert head["distance_all_keys"] == pytest.approx((pattern * distances).sum(-1).mean(), abs=1e-4)
        # What is received is the mean over all queries.
        received = trace.pattern(head["head"]).mean(0)
        assert head["mostly"]["key"] == received.argmax()
        assert head["mostly"]["weight"] == pytest.approx(received.max(), abs=1e-5)
        others = np.where(distances == 0, 0, pattern)
        pair = head["pair"]
        assert (pair["query"], pair["key"]) == np.unravel_index(others.argmax(), others.shape)
        assert pair["weight"] == pytest.approx(others.max(), abs=1e-5)
        assert [pair["query_text"], pair["key_text"]] == [
            printed["tokens"]["main"]["texts"][pair[side]] for side in ("query", "key")
        ]


@pytest.mark.parametrize("record", ["rows", "summary", "full"])
def test_every_record_can_be_shown_and_saved(call, models: Path, tmp_path: Path, record: str) -> None:
    result = call("trace", models / "gpt", TEXT, "--record", record, "-o", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert f"hs.load_trace('{tmp_path / 'run'}')" in result.stdout
    assert hs.load_trace(tmp_path / "run").record == record


def test_an_existing_trace_is_replaced_only_by_force(call, refusal, models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert call("trace", models / "gpt", "the cat", "-o", folder).exit_code == 0
    assert "holds a trace already" in refusal("trace", models / "gpt", TEXT, "-o", folder)
    assert len(hs.load_trace(folder).tokens["main"]) == 3
    assert call("trace", models / "gpt", TEXT, "-o", folder, "--force").exit_code == 0
    assert len(hs.load_trace(folder).tokens["main"]) == 9


def test_a_folder_with_other_things_is_never_touched(refusal, models: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "it holds thesis.tex. Nothing was written" in refusal("trace", "nowhere", TEXT, "-o", tmp_path, "--force")
    assert "a file is there" in refusal("trace", models / "gpt", TEXT, "-o", tmp_path / "thesis.tex", "--force")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_interrupted_save_leaves_nothing(call, models: Path, tmp_path: Path, monkeypatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "save_file", interrupt)
    assert call("trace", models / "gpt", TEXT, "-o", tmp_path / "run").exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_edits_change_the_run_and_are_told(call, models: Path, tmp_path: Path) -> None:
    edits = [hs.scale("L0H1", 0.5), hs.silence("L1H3")]
    hs.save_interventions(edits[:1], tmp_path / "edits.json")
    result = call(
        "trace", models / "gpt", TEXT, "--edits", tmp_path / "edits.json", "--edit", 'silence("L1H3")', "--json"
    )
    printed = json.loads(result.stdout)
    assert printed["edits"] == [repr(intervention) for intervention in edits]
    edited, plain = (hs.load(models / "gpt").run(TEXT, interventions) for interventions in (edits, []))
    assert printed["predictions"][0]["top"][0]["logprob"] == pytest.approx(edited.predictions(1)[0].logprob, abs=1e-5)
    assert edited.predictions(1)[0].logprob != plain.predictions(1)[0].logprob


def test_a_text_can_come_from_stdin(call, models: Path) -> None:
    printed = json.loads(call("trace", models / "gpt", "-", "--json", input="the cat sat\n").stdout)
    assert printed["tokens"]["main"]["texts"] == ["the", "c", "at", "s", "at"]


def test_a_model_can_write_first(call, models: Path) -> None:
    printed = json.loads(call("trace", models / "gpt", "the cat", "--generate", 3, "--json").stdout)
    assert printed["written"] == hs.load(models / "gpt").generate("the cat", max_new_tokens=3).text
    assert 4 <= len(printed["tokens"]["main"]["texts"]) <= 6


def test_pairs_targets_and_images_are_traced(call, models: Path, tmp_path: Path) -> None:
    bert = call("trace", models / "bert", "the cat [MASK]", "--pair", "the dog")
    assert "tokens 8: [CLS] the cat [MASK] [SEP] the dog [SEP]" in bert.stdout
    assert "predicts at 3 ([MASK])" in bert.stdout

    marian = json.loads(call("trace", models / "marian", TEXT, "--target", "the mat", "--json").stdout)
    assert {"encoder", "decoder"} <= set(marian["tokens"])
    assert any(head["head"].startswith("cross.") for head in marian["heads"])
    assert len(marian["predictions"]) == len(marian["tokens"]["decoder"]["texts"])

    Image.new("RGB", (30, 20), (200, 10, 10)).save(tmp_path / "red.png")
    vit = call("trace", models / "vit", "--image", tmp_path / "red.png")
    assert vit.exit_code == 0, vit.output
    assert "(patches in 3×3)" in vit.stdout


def test_the_language_of_a_sound_may_be_chosen(call, refusal, tmp_path: Path) -> None:
    made_media.save_whisper(tmp_path / "whisper", languages=True)
    (tmp_path / "tone.wav").write_bytes(made_media.wav())
    arguments = ("trace", tmp_path / "whisper", "--audio", tmp_path / "tone.wav", "--target", "the nurse", "--json")
    printed = json.loads(call(*arguments, "--language", "fr", "--task", "translate").stdout)
    assert printed["tokens"]["decoder"]["texts"] == ["<s>", "the", "asked", ".", "the", "nurse"]
    assert "has en, fr" in refusal(*arguments, "--language", "German")


def test_markup_and_control_characters_are_shown_not_obeyed(call, models: Path) -> None:
    result = call("trace", models / "bert", "[red] [/bold] \x1b[31m", "--pair", "\u202e x")
    assert result.exit_code == 0, result.output
    assert "[" in result.stdout and "\x1b" not in result.stdout and "\u202e" not in result.stdout
    refusal = call("trace", "/no/[red]such[/red]/folder", TEXT)
    assert "/no/[red]such[/red]/folder" in refusal.stderr


def test_a_cut_text_is_warned_of_once_on_stderr(call, refusal, models: Path) -> None:
    text = "the cat " * 20
    assert "--truncate" in refusal("trace", models / "gpt", text)
    result = call("trace", models / "gpt", text, "--truncate", "--json")
    assert len(json.loads(result.stdout)["tokens"]["main"]["texts"]) == 32
    assert result.stderr.startswith("warning: ") and result.stderr.count("cut off") == 1


@pytest.mark.parametrize(
    ("arguments", "error_text"),
    [
        (["/no/such/folder", TEXT], "there is no folder"),
        (["{models}", TEXT], "is not a model: it has no config.json"),
        (["builtin:nothing", TEXT], "there is no builtin:nothing"),
        (["{models}/gpt", ""], "the text is empty"),
        (["{models}/gpt"], "there is nothing to run"),
        (["{models}/gpt", TEXT, "--pair", "the dog"], "causal"),
        (["{models}/gpt", TEXT, "--image", "{models}/x.png"], "takes text"),
        (["{models}/vit", "--image", "{models}/x.png"], "does not exist"),
        (["{models}/gpt", TEXT, "--edits", "{models}/x.json"], "cannot read interventions"),
        (["{models}/gpt", TEXT, "--edit", 'silence("L9H0")'], "there is no L9H0: the heads are L0H0 to L1H3"),
        (["{models}/gpt", TEXT, "--edit", "silence(L0H0)"], "put it in quotes"),
        (["{models}/gpt", TEXT, "--edit", 'block("L0H0", "dog", "cat")'], "no token reads 'dog'"),
        (["{models}/gpt", TEXT, "--generate", "3", "--target", "a"], "--generate takes a text"),
        (["{models}/gpt", TEXT, "--generate", "0"], "from 1 to"),
        (["{models}/gpt", TEXT, "--device", "abacus"], "there is no device 'abacus'"),
        (["{models}/gpt", TEXT, "--dtype", "float7"], "there is no dtype"),
        (["{models}/gpt", TEXT, "--record", "everything"], "'rows', 'summary', 'heads', 'full'"),
        (["{models}/gpt", TEXT, "--top", "0"], "--top"),
        (["{models}/gpt", TEXT, "--wrong"], "No such option"),
        (["{models}/gpt", "caf\udce9"], "not valid UTF-8"),
        ([], "Missing argument 'model'"),
    ],
)
def test_bad_input_gets_a_clear_message_and_exit_code_2(
    refusal, models: Path, tmp_path: Path, arguments: list[str], error_text: str
) -> None:
    filled = [argument.replace("{models}", str(models)) for argument in arguments]
    assert error_text in refusal("trace", *filled, *(["-o", str(tmp_path / "run")] if filled else []))
    assert not (tmp_path / "run").exists()


def test_a_pickle_is_read_only_when_asked_for(call, refusal, models: Path, tmp_path: Path) -> None:
    import shutil

    import torch
    from safetensors.torch import load_file

    folder = tmp_path / "pickled"
    shutil.copytree(models / "gpt", folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "--allow-pickle" in refusal("trace", folder, TEXT)
    assert call("trace", folder, TEXT, "--allow-pickle").exit_code == 0


@pytest.mark.parametrize(
    ("text", "error_text"), [("silence(3)", "not the address of a head"), ("x" * 30_000, "at most 20,000 characters")]
)
def test_what_is_not_an_edit_is_refused(text: str, error_text: str) -> None:
    with pytest.raises(InterventionError, match=error_text):
        parse_edit(text)


def test_the_refusal_of_an_edit_shows_how_it_is_typed_here() -> None:
    with pytest.raises(InterventionError) as refusal:
        parse_edit("silence(3)")
    assert str(refusal.value).startswith("cannot read --edit 'silence(3)'")
    assert str(refusal.value).endswith("Write for example --edit 'silence(\"L3H2\")'")


@pytest.mark.parametrize("name", ["stories15m-llama-fp16", "all-minilm-l6-v2-fp16"])
def test_real_checkpoints_are_traced(call, shared_weights: Path, tmp_path: Path, name: str) -> None:
    result = call("trace", shared_weights / name, "Once upon a time, there was a little", "-o", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "6/6 attention modules captured" in result.stdout
    assert hs.load_trace(tmp_path / "run").record == "heads"
    if "stories" in name:
        assert "predicts at 9 (little): girl" in result.stdout
    else:
        assert "no predictions" in result.stdout


def test_tokens_of_a_picture_are_counted_and_words_listed():
    patch = ImagePatch(0, 0, (0.0, 0.0, 8.0, 8.0), (0.0, 0.0, 8.0, 8.0))
    tokens = Tokens((Token("0,0", 4, patch=patch), Token("0,1", 4, patch=patch), Token("what", 7), Token("is", 8)))
    assert token_line("main", tokens).plain == "tokens 4 (2 of a picture): what is"


def test_experts_are_summarised_by_layer_and_listed_by_token(call, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = small_config("mixtral")
    config.vocab_size = tiny_models.VOCABULARY
    enliven(module := transformers.MixtralForCausalLM(config))
    module.save_pretrained(tmp_path / "mixtral")
    tiny_models.tiny_tokenizer().save_pretrained(tmp_path / "mixtral")
    result = call("trace", tmp_path / "mixtral", TEXT)
    assert result.exit_code == 0, result.output
    assert "Mixture of experts: each token took 2 experts per layer" in result.stdout
    choices = hs.load(tmp_path / "mixtral").run(TEXT).experts("L1")
    shares = choices.share_of_tokens()
    assert f"E{shares.argmax()} {shares.max():.2f}" in result.stdout
    layers = json.loads(call("trace", tmp_path / "mixtral", TEXT, "--json").stdout)["experts"]
    assert [layer["layer"] for layer in layers] == ["L0", "L1"]
    assert layers[1]["ids"] == choices.ids.tolist() and layers[1]["n_experts"] == 4
