"""Files that a person names."""

from pathlib import Path

from headscope.errors import InputError


def existing_file(source: str | Path) -> Path:
    """The path of a file that is there."""
    text = str(source)
    if text.startswith(("http://", "https://")):
        raise InputError(f"{text} is a web address: download the file first and give its path.")
    path = Path(source).expanduser()
    if not path.is_file():
        what = "is a folder" if path.is_dir() else f"does not exist (looked from {Path.cwd()})"
        raise InputError(f"the file {text!r} {what}: give the path of one file.")
    return path
