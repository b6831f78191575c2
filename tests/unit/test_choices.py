"""The values of options, listed once: what has a table of its own has the same."""

import subprocess
import sys
from typing import get_args

from headscope import choices
from headscope.reports.studies import STUDIES


def test_every_study_can_be_chosen() -> None:
    assert get_args(choices.StudyName) == tuple(STUDIES)


def test_they_are_listed_without_loading_anything() -> None:
    program = "import headscope.choices, sys; print(*[m for m in ('numpy', 'torch', 'typer') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == ""
