"""What the sections of the hostile trial share: how much of it is run, its seed, what is counted, inputs that failed.

`make test` runs a fast part, always the same. `make hostile` runs the whole, with a new seed each time;
`HEADSCOPE_HOSTILE_SEED` repeats one.
"""

import hashlib
import os
import secrets
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

IS_WHOLE = os.environ.get("HEADSCOPE_HOSTILE") == "whole"
SEED = int(os.environ.get("HEADSCOPE_HOSTILE_SEED") or (secrets.randbelow(10**9) if IS_WHOLE else 0))
# Inputs that once went wrong, by section; they are tried each time.
CASES = Path(__file__).with_name("cases")
_MOST_SHOWN = 20


@dataclass
class Section:
    """A part of the trial: what came of its inputs, and the problems among them."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def cases(self) -> list[bytes]:
        """Inputs that once went wrong."""
        return [file.read_bytes() for file in sorted((CASES / self.name).glob("*"))]

    def problem(self, text: str, data: bytes | None = None) -> None:
        """Note what went wrong; the input is saved, to be tried each time from now on."""
        if data is not None:
            file = CASES / self.name / hashlib.sha256(data).hexdigest()[:16]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            text = f"{text}  [{file.relative_to(CASES.parent)}]"
        self.problems.append(text)

    def summary(self) -> str:
        """What the whole trial prints of it."""
        kinds = ", ".join(f"{n:,} {what}" for what, n in self.outcomes.most_common())
        return f"{self.outcomes.total():,} tried: {kinds}; {len(self.problems)} problems"

    def message(self) -> str:
        """What a failing test says."""
        more = f"\n… and {len(self.problems) - _MOST_SHOWN} more" if len(self.problems) > _MOST_SHOWN else ""
        return f"seed {SEED}; {self.summary()}:\n" + "\n".join(self.problems[:_MOST_SHOWN]) + more


def size(fast: int, whole: int) -> int:
    """How many inputs to try."""
    return whole if IS_WHOLE else fast
