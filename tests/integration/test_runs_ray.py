"""Runs on a small Ray cluster: a worker is lost, and the files are those of a local run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("pyarrow")

import headscope as hs
from headscope.reports import HeadsReport, heads

# A program of its own: what it defines travels to the workers, and Ray leaves nothing behind in the test process.
PROGRAM = '''
import os, signal, sys
from pathlib import Path
from headscope import runs

folder = Path(sys.argv[1])
texts = [f"The doctor asked nurse number {number} a question." for number in range(12)]

def previous(layer, flag):
    """Weight on the token before; the first worker that sees example 5 is killed."""
    here = Path(flag)
    if here.parent.name == "ray" and not here.exists() and any(one.id == "list:5" for one in layer.examples):
        here.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    plain = layer.plain_queries[:, 1:].float()
    yield layer.tally((layer.pattern.diagonal(-1, 2, 3) * plain[:, None]).sum(-1), plain.sum(-1))

class Flagged(runs.OfLayers):
    """The flag's path differs between the two runs, so it is no setting."""
    def watch(self, layer):
        return self.function(layer, self.flag)

def measure(name):
    made = Flagged("previous", previous)
    (folder / name).mkdir()
    made.flag = str(folder / name / "killed")
    return made

if __name__ == "__main__":
    runs.run("builtin:gpt", texts, [measure("local")], folder / "a", shard_size=3, threads=1)
    runs.run("builtin:gpt", texts, [measure("ray")], folder / "b", shard_size=3, engine=runs.Ray(n_workers=2))
'''


def test_a_lost_worker_is_replaced_and_nothing_differs_from_a_local_run(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "RAY_DISABLE_IMPORT_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, program, tmp_path], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "ray" / "killed").exists()
    local, ray = ({file.name: file.read_bytes() for file in Path(tmp_path / name).iterdir()} for name in "ab")
    assert len(local) == 5 and local == ray


COMMANDS = """
import sys
from headscope import runs
from headscope.cli import app
from headscope.runs.ray import _ray, _start

folder, corpus = sys.argv[1:]
_start(_ray(), runs.Ray(n_workers=2), 1)  # once, for both commands
for command in (
    ["heads", "builtin:gpt", corpus, "-o", f"{folder}/ray", "--no-relevance", "--no-importance"],
    ["study", "vig", "--model", "builtin:gpt", "--corpus", corpus, "-o", f"{folder}/study"],
):
    try:
        app([*command, "--engine", "ray"])
    except SystemExit as left:
        if left.code:
            raise
"""


def test_reports_and_studies_run_on_workers_from_the_command_line(tmp_path):
    """Both with two workers on this machine; the report's numbers are those of a local one."""
    rows = (("She", "PRON", 2, "nsubj"), ("sings", "VERB", 0, "root"), (".", "PUNCT", 2, "punct"))
    tree = "\n".join(
        f"{n}\t{word}\t_\t{tag}\t_\t_\t{head}\t{rel}\t_\t_" for n, (word, tag, head, rel) in enumerate(rows, 1)
    )
    corpus = tmp_path / "tiny.conllu"
    corpus.write_text("\n\n".join([tree] * 12) + "\n\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", COMMANDS, str(tmp_path), str(corpus)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert any((tmp_path / "study").iterdir())
    heads("builtin:gpt", hs.corpus(corpus), tmp_path / "local", relevance=False, importance=False)
    local, remote = (HeadsReport.load(tmp_path / name).scores for name in ("local", "ray"))
    assert remote.keys() == local.keys()
    for name, scores in remote.items():
        # Files hold five digits.
        assert dict(scores) == pytest.approx(dict(local[name]), nan_ok=True, abs=2e-5)
