"""Two Ray nodes, one of which is killed: the run goes on with the other, and its files are those of a local run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile.trial import IS_WHOLE, Section

PROGRAM = '''
import sys, threading, time
from pathlib import Path
from ray.cluster_utils import Cluster
from headscope import runs

folder = Path(sys.argv[1])
texts = [f"The doctor asked nurse number {number} a question." for number in range(24)]
STORE = {"object_store_memory": 100 * 2**20}

def previous(layer):
    """Weight on the token before; slowly, so that the node dies in the middle."""
    time.sleep(0.5)
    plain = layer.plain_queries[:, 1:].float()
    yield layer.tally((layer.pattern.diagonal(-1, 2, 3) * plain[:, None]).sum(-1), plain.sum(-1))

if __name__ == "__main__":
    measure = runs.OfLayers("previous", previous)
    runs.run("builtin:gpt", texts, [measure], folder / "a", shard_size=2, threads=1)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **STORE})
    node = cluster.add_node(num_cpus=1, **STORE)

    def kill_in_the_middle():
        while len(list((folder / "b").glob("shard-*.parquet"))) < 3:
            time.sleep(0.1)
        cluster.remove_node(node, allow_graceful=False)

    threading.Thread(target=kill_in_the_middle, daemon=True).start()
    runs.run("builtin:gpt", texts, [measure], folder / "b", shard_size=2, engine=runs.Ray(cluster.address))
    cluster.shutdown()
'''


@pytest.mark.skipif(not IS_WHOLE, reason="starting two nodes takes half a minute: part of `make hostile`")
def test_a_killed_node(section: Section, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(program), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    local, ray = ({file.name: file.read_bytes() for file in (tmp_path / name).glob("*")} for name in "ab")
    section.outcomes["killed nodes"] += 1
    if done.returncode != 0 or local != ray:
        section.problem(f"exit {done.returncode}, {len(ray)} of {len(local)} files: {done.stderr[-2000:]}")
    elif "(Ray node " not in done.stderr:
        section.problem(f"the lost node is not named: {done.stderr[-2000:]}")
