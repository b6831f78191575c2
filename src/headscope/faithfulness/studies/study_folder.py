"""The folder of a training study: its settings, one checkpoint folder per stack, and the figures as lines of JSON."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope import files
from headscope.errors import InputError, LoadError

SETTINGS, LINES, STACKS, MODELS = "settings.json", "figures.jsonl", "stacks", "models"
FORMAT = "headscope-training-study"
OURS = frozenset({SETTINGS, LINES, STACKS, MODELS})
_REMEDY = "Run the study again in another folder."


def stack_name(name: str, seeds: range) -> str:
    """The name of the stack that trains a group of seeds.

    >>> stack_name("base", range(0, 5))
    'base-s0-4'
    """
    return f"{name}-s{seeds[0]}-{seeds[-1]}"


class StudyFolder:
    """Where a study keeps what it has finished. It resumes with the same settings only."""

    def __init__(self, folder: Path | str, settings: Mapping[str, Any]):
        self.path = Path(folder).expanduser()
        self.settings: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, **settings}))
        self._lines: dict[str, list[dict[str, Any]]] = {}

    @property
    def configuration(self) -> str:
        """Names the settings in eight hexadecimal digits: the same settings, data and word vectors, the same name."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:8]

    def begin(self) -> None:
        """Make the folder, or read what an earlier run with these settings finished."""
        files.refuse_foreign(self.path, "a training study", ours=OURS)
        file = self.path / SETTINGS
        if file.exists():
            before = files.read_json(file, _REMEDY)
            _check_line(before, file)
            changed = [name for name in {**before, **self.settings} if before.get(name) != self.settings.get(name)]
            if changed:
                changes = [f"{name} was {before.get(name)}, now {self.settings.get(name)}" for name in sorted(changed)]
                raise InputError(
                    f"{self.path} holds a study with other settings ({'; '.join(changes)}): resume it with the same, "
                    "or choose another folder."
                )
            self._lines = self._read_lines()
        else:
            files.write_file(file, json.dumps(files.with_checksum(self.settings), indent=1).encode())

    def seed_groups(self, name: str, n_seeds: int, most: int) -> list[range]:
        """Which seeds train as one stack: those that began as one, then the others, at most so many at once.

        The stack of a group is named `stack_name`. A group that began with more seeds than are asked for stays whole.
        """
        matches = (re.fullmatch(rf"{re.escape(name)}-s(\d+)-(\d+)", path.name) for path in self.stack("").glob("*"))
        last_of = {int(match[1]): int(match[2]) for match in matches if match}
        groups, first = [], 0
        while first < n_seeds:
            last = last_of.get(first, min(n_seeds, first + most) - 1)
            groups.append(range(first, last + 1))
            first = last + 1
        return groups

    def stack(self, name: str) -> Path:
        """The folder of a stack's checkpoint."""
        return self.path / STACKS / name

    def model(self, name: str) -> Path:
        """The folder of a trained model that `headscope.load` opens."""
        return self.path / MODELS / name

    def figures(self, stack: str) -> list[dict[str, Any]] | None:
        """The lines of a stack, if it is finished."""
        return self._lines.get(stack)

    def write(self, stack: str, lines: Sequence[Mapping[str, Any]]) -> None:
        """Add the figures of a finished stack; the file is replaced whole."""
        self._lines[stack] = [{"stack": stack, "configuration": self.configuration, **line} for line in lines]
        document = "".join(json.dumps(files.with_checksum(line)) + "\n" for line in self.lines())
        files.write_file(self.path / LINES, document.encode())

    def lines(self) -> list[dict[str, Any]]:
        """All figures so far, in the order in which stacks were finished."""
        return [line for lines in self._lines.values() for line in lines]

    def _read_lines(self) -> dict[str, list[dict[str, Any]]]:
        file, lines = self.path / LINES, {}
        if not file.exists():
            return lines
        for text in file.read_text().splitlines():
            try:
                line = files.parse_json(text)
                _check_line(line, file)
                lines.setdefault(line["stack"], []).append(line)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise LoadError(f"{file} is damaged: {error}. {_REMEDY}") from error
        return lines


def _check_line(data: dict[str, Any], file: Path) -> None:
    """Take the checksum off; one that is wrong or missing is refused."""
    if not files.take_checksum(data, file, _REMEDY):
        raise LoadError(f"{file} is damaged: a checksum is missing. {_REMEDY}")
