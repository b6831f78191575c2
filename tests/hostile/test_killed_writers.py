"""Writers are killed, or their disk is full: the old or the new is there, never a mixture; what resumes is equal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile.trial import SEED, Section, size

PROGRAM = Path(__file__).with_name("killed_writers.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")
@pytest.mark.parametrize(
    ("writer", "fast"), [("trace", 4), ("page", 0), ("edits", 0), ("bake", 2), ("run", 3), ("report", 0), ("atlas", 0)]
)
def test_killed_writers(writer: str, fast: int, section: Section, tmp_path: Path) -> None:
    if not size(fast, 20):
        pytest.skip("part of `make hostile`")
    counts = [str(size(fast, 20)), str(size(1, 10))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAM), str(tmp_path), str(SEED), writer, *counts]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    section.outcomes.update(answer["outcomes"])
    for problem in answer["problems"]:
        section.problem(problem)
