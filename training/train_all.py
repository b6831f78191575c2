"""Trains the four models side by side on one GPU: each alone is too small to keep it busy.

    python training/train_all.py --pack .train/pack --out .train/runs --seconds 1200

Each run writes its log and its best weights so far to its own folder, so an interruption loses little.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ("gpt", "bert", "vit", "translate")
TRY_THE_GPU = "import torch; x = torch.ones(512, 512, device='cuda'); print(float((x @ x).sum()))"


def shared_gpu_environment() -> dict[str, str]:
    """Starts NVIDIA's multi-process service where there is one, so that kernels of several runs overlap.

    Without it the runs take turns, which works too.
    """
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        print("no multi-process service: the runs take turns on the GPU", flush=True)
        return {}
    folder = tempfile.mkdtemp(prefix="mps-")
    environment = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    try:
        subprocess.run([control, "-d"], env=os.environ | environment, check=True, timeout=15)
        trial = [sys.executable, "-c", TRY_THE_GPU]
        subprocess.run(trial, env=os.environ | environment, check=True, timeout=40)
        print("multi-process service started", flush=True)
        return environment
    except (subprocess.SubprocessError, OSError) as error:
        print(f"multi-process service does not work here: {error}", flush=True)
        stop_sharing(environment)
        return {}


def stop_sharing(environment: dict[str, str]) -> None:
    control = shutil.which("nvidia-cuda-mps-control")
    if control and environment:
        subprocess.run([control], input="quit\n", text=True, env=os.environ | environment, timeout=30, check=False)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pack", type=Path, default=Path(".train/pack"))
    arguments.add_argument("--out", type=Path, default=Path(".train/runs"))
    arguments.add_argument("--seconds", default="1200", help="for all, or one number per model as gpt=1200,vit=900")
    arguments.add_argument("--only", default=",".join(NAMES), help="the models to train")
    arguments.add_argument("--overrides", default="{}", help='recipe settings as JSON, {"gpt": {"rate": 0.001}}')
    arguments.add_argument("--start-from", type=Path, help="a folder with a folder of weights per model")
    arguments.add_argument("--take-turns", action="store_true", help="do not try the multi-process service")
    options = arguments.parse_args()
    began = time.monotonic()
    seconds = dict.fromkeys(NAMES, options.seconds)
    if "=" in options.seconds:
        seconds |= dict(part.split("=") for part in options.seconds.split(","))
    overrides = json.loads(options.overrides)
    sharing = {} if options.take_turns else shared_gpu_environment()
    environment = os.environ | sharing | {"OMP_NUM_THREADS": "4", "TORCHINDUCTOR_COMPILE_THREADS": "4"}
    runs: dict[str, subprocess.Popen] = {}
    for name in options.only.split(","):
        command = [sys.executable, str(Path(__file__).parent / f"train_{name}.py")]
        command += ["--pack", str(options.pack), "--out", str(options.out / name)]
        command += ["--seconds", str(float(seconds[name]) - (time.monotonic() - began))]
        command += ["--overrides", json.dumps(overrides.get(name, {}))]
        if options.start_from:
            command += ["--start-from", str(options.start_from / name)]
        (options.out / name).mkdir(parents=True, exist_ok=True)
        output = (options.out / name / "output.txt").open("w")
        runs[name] = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    for name, process in runs.items():
        print(name, "ended with", process.wait(), f"after {time.monotonic() - began:.0f} s", flush=True)
    stop_sharing(sharing)


if __name__ == "__main__":
    main()
