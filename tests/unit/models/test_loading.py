"""Loading: clear words for what is missing, and warnings people need."""

import importlib
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer
from torch import nn
from transformers import BertForSequenceClassification, BertModel

import headscope as hs
from headscope.errors import BudgetError, CaptureError, HeadscopeWarning, InputError, LoadError
from headscope.models import Model
from headscope.models.loading import chosen_device

load_module = importlib.import_module("headscope.models.loading")  # the package has a function of this name


@pytest.fixture
def folder(tmp_path):
    FAMILIES["gpt2"].build().save_pretrained(tmp_path / "gpt2")
    return tmp_path / "gpt2"


def test_a_folder_loads_with_the_class_it_was_saved_from(folder):
    model = hs.load(folder)
    assert type(model.module).__name__ == "GPT2LMHeadModel" and not model.module.training
    assert model.coverage.startswith("2/2 attention modules")


class _NeedsTorchvision:
    """A processor that cannot be made here."""

    @staticmethod
    def from_pretrained(*_: object, **__: object) -> None:
        raise ImportError("LlavaProcessor requires the Torchvision library but it was not found in your environment.")


@pytest.mark.parametrize(
    ("error", "package"),
    [
        (ImportError("\nXProcessor requires the Torchvision library but it was not found."), "torchvision"),
        (ImportError("requires the 🤗 Tokenizers library but"), "tokenizers"),
        (ModuleNotFoundError("No module named 'PIL'", name="PIL.Image"), "pillow"),
        (ImportError("requires the OpenCV library but it"), "opencv-python"),
        (ImportError("cannot import name 'x' from 'y'", name="y"), None),
        (OSError("no file"), None),
    ],
)
def test_the_package_that_an_error_asks_for_is_named_as_for_pip(error, package):
    assert load_module.missing_package(error) == package


def test_a_processor_that_lacks_a_package_is_warned_of_by_name(folder, monkeypatch):
    tiny_tokenizer().save_pretrained(folder)
    monkeypatch.setattr(load_module, "AutoProcessor", _NeedsTorchvision)
    with pytest.warns(HeadscopeWarning, match="needs the package torchvision, which is not installed"):
        model = hs.load(folder)
    (note,) = model.warnings
    assert "the processor of" in note and "alone was loaded" in note and "pip install torchvision" in note
    assert model.run("the cat").tokens["main"]  # it reads text


def test_a_model_whose_every_reader_lacks_a_package_says_so(folder, monkeypatch):
    for name in ("AutoProcessor", "AutoTokenizer", "AutoImageProcessor", "AutoFeatureExtractor"):
        monkeypatch.setattr(load_module, name, _NeedsTorchvision)
    with pytest.warns(HeadscopeWarning, match="no text, image or sound can be read. pip install torchvision"):
        hs.load(folder)


def test_missing_and_wrong_folders_are_named(tmp_path):
    with pytest.raises(LoadError, match="no folder"):
        hs.load(tmp_path / "nowhere")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("hello")
    with pytest.raises(LoadError, match=r"no config.json \(it holds dear.txt\)"):
        hs.load(tmp_path / "letters")
    with pytest.raises(LoadError, match="is a file"):
        hs.load(tmp_path / "letters" / "dear.txt")
    with pytest.raises(LoadError, match="built-in models are"):
        hs.load("builtin:oracle")
    (tmp_path / "letters" / "config.json").write_text("{")
    with pytest.raises(LoadError, match="configuration"):
        hs.load(tmp_path / "letters")


def test_without_a_network_the_hub_error_says_how_to_work_offline():
    with pytest.raises(LoadError, match="HF_HUB_OFFLINE"):
        hs.load("somebody/some-model")


def test_a_pickle_is_read_only_when_asked_for(folder):
    state = hs.load(folder).module.state_dict()
    (folder / "model.safetensors").unlink()
    torch.save({name: value.clone() for name, value in state.items()}, folder / "pytorch_model.bin")
    with pytest.raises(LoadError, match="allow_pickle=True"):
        hs.load(folder)
    assert hs.load(folder, allow_pickle=True).heads


def test_code_of_a_checkpoint_is_not_run(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mystery", "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text("raise SystemExit('ran')")
    with pytest.raises(LoadError, match="trust_remote_code=True"):
        hs.load(folder)


def test_fresh_weights_are_warned_of(tmp_path):
    bert = FAMILIES["bert"].build()
    BertModel(bert.config).save_pretrained(tmp_path / "bert")
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    config["architectures"] = [BertForSequenceClassification.__name__]
    (tmp_path / "bert" / "config.json").write_text(json.dumps(config))
    with pytest.warns(HeadscopeWarning, match=r"freshly initialised.*classifier"):
        hs.load(tmp_path / "bert")


def test_uniform_attention_is_warned_of():
    module = FAMILIES["gpt2"].build()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "c_attn" in name:
                parameter.zero_()
    with pytest.warns(HeadscopeWarning, match="uniform everywhere"):
        trace = Model(module).run(inputs={"input_ids": FAMILIES["gpt2"].inputs()["input_ids"][:1]})
    assert "uniform" in trace.warnings[0]


def test_a_model_without_attention_is_refused():
    model = Model(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    with pytest.raises(CaptureError, match="no attention"):
        model.probe(torch.zeros(1, 4))
    with pytest.raises(InputError, match="torch module"):
        Model("gpt2")


def test_a_record_that_would_not_fit_is_refused_before_the_run():
    model = Model(FAMILIES["gpt2"].build())
    ids = FAMILIES["gpt2"].inputs()["input_ids"][:1]
    with pytest.raises(BudgetError, match=r"record='heads' would keep .* record='rows' would fit"):
        model.run(inputs={"input_ids": ids}, record="heads", budget=3000)
    with pytest.raises(BudgetError, match="shorten the input"):
        model.run(inputs={"input_ids": ids}, record="rows", budget=10)
    trace = model.run(inputs={"input_ids": ids}, budget=15_000)
    assert trace.record == "summary" and "summary was kept" in trace.warnings[0]
    assert model.run(inputs={"input_ids": ids}).record == "heads"
    with pytest.raises(InputError, match="rows, summary, heads, full"):
        model.run(inputs={"input_ids": ids}, record="everything")


def test_the_foreseen_size_is_about_the_real_one():
    from headscope.models.inputs.batch import ready_inputs
    from headscope.models.memory_budget import record_bytes

    model = Model(FAMILIES["gpt2"].build())
    ids = FAMILIES["gpt2"].inputs()["input_ids"][:1]
    batch = ready_inputs(None, model.module, {"input_ids": ids}, stacks=model.stacks)
    for record in ("rows", "heads"):
        real = model.run(inputs={"input_ids": ids}, record=record).nbytes()
        assert record_bytes(model, batch, record) >= 0.9 * real


def test_a_device_that_is_not_there_is_named(folder):
    for device in ("quantum", "meta"):
        with pytest.raises(LoadError, match=f"no device '{device}'"):
            hs.load(folder, device=device)
    if not torch.cuda.is_available():
        with pytest.raises(LoadError, match="choose one of auto, cpu"):
            hs.load(folder, device="cuda")


def test_attention_that_is_combined_from_several_is_warned_of():
    from transformers import DiffLlamaConfig, DiffLlamaForCausalLM

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
    with pytest.warns(HeadscopeWarning, match="combine the results"):
        model = Model(DiffLlamaForCausalLM(DiffLlamaConfig(vocab_size=99, num_hidden_layers=2, **sizes)).eval())
    assert "several attentions a module" in model.coverage


@pytest.mark.parametrize("name", ["albert", "t5", "swin", "longformer", "home_multihead"])
def test_a_module_that_serves_several_layers_is_not_taken_for_a_combination(name):
    model = Model(FAMILIES[name].build())
    model.probe_if_new((), FAMILIES[name].inputs())
    assert not model.layout.combined


def test_two_threads_load_one_after_the_other(folder, monkeypatch):
    both_at_once, overlaps = threading.Barrier(2), []
    read_config = load_module.AutoConfig.from_pretrained

    def slow(*args, **options):
        try:
            both_at_once.wait(0.5)
            overlaps.append(threading.current_thread().name)
        except threading.BrokenBarrierError:
            both_at_once.reset()
        return read_config(*args, **options)

    monkeypatch.setattr(load_module.AutoConfig, "from_pretrained", slow)
    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(hs.load, [folder, folder]))
    assert not overlaps
    weights, others = (model.module.state_dict() for model in models)
    assert all(torch.equal(weights[name], others[name]) for name in weights)


def test_threads_that_load_at_once_in_a_fresh_process_get_the_trained_weights():
    code = """
import warnings
from concurrent.futures import ThreadPoolExecutor
import headscope as hs
warnings.simplefilter("error", hs.HeadscopeWarning)
with ThreadPoolExecutor(4) as pool:
    models = list(pool.map(lambda _: hs.load("builtin:bert"), range(4)))
totals = {sum(float(weight.double().abs().sum()) for weight in model.module.parameters()) for model in models}
assert len(totals) == 1, totals
hs.load("builtin:bert")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("cuda", "mps", "chosen"), [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")])
def test_auto_is_the_best_device_there_is(cuda, mps, chosen, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert chosen_device("auto") == chosen_device(None) == chosen
    assert chosen_device("cpu") == "cpu" and chosen_device("cuda:1") == "cuda:1"
