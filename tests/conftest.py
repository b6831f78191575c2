"""What every test can count on: no network, few threads, fixed seeds, and full-size data where it lies."""

import os

# Read when torch and transformers are first imported, so set before either is.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import random
from pathlib import Path

import numpy as np
import pytest
import torch

SHARED = Path(__file__).parents[2] / "shared"

# Tiny models gain nothing from more, and parallel test processes would fight for the cores.
torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Spread tests over processes one by one, but keep those in the browser together: they share a server."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "browser" if nodeid.startswith("tests/browser/") else nodeid

    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def shared_weights() -> Path:
    """Real checkpoints, beside the repository."""
    return _present(SHARED / "weights")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real corpora, beside the repository."""
    return _present(SHARED / "data")


def _present(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"needs the files of {folder}, which are not on this machine")
    return folder
