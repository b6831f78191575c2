"""What the person who starts the server decides: what it may load, whom it answers, how much it takes."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from headscope.corpora import Corpus
from headscope.server.encryption import Certificate

MEGABYTE = 10**6


@dataclass(frozen=True)
class Limits:
    """The most that one request, or all of them together, may ask for."""

    body_bytes: int = 2 * MEGABYTE
    characters: int = 200_000
    turns: int = 200
    waiting: int = 8
    """Runs that may wait for the one that is running."""
    memory: int = 2_000 * MEGABYTE
    """Bytes of everything that is cached, and of what requests under way work with. An eighth is for their bodies."""
    part_threads: int = 4
    edits: int = 64
    """Edits of one run."""
    media_bytes: int = 20 * MEGABYTE
    """Of one picture or sound."""
    media_pixels: int = 50 * MEGABYTE
    media_seconds: int = 120
    """Of one sound: a few bytes at a low rate are long, and models that hear any length take memory for all of it."""
    other_models: int = 3
    """Models kept in memory beside the built-in ones and those given at the start."""

    atlas_points: int = 20_000
    """Points a head of an atlas that the page has made."""
    texts: int = 5_000
    """Texts that an atlas is made from in the page."""

    @property
    def bodies(self) -> int:
        """Bytes of the bodies of all requests under way."""
        return self.memory // 8


@dataclass(frozen=True)
class Options:
    """How the server was started."""

    models: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8765
    allow_hub: bool = False
    allow: tuple[Path, ...] = ()
    save_to: Path | None = None
    """Where the page may write models to."""
    corpus: Path | Corpus | None = None
    """Texts to take examples from: a file, or a folder of them. Default: the built-in sentences."""
    trusted_hosts: tuple[str, ...] = ()
    certificate: Certificate | None = None
    """What the server shows to browsers, which then speak TLS with it."""
    reports: tuple[Path, ...] = ()
    """Folders that `headscope heads` wrote."""
    sweeps: tuple[Path, ...] = ()
    """Folders that `headscope prune` wrote."""
    atlases: tuple[Path, ...] = ()
    """Folders that `headscope atlas` wrote."""
    limits: Limits = field(default_factory=Limits)
    static: Path = field(default_factory=lambda: built_page())


def built_page() -> Path:
    """Where the built page lies; HEADSCOPE_STATIC names another build, for those who work on it."""
    return Path(os.environ.get("HEADSCOPE_STATIC") or Path(__file__).parent.parent / "static")
