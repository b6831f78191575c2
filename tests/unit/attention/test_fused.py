"""The GPU kernels, run by Triton's interpreter, and what surrounds them."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from made_formulas import FORMULAS

from headscope.attention import Formula, Mask, fused, is_covered
from headscope.attention.mask_limits import limits_of

TESTS = Path(__file__).parents[2]


def test_the_kernels_agree_with_float64_in_every_form():
    pytest.importorskip("triton", minversion="3.7", reason="Triton is for Linux; 3.6 cannot interpret with NumPy 2.4")
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(TESTS / "interpreted_kernels.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    problems = dict(json.loads(line) for line in done.stdout.splitlines())
    assert len(problems) > len(FORMULAS), done.stderr[-2000:]
    assert {name: problem for name, problem in problems.items() if problem} == {}


@pytest.mark.parametrize("length", [1, 40, 150])
@pytest.mark.parametrize("name", FORMULAS)
def test_spans_are_the_blocks_of_queries_that_see_a_block_of_keys(name, length):
    mask = FORMULAS[name](length).mask
    limits = limits_of(mask, length, length, torch.device("cpu"))
    cell, n_rows, n_columns = -(-length // 96), 1 if length > 100 else 4, 16
    spans = limits.spans(cell, n_rows, n_columns)
    allowed = torch.ones(1, 1, length, length, dtype=torch.bool) if mask is None else mask.materialise()
    allowed = allowed | ~allowed.any(-1, keepdim=True)  # who sees nothing weighs all keys alike
    per_cell = -(-cell // n_rows)
    for block in range(spans.shape[-2]):
        columns = slice(block * n_columns, (block + 1) * n_columns)
        for head in range(spans.shape[1]):
            first, begin, end, last = spans[0, head, block].tolist()
            assert 0 <= first <= begin <= end <= last
            for query in range(length):
                step = query // cell * per_cell + query % cell // n_rows
                seen = allowed[0, head % allowed.shape[1], query, columns]
                assert first <= step < last or not bool(seen.any())
                assert not begin <= step < end or bool(seen.all())


def test_a_mask_is_read_once():
    mask = Mask.causal(30, 30)
    assert limits_of(mask, 30, 30, torch.device("cpu")) is limits_of(mask, 30, 30, torch.device("cpu"))
    assert limits_of(None, 30, 30, torch.device("cpu")).number == 0


def test_kernels_are_for_gpus_and_plain_dtypes():
    query = torch.randn(1, 2, 8, 16)
    assert not is_covered(query, query, Formula(1.0))
    assert not is_covered(query.to("meta"), query.to("meta"), Formula(1.0))


def test_a_missing_triton_is_said_once(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "triton", None)
    fused.has_triton.cache_clear()
    with caplog.at_level(logging.WARNING, "headscope"):
        assert not fused.has_triton() and not fused.has_triton()
    fused.has_triton.cache_clear()
    assert len(caplog.records) == 1 and "headscope[gpu]" in caplog.text


def test_rows_that_the_copy_engine_cannot_read_are_copied():
    plain = torch.randn(1, 10, 2, 16, dtype=torch.bfloat16).transpose(1, 2)
    assert fused.aligned(plain) is plain
    odd = torch.randn(1, 2, 10, 20, dtype=torch.bfloat16)
    assert fused.aligned(odd).shape[-1] == 24 and torch.equal(fused.aligned(odd)[..., :20], odd)
    assert fused.aligned(plain[..., 1:]).stride(-1) == 1
    assert fused.power_of_two(1) == 16 and fused.power_of_two(80) == 128 and fused.power_of_two(128) == 128
