"""The folder of a fit: one checkpoint and the best weights, written whole, verified when they are read."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from headscope import files
from headscope.errors import LoadError

INDEX = "fit.json"
VERSION = 1
_REMEDY = "Train again in another folder."


class FitFolder:
    """`fit.json` names the files that belong to it, with their checksums. It is replaced last, and the files that it
    no longer names are removed after that: whenever the process ends, the folder holds a whole checkpoint.
    """

    def __init__(self, folder: Path | str):
        self.path = Path(folder).expanduser()

    @property
    def has_fit(self) -> bool:
        """Whether a fit was begun here."""
        return (self.path / INDEX).exists()

    def prepare(self) -> None:
        """Make the folder, and refuse one that holds something else."""
        ours = {INDEX, *(path.name for path in self._tensor_files())}
        files.refuse_foreign(self.path, "a fit", ours=ours)
        files.make_folder(self.path)

    def read(self) -> dict[str, Any]:
        """What `write` wrote beside the tensors."""
        file = self.path / INDEX
        if not file.exists():
            raise LoadError(f"there is no fit in {self.path}: {INDEX} is missing.")
        index = files.read_json(file, _REMEDY)
        if index.get("version") != VERSION:
            raise LoadError(f"{file} has format {index.get('version')!r}, and this Headscope reads {VERSION}.")
        if not files.take_checksum(index, file, _REMEDY):
            raise LoadError(f"{file} is damaged: its checksum is missing. {_REMEDY}")
        return index

    def tensors(self, index: Mapping[str, Any], role: str) -> dict[str, Tensor]:
        """The tensors of a role ("state" or "best")."""
        file = self.path / index["files"][role]["name"]
        try:
            data = file.read_bytes()
        except OSError as error:
            raise LoadError(f"{file} cannot be read: {error.strerror or error}. {_REMEDY}") from error
        if hashlib.sha256(data).hexdigest() != index["files"][role]["sha256"]:
            raise LoadError(f"{file} is damaged: it does not match its checksum. {_REMEDY}")
        return load(data)

    def write_tensors(self, role: str, step: int, tensors: Mapping[str, Tensor]) -> dict[str, str]:
        """Write tensors to a file of their own; gives its name and checksum, for the index."""
        data = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
        name = f"{role}-{step:08d}.safetensors"
        files.write_file(self.path / name, data)
        return {"name": name, "sha256": hashlib.sha256(data).hexdigest()}

    def write(self, index: Mapping[str, Any]) -> None:
        """Replace the index, then remove the files that it does not name."""
        whole = files.with_checksum({"version": VERSION, **index})
        files.write_file(self.path / INDEX, json.dumps(whole, indent=1).encode())
        named = {about["name"] for about in index["files"].values()}
        for path in self._tensor_files():
            if path.name not in named:
                path.unlink(missing_ok=True)

    def _tensor_files(self) -> list[Path]:
        return [path for role in ("state", "best") for path in self.path.glob(f"{role}-*.safetensors")]
