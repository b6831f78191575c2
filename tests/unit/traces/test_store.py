"""Traces on disk: bit for bit what they were, and whole whatever happens while they are written."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_traces import assert_equal, random_layer, trace_of_layers
from safetensors import SafetensorError
from tiny_models import FAMILIES

from headscope.attention import Bias, Formula, Mask
from headscope.errors import HeadscopeError, LoadError
from headscope.files import with_checksum
from headscope.models import Model
from headscope.sites import Site
from headscope.traces import RECORDS, Token, Tokens, Trace, load_trace, store


def files(folder: Path) -> list[str]:
    """Everything in a folder, hidden things too."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


def tensors(folder: Path) -> Path:
    (file,) = folder.glob("tensors-*.safetensors")
    return file


def rewrite(folder: Path, *, sealed: bool = True, **changes) -> None:
    """Change what trace.json says; `sealed` with a checksum that fits, as only an enemy would."""
    header = json.loads((folder / "trace.json").read_text())
    header.update(changes)
    if sealed:
        header.pop("checksum")
        header = with_checksum(header)
    (folder / "trace.json").write_text(json.dumps(header))


@pytest.fixture
def trace() -> Trace:
    return trace_of_layers(random_layer(Formula(0.5, mask=Mask.causal(12, 12))), random_layer(Formula(0.5)))


# Nothing is lost


FORMULAS = {
    "plain": Formula(0.5),
    "causal": Formula(0.5, mask=Mask.causal(12, 12)),
    "softcap and sinks": Formula(
        0.5, softcap=30.0, sinks=torch.tensor([0.0, 1.0, 2.0, -1.0]), mask=Mask.causal(12, 12)
    ),
    "dense mask": Formula(0.5, mask=Mask(12, 12, dense=torch.rand(1, 4, 12, 12) < 0.7, query_offset=3, key_offset=2)),
    "window": Formula(
        0.5, mask=Mask(12, 12, start=torch.arange(12)[None] // 4 * 4, keys=(torch.arange(12) < 11)[None])
    ),
    "bias per key": Formula(0.5, bias=Bias("key", torch.randn(1, 4, 12), 12, 12)),
    "bias per offset": Formula(0.5, bias=Bias("offset", torch.randn(1, 4, 23), 12, 12)),
    "dense bias": Formula(0.5, bias=Bias("dense", torch.randn(1, 4, 12, 12, dtype=torch.float16), 12, 12)),
    "windows": Formula(0.5, bias=Bias("windows", torch.randn(3, 4, 4, 4), 12, 12)),
}


@pytest.mark.parametrize(("mask", "is_causal"), [(Mask.causal(12, 12), True), (None, False)])
@pytest.mark.parametrize("record", RECORDS)
def test_a_trace_of_0_1_0_that_does_not_say_which_layers_are_causal_is_read_for_it(mask, is_causal, record, tmp_path):
    trace_of_layers(random_layer(Formula(0.5, mask=mask), record=record), record=record).save(tmp_path / "trace")
    layers = json.loads((tmp_path / "trace" / "trace.json").read_text())["layers"]
    assert [layer.pop("is_causal") for layer in layers] == [is_causal]
    rewrite(tmp_path / "trace", layers=layers)
    assert [layer.is_causal for layer in load_trace(tmp_path / "trace").layers.values()] == [is_causal]


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_saved_trace_loads_bit_for_bit(name, dtype, tmp_path):
    trace = trace_of_layers(random_layer(FORMULAS[name], dtype=dtype), random_layer(FORMULAS[name], dtype=dtype))
    trace.save(tmp_path / "a" / "trace")
    loaded = load_trace(tmp_path / "a" / "trace")
    assert_equal(loaded, trace)
    for head in trace.heads:
        assert (loaded.pattern(head) == trace.pattern(head)).all()
    # And once more, from what was loaded.
    loaded.save(tmp_path / "b")
    assert_equal(load_trace(str(tmp_path / "b")), trace)


@pytest.mark.parametrize("record", RECORDS)
def test_every_record_of_a_model_loads_bit_for_bit(record, tmp_path):
    model = Model(FAMILIES["gpt2"].build())
    trace = model.run(inputs={"input_ids": FAMILIES["gpt2"].inputs()["input_ids"][:1]}, record=record)
    trace.save(tmp_path)
    loaded = load_trace(tmp_path)
    assert_equal(loaded, trace)
    assert [prediction.id for prediction in loaded.predictions(50)] == [
        prediction.id for prediction in trace.predictions(50)
    ]


def test_everything_else_a_trace_holds_loads_too(tmp_path):
    layer = random_layer(FORMULAS["causal"])
    layer.summary.entropy[0, 0] = float("nan")
    layer = replace(layer, stored={2: torch.rand(12, 12)}, value_norms=None, no_norms="offloaded")
    odd = Tokens(
        (Token("日本", 5, word=0, start=0, end=2), Token("\ud83d", 6), Token('"\\\n\x00', None, special=True)),
        "text",
        (1, 3),
    )
    trace = trace_of_layers(layer, record="full", edits=("hs.silence('L0H0')",), warnings=("é",), steps=(None, 0, 1))
    trace = replace(trace, tokens={"main": trace.tokens["main"], "other": odd})
    trace.save(tmp_path)
    assert_equal(load_trace(tmp_path), trace)


def test_a_cross_attention_layer_keeps_its_place(tmp_path):
    cross = random_layer(Formula(0.5), 5, 9, site=Site("decoder", 0, "cross"), key_stack="encoder")
    trace_of_layers(cross).save(tmp_path)
    assert str(load_trace(tmp_path).heads[0]) == "cross.L0H0"


def test_biases_that_layers_share_are_saved_once(tmp_path):
    bias = torch.randn(1, 4, 200, 200)

    def size(*biases: torch.Tensor) -> int:
        layers = [random_layer(Formula(0.5, bias=Bias("dense", bias, 200, 200)), 200) for bias in biases]
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        trace_of_layers(*layers).save(folder)
        for layer in load_trace(folder).layers.values():
            assert (
                layer.formula is not None and layer.formula.bias is not None and layer.formula.bias.values.equal(bias)
            )
        return sum(file.stat().st_size for file in folder.iterdir())

    shared, apart = size(bias, bias, bias), size(bias, bias.clone(), bias.clone())
    assert apart - shared == pytest.approx(2 * bias.nbytes, rel=0.01)


def test_a_small_part_of_a_large_tensor_is_saved_alone(tmp_path):
    large = torch.randn(1000, 12, 8)
    trace_of_layers(random_layer(Formula(0.5)), residuals={"a": large[:2], "b": large[1:2], "c": large[:2]}).save(
        tmp_path
    )
    loaded = load_trace(tmp_path)
    assert loaded.residuals["b"].equal(large[1:2]) and loaded.residuals["c"].equal(large[:2])
    assert tensors(tmp_path).stat().st_size < 100_000


def test_the_json_is_plain_and_never_says_nan(trace, tmp_path):
    layer = trace.layers[Site("main", 0)]
    layer.summary.entropy.fill_(float("nan"))
    trace.save(tmp_path)

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    text = (tmp_path / "trace.json").read_bytes().decode("ascii")
    header = json.loads(text, parse_constant=refuse)
    assert header["format"] == "headscope-trace" and header["version"] == 1


def test_others_may_read_what_the_folder_lets_them_read(trace, tmp_path):
    old = os.umask(0o022)
    try:
        trace.save(tmp_path / "trace")
    finally:
        os.umask(old)
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "trace").iterdir()} == {0o644}


def test_a_way_of_reading_is_not_saved(trace, tmp_path):
    with pytest.raises(HeadscopeError, match="save the trace itself"):
        trace.words().save(tmp_path)
    assert files(tmp_path) == []


# Saving over what is there


def test_a_new_trace_takes_the_place_of_the_old(trace, tmp_path):
    trace_of_layers(random_layer(Formula(0.5))).save(tmp_path)
    first = tensors(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    trace.save(tmp_path)
    assert_equal(load_trace(tmp_path), trace)
    assert not first.exists()
    assert files(tmp_path) == sorted(["notes.txt", tensors(tmp_path).name, "trace.json"])


def test_the_same_trace_may_be_saved_twice(trace, tmp_path):
    trace.save(tmp_path)
    before = files(tmp_path)
    trace.save(tmp_path)
    assert files(tmp_path) == before
    assert_equal(load_trace(tmp_path), trace)


def test_a_loaded_trace_outlives_the_files_it_came_from(trace, tmp_path):
    trace.save(tmp_path)
    loaded = load_trace(tmp_path)
    trace_of_layers(random_layer(Formula(0.5))).save(tmp_path)
    assert_equal(loaded, trace)
    loaded.save(tmp_path)
    assert_equal(load_trace(tmp_path), trace)


def test_folders_that_hold_something_else_are_left_alone(trace, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(LoadError, match=r"is not a trace: it holds thesis\.tex\. Nothing was written"):
        trace.save(tmp_path)
    assert files(tmp_path) == ["thesis.tex"]
    with pytest.raises(LoadError, match="a file is there"):
        trace.save(tmp_path / "thesis.tex")
    with pytest.raises(LoadError, match="could not save"):
        trace.save(tmp_path / "thesis.tex" / "below")
    for text in ("[]", "{}", '{"format": "chrome"}', "not json"):
        (tmp_path / "trace.json").write_text(text)
        with pytest.raises(LoadError, match="left alone"):
            trace.save(tmp_path)
        assert (tmp_path / "trace.json").read_text() == text


def test_a_damaged_trace_may_be_saved_again(trace, tmp_path):
    trace.save(tmp_path)
    tensors(tmp_path).write_bytes(b"short")
    trace.save(tmp_path)
    assert_equal(load_trace(tmp_path), trace)


def test_what_a_killed_save_left_is_cleared(trace, tmp_path):
    # Killed before there was a trace.json at all, after the tensors were noted and put in place.
    left = tmp_path / "tensors-0123456789abcdef.safetensors"
    left.write_bytes(b"whole, but unnamed")
    for name in (".headscope-saving-old", ".headscope-saving-now"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".tmpAb").write_bytes(b"half")
    (tmp_path / ".headscope-saving-now" / f"{left.name}.placed").touch()
    os.utime(tmp_path / ".headscope-saving-old", (time.time() - 7200,) * 2)
    trace.save(tmp_path)
    now = [name for name in files(tmp_path) if not name.startswith(".headscope-saving-now")]
    assert now == sorted([tensors(tmp_path).name, "trace.json"])
    assert_equal(load_trace(tmp_path), trace)


# Files that others put there


def test_tensors_of_others_beside_a_trace_are_kept(trace, tmp_path):
    trace_of_layers(random_layer(Formula(0.5))).save(tmp_path)
    first = tensors(tmp_path)
    others = ["tensors-mine.safetensors", "tensors-0123456789abcdef.safetensors", ".saving-for-a-house", "notes.txt"]
    for name in others:
        (tmp_path / name).write_text("mine")
    trace.save(tmp_path)
    assert not first.exists()
    assert [(tmp_path / name).read_text() for name in others] == ["mine"] * 4
    assert_equal(load_trace(tmp_path), trace)


def test_another_file_under_the_name_of_the_tensors_is_left_alone(trace, tmp_path):
    trace.save(tmp_path / "first")
    name = tensors(tmp_path / "first").name
    trace_of_layers(random_layer(Formula(0.5))).save(tmp_path / "second")
    (tmp_path / "second" / name).write_text("mine")
    before = files(tmp_path / "second")
    with pytest.raises(LoadError, match=f"did not write and would have to replace: {name}"):
        trace.save(tmp_path / "second")
    assert files(tmp_path / "second") == before and (tmp_path / "second" / name).read_text() == "mine"


def test_a_damaged_trace_json_does_not_say_what_may_be_deleted(trace, tmp_path):
    trace_of_layers(random_layer(Formula(0.5))).save(tmp_path)
    first = tensors(tmp_path)
    other = tmp_path / "tensors-0123456789abcdef.safetensors"
    other.write_text("mine")
    rewrite(tmp_path, sealed=False, tensors={"file": other.name, "sha256": ""})
    trace.save(tmp_path)
    assert other.read_text() == "mine" and first.exists()
    assert_equal(load_trace(tmp_path), trace)


def test_a_folder_with_hidden_files_alone_is_empty(trace, tmp_path):
    (tmp_path / ".DS_Store").write_bytes(b"finder")
    trace.save(tmp_path)
    assert_equal(load_trace(tmp_path), trace)


def test_modes_and_links_of_a_trace_stay(trace, tmp_path):
    folder, elsewhere = tmp_path / "trace", tmp_path / "elsewhere.json"
    trace.save(folder)
    (folder / "trace.json").rename(elsewhere)
    elsewhere.chmod(0o640)
    (folder / "trace.json").symlink_to(elsewhere)
    other = trace_of_layers(random_layer(Formula(0.5)))
    other.save(folder)
    assert (folder / "trace.json").is_symlink() and elsewhere.stat().st_mode & 0o777 == 0o640
    assert_equal(load_trace(folder), other)


def test_a_failed_save_leaves_no_folder_that_it_made(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "save_file", _raise(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        trace.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_threads_that_save_in_one_folder_leave_one_whole_trace(tmp_path):
    traces = [trace_of_layers(random_layer(Formula(0.5))) for _ in range(4)]
    problems = []

    def save(trace: Trace) -> None:
        try:
            for _ in range(5):
                trace.save(tmp_path / "trace")
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=save, args=(trace,)) for trace in traces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    loaded = load_trace(tmp_path / "trace")
    assert any(_same(loaded, saved_trace) for saved_trace in traces)


def _same(first: Trace, second: Trace) -> bool:
    try:
        assert_equal(first, second)
    except AssertionError:
        return False
    return True


# A full disk


def _raise(error: BaseException):
    def fail(*arguments, **options):
        raise error

    return fail


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "broken",
    [
        (store, "save_file", SafetensorError("I/O error: No space left on device")),
        (store, "save_file", FULL),
        (store, "write_file", FULL),
        (os, "fsync", FULL),
        (Path, "replace", FULL),
        (Path, "mkdir", PermissionError("read-only")),
    ],
    ids=["safetensors", "tensors", "json", "fsync", "rename", "mkdir"],
)
def test_a_full_disk_leaves_the_old_trace_and_nothing_else(broken, trace, tmp_path, monkeypatch):
    old = trace_of_layers(random_layer(Formula(0.5)))
    old.save(tmp_path)
    before = files(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(broken[0], broken[1], _raise(broken[2]))
        with pytest.raises(LoadError, match=r"could not save the trace.*untouched"):
            trace.save(tmp_path)
        with pytest.raises(LoadError, match=r"could not (save|write).*untouched"):
            old.save(tmp_path)  # the same tensors: the file that is there must stay
    assert files(tmp_path) == before
    assert_equal(load_trace(tmp_path), old)
    trace.save(tmp_path)
    assert_equal(load_trace(tmp_path), trace)


def test_half_written_tensors_are_removed(trace, tmp_path, monkeypatch):
    def half(tensors, path):
        Path(path).write_bytes(b"half")
        Path(path).with_name(".tmpXyz").write_bytes(b"the half that safetensors was writing")
        raise FULL

    monkeypatch.setattr(store, "save_file", half)
    with pytest.raises(LoadError, match="No space left"):
        trace.save(tmp_path / "new")
    assert files(tmp_path / "new") == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of a process are set before it runs")
def test_a_write_that_really_fails_leaves_the_old_trace(trace, tmp_path):
    # The kernel refuses files beyond a size: as on a full disk, part of the file is written before it fails.
    trace.save(tmp_path)
    before = files(tmp_path)
    code = f"""
import resource, signal
import torch
from headscope.errors import LoadError
from headscope.traces import Trace
large = Trace.from_patterns([torch.rand(4, 200, 200)], [str(index) for index in range(200)])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    large.save({str(tmp_path)!r})
except LoadError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "could not save the trace" in done.stdout, done.stderr
    assert files(tmp_path) == before
    assert_equal(load_trace(tmp_path), trace)


def test_a_save_that_is_killed_leaves_one_trace_or_the_other(tmp_path):
    # A child saves two traces by turns, as fast as it can; it is killed at random moments.
    code = """
import sys
import torch
from headscope.traces import Trace
texts = ["a"] * 300
traces = [Trace.from_patterns([torch.full((2, 300, 300), x)], texts, model=str(x)) for x in (0.25, 0.5)]
print("ready", flush=True)
sys.stdin.readline()
while True:
    for trace in traces:
        trace.save(sys.argv[1])
"""
    moments = random.Random(0)
    # Both wait in line, so that their start-up is paid for once.
    folder = tmp_path / "trace"
    seen = set()
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdin is not None and child.stdout is not None
        with child:
            assert child.stdout.readline() == "ready\n"
            child.stdin.write("go\n")
            child.stdin.flush()
            deadline = time.time() + 20
            while not (folder / "trace.json").exists() and time.time() < deadline:
                time.sleep(0.005)
            time.sleep(moments.uniform(0.0, 0.25))
            child.send_signal(signal.SIGKILL)
        loaded = load_trace(folder)
        assert (loaded.pattern("L0H1") == float(loaded.model)).all()
        seen.add(loaded.model)
    assert seen <= {"0.25", "0.5"}
    trace_of_layers(random_layer(Formula(0.5))).save(folder)
    assert len(list(folder.glob("tensors-*"))) == 1


# Traces that cannot be read


def test_a_flipped_byte_is_noticed_wherever_it_is(trace, tmp_path):
    trace.save(tmp_path)
    places = random.Random(0)
    for file in (tensors(tmp_path), tmp_path / "trace.json"):
        whole = file.read_bytes()
        for _ in range(40):
            damaged = bytearray(whole)
            damaged[places.randrange(len(whole))] ^= 1 << places.randrange(8)
            file.write_bytes(damaged)
            with pytest.raises(LoadError):
                load_trace(tmp_path)
        file.write_bytes(whole)
    assert_equal(load_trace(tmp_path), trace)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_noticed(share, trace, tmp_path):
    trace.save(tmp_path)
    for file in (tensors(tmp_path), tmp_path / "trace.json"):
        whole = file.read_bytes()
        file.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(LoadError, match="is damaged"):
            load_trace(tmp_path)
        file.write_bytes(whole)


def test_folders_without_a_trace_say_so(tmp_path):
    with pytest.raises(LoadError, match="it is not a folder"):
        load_trace(tmp_path / "nowhere")
    with pytest.raises(LoadError, match=r"has no trace\.json"):
        load_trace(tmp_path)
    for text in ("[]", '{"format": "another"}', "3"):
        (tmp_path / "trace.json").write_text(text)
        with pytest.raises(LoadError, match=r"not a Headscope trace|holds no JSON object"):
            load_trace(tmp_path)
    for data in (b"\xff\xfe\x00", b"", b"\x00" * 100, b"{"):
        (tmp_path / "trace.json").write_bytes(data)
        with pytest.raises(LoadError, match="is damaged"):
            load_trace(tmp_path)


def test_missing_tensors_are_named(trace, tmp_path):
    trace.save(tmp_path)
    name = tensors(tmp_path).name
    tensors(tmp_path).unlink()
    with pytest.raises(LoadError, match=f"incomplete: {name} is missing"):
        load_trace(tmp_path)


def test_a_newer_format_is_named(trace, tmp_path):
    trace.save(tmp_path)
    rewrite(tmp_path, version=2)
    with pytest.raises(LoadError, match="has trace format 2, this Headscope reads format 1"):
        load_trace(tmp_path)


@pytest.mark.parametrize("name", ["../outside.safetensors", "/etc/passwd", "a/b", "..", "", 5, None])
def test_tensors_outside_the_folder_are_refused(name, trace, tmp_path):
    trace.save(tmp_path / "trace")
    (tmp_path / "outside.safetensors").write_bytes(tensors(tmp_path / "trace").read_bytes())
    rewrite(tmp_path / "trace", tensors={"file": name, "sha256": store.checksum(tmp_path / "outside.safetensors")})
    with pytest.raises(LoadError):
        load_trace(tmp_path / "trace")


@pytest.mark.parametrize(
    "changes",
    [
        {"layers": 3},
        {"layers": [{}]},
        {"tokens": []},
        {"record": "everything"},
        {"logits": "no such tensor"},
        {"answers": {"stack": "main"}},
        {"tensors": None},
        {"edits": None},
    ],
    ids=str,
)
def test_a_header_that_makes_no_sense_is_damaged(changes, trace, tmp_path):
    trace.save(tmp_path)
    rewrite(tmp_path, **changes)
    with pytest.raises(LoadError, match=r"is damaged|has record"):
        load_trace(tmp_path)


def test_a_header_that_was_changed_by_hand_is_noticed(trace, tmp_path):
    trace.save(tmp_path)
    rewrite(tmp_path, sealed=False, model="another")
    with pytest.raises(LoadError, match=r"trace\.json is damaged: it does not match its checksum"):
        load_trace(tmp_path)
