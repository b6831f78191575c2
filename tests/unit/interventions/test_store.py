"""Interventions on disk: the same after loading, and refused when they were tampered with."""

import contextlib
import errno
import json
import math
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import headscope as hs
from headscope.errors import HeadscopeError, InterventionError, LoadError
from headscope.interventions import Intervention, calls_in, edit, payload
from headscope.interventions.intervention import payload_name

PATTERN = torch.rand(2, 3, 3)
PLAIN = [
    hs.silence("cross.L0H1", tokens=[0, "猫", range(1, 3), slice(None, -1)]),
    hs.scale("encoder.L2", 0.1, tokens=range(0, 6, 2)),
    hs.mean_ablate("L0H1", tokens=(1, 2)),
    hs.temperature(None, 1 / 3),
    hs.distance_bias("L0", -0.5),
    hs.block(None, "segment:A", slice(1, None)),
    hs.set_weight("L0H0", -1, "\ud83d", 0.9, renormalise=False),
    hs.set_neuron("L2H0", "key", 12, 0.25),
    hs.replace_token(2),
    hs.replace_token([0, -1], "nurse"),
]
TENSORS = [
    hs.gate("L0", torch.tensor([0.5, 1.0], requires_grad=True)),
    hs.mean_ablate("L0H1", torch.randn(8, dtype=torch.float64)),
    hs.patch("L0H1", torch.randn(3, 8).bfloat16()),
    hs.replace_pattern("L0", PATTERN),
    hs.set_row("L0H0", 1, PATTERN[0, 0]),
]


def assert_same(first: Intervention, second: Intervention) -> None:
    assert (first.site, first.stage, first.label, type(first.edit)) == (
        second.site,
        second.stage,
        second.label,
        type(second.edit),
    )
    # JSON has no tuples.
    mine = {"tokens": first.tokens, **vars(first.edit)}
    other = {"tokens": second.tokens, **vars(second.edit)}
    for name, value in mine.items():
        if isinstance(value, torch.Tensor):
            assert value.dtype == other[name].dtype and torch.equal(value.detach(), other[name])
        else:
            assert (list(value) if isinstance(value, tuple) else value) == other[name]


def rewrite(path: Path, row: int = 0, **changes) -> None:
    data = json.loads(path.read_text())
    data["interventions"][row].update(changes)
    path.write_text(json.dumps(data))


def test_interventions_come_back_as_they_were(tmp_path):
    interventions = PLAIN + TENSORS
    path = hs.save_interventions(interventions, tmp_path / "new" / "edits.json")
    loaded = hs.load_interventions(str(path))
    assert len(loaded) == len(interventions)
    for expected, other in zip(interventions, loaded, strict=True):
        assert_same(expected, other)
    # And once more, from what was loaded.
    for expected, other in zip(
        interventions, hs.load_interventions(hs.save_interventions(loaded, tmp_path / "again.json")), strict=True
    ):
        assert_same(expected, other)


def test_the_file_is_plain_json_and_tensors_lie_beside_it_once(tmp_path):
    path = hs.save_interventions(
        [*PLAIN, hs.replace_pattern("L0", PATTERN), hs.replace_pattern("L1", PATTERN)], tmp_path / "a.json"
    )
    assert json.loads(path.read_bytes().decode("ascii"))["format"] == "headscope-interventions"
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["a.json", payload_name(PATTERN)])


def test_an_empty_list_is_a_list(tmp_path):
    assert hs.load_interventions(hs.save_interventions([], tmp_path / "none.json")) == []
    assert (
        hs.load_interventions(hs.save_interventions(iter(PLAIN[:1]), tmp_path / "one.json"))[0].label == PLAIN[0].label
    )


def test_a_function_cannot_be_saved_and_nothing_is_written(tmp_path):
    with pytest.raises(InterventionError, match="calls a Python function"):
        hs.save_interventions([*TENSORS, edit("L0", "mixed", torch.neg)], tmp_path / "edits.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", [0, 1])
def test_a_full_disk_leaves_the_old_file(failing, tmp_path, monkeypatch):
    path = hs.save_interventions(PLAIN, tmp_path / "edits.json")
    before = path.read_bytes()
    calls = []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > failing:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        LoadError, match=r"could not write .*: No space left on device. What was there before is untouched"
    ):
        hs.save_interventions(TENSORS[:1], path)
    assert path.read_bytes() == before
    assert not [file for file in tmp_path.iterdir() if file.name.endswith(".partial")]


# Files that cannot be trusted


def test_a_tensor_that_was_changed_is_refused(tmp_path):
    path = hs.save_interventions([hs.replace_pattern("L0", PATTERN)], tmp_path / "edits.json")
    file = tmp_path / payload_name(PATTERN)
    save_file({"values": PATTERN + 1e-3}, file)
    with pytest.raises(LoadError, match="do not match the hash in its name"):
        hs.load_interventions(path)
    for data in (b"", b"not a tensor", file.read_bytes()[:-4]):
        file.write_bytes(data)
        with pytest.raises(LoadError, match="cannot read the tensor"):
            hs.load_interventions(path)
    save_file({"others": PATTERN}, file)
    with pytest.raises(LoadError, match="cannot read the tensor"):
        hs.load_interventions(path)
    file.unlink()
    with pytest.raises(LoadError, match="cannot read the tensor"):
        hs.load_interventions(path)


@pytest.mark.parametrize("name", ["../{}", "/{}", "sub/{}", "..", 3, None])
def test_a_tensor_elsewhere_is_refused(name, tmp_path):
    path = hs.save_interventions([hs.replace_pattern("L0", PATTERN)], tmp_path / "a" / "edits.json")
    hs.save_interventions([hs.replace_pattern("L0", PATTERN)], tmp_path / "edits.json")
    name = name.format(payload_name(PATTERN)) if isinstance(name, str) else name
    rewrite(path, arguments={"weights": {"payload": name}, "renormalise": True})
    with pytest.raises(LoadError):
        hs.load_interventions(path)


def test_a_payload_is_checked_when_read_by_itself(tmp_path):
    hs.save_interventions([hs.replace_pattern("L0", PATTERN)], tmp_path / "edits.json")
    assert torch.equal(payload(tmp_path / payload_name(PATTERN)), PATTERN)
    (tmp_path / payload_name(PATTERN)).rename(tmp_path / "0123456789abcdef.safetensors")
    with pytest.raises(LoadError, match="do not match the hash"):
        payload(tmp_path / "0123456789abcdef.safetensors")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read interventions"),
        ("{", "cannot read interventions"),
        ("[]", "is not a file of interventions"),
        ('{"format": "headscope-trace"}', "is not a file of interventions"),
        ('{"format": "headscope-interventions", "version": 2}', "format version 2"),
        ('{"format": "headscope-interventions", "version": 1}', "is damaged"),
        ('{"format": "headscope-interventions", "version": 1, "interventions": [5]}', "is damaged"),
    ],
)
def test_a_file_of_something_else_is_refused(text, message, tmp_path):
    (tmp_path / "edits.json").write_text(text)
    with pytest.raises(LoadError, match=message):
        hs.load_interventions(tmp_path / "edits.json")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(LoadError, match=r"nothing\.json"):
        hs.load_interventions(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"edit": "Delete"},
        {"edit": []},
        {"stage": "logits"},
        {"site": "nowhere"},
        {"site": 5},
        {"arguments": {"value": 0.0}},
        {"arguments": {"value": math.nan}},
        {"arguments": {"value": "hot"}},
        {"arguments": {"heat": 1.0}},
        {"arguments": 5},
        {"tokens": {"all": True}},
        {"tokens": {"range": [0, 5, 0]}},
        {"tokens": {"range": "abc"}},
        {"tokens": {"slice": ["a", None, None]}},
        {"tokens": {"slice": [0, 5, 0]}},
    ],
    ids=str,
)
def test_an_edit_that_makes_no_sense_is_refused_when_it_is_read(changes, tmp_path):
    path = hs.save_interventions([hs.temperature("L0H0", 2.0)], tmp_path / "edits.json")
    rewrite(path, **changes)
    with pytest.raises(HeadscopeError):
        hs.load_interventions(path)


@pytest.mark.parametrize("depth", [100, 600, 990, 100_000])
def test_a_file_that_is_nested_too_deep_is_refused_as_any_damaged_file(depth, tmp_path):
    path = hs.save_interventions([hs.silence("L0H0")], tmp_path / "edits.json")
    nested = "[" * depth + "]" * depth
    path.write_text(path.read_text().replace('"tokens": null', f'"tokens": {nested}'))
    with contextlib.suppress(LoadError):  # how deep Python can read differs between versions
        assert hs.load_interventions(path)[0].tokens is not None
    with pytest.raises(LoadError):
        calls_in(path.read_text())
    rewrite_label = path.read_text().replace(nested, "null").replace("silence('L0H0')", "silence(" + "-" * 9000 + "1)")
    path.write_text(rewrite_label)
    with pytest.raises(LoadError, match="not the Python of an intervention"):
        hs.load_interventions(path)


def test_a_label_that_would_run_code_when_pasted_is_refused(tmp_path):
    path = hs.save_interventions([hs.silence("L0H0")], tmp_path / "edits.json")
    for label in (
        "silence(__import__('os').getcwd())",
        "__import__('os').getcwd()",
        "silence(",
        "silence('L0H0') or 1",
    ):
        data = json.loads(path.read_text())
        data["interventions"][0]["label"] = label
        (tmp_path / "other.json").write_text(json.dumps(data))
        with pytest.raises(LoadError, match="not the Python of an intervention"):
            hs.load_interventions(tmp_path / "other.json")
