"""A saved page as one HTML document: parts, script and style packed in it, a policy that lets nothing else run."""

import base64
import hashlib
import html
import importlib.resources
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from headscope.errors import HeadscopeError
from headscope.views.table import strongest
from headscope.views.wire import Part

if TYPE_CHECKING:
    from headscope.views.view import View

_SAMPLE = 2**18
_TABLE_ROWS = 50
_PACKED = 'type="application/octet-stream+base64"'


@dataclass(frozen=True)
class Program:
    """The page's script or its style: packed, and the digest that it is let run by once it is unpacked."""

    packed: str
    digest: str


@lru_cache(maxsize=8)
def program(text: str) -> Program:
    """A script or a style as it goes into a page: a third of its size."""
    return Program(_base64(compress(text.encode(), zlib.Z_DEFAULT_STRATEGY, 9)), _digest(text))


def pack(part: Part) -> str:
    """Gzipped, in base64, which HTML leaves alone."""
    message = part.encode()
    # Weights that look like noise pack better, and ten times as fast, when no repetitions are looked for.
    sample = message[:_SAMPLE]
    strategy = min((zlib.Z_DEFAULT_STRATEGY, zlib.Z_RLE), key=lambda candidate: len(compress(sample, candidate)))
    return _base64(compress(message, strategy))


def compress(data: bytes, strategy: int, level: int = 6) -> bytes:
    """The same bytes for the same data, whenever they are made."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, strategy)
    return packer.compress(data) + packer.flush()


def html_document(title: str, without_scripts: str, parts: dict[str, str], script: Program, style: Program) -> str:
    """The file, in ASCII: it survives being written in whatever encoding a system prefers.

    `without_scripts` is HTML for a browser that runs none.
    """
    loader = _loader()
    rules = [
        "default-src 'none'",
        f"script-src {_digest(loader)} {script.digest}",
        f"style-src {style.digest}",
        "img-src blob: data:",
        "font-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    inside = "\n".join(
        f'<script {_PACKED} data-key="{html.escape(key, quote=True)}">{text}</script>' for key, text in parts.items()
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html.escape("; ".join(rules), quote=True)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Headscope">
<title>{escape(title)}</title>
</head>
<body>
<div data-headscope="file">
{inside}
</div>
<noscript>
{without_scripts}
</noscript>
<script {_PACKED} data-program="style">{style.packed}</script>
<script {_PACKED} data-program="script">{script.packed}</script>
<script>{loader}</script>
</body>
</html>
"""


def escape(text: str) -> str:
    """Text as it can stand in HTML, in ASCII."""
    return (
        html.escape(text.encode("utf-8", "replace").decode(), quote=True).encode("ascii", "xmlcharrefreplace").decode()
    )


def _loader() -> str:
    return importlib.resources.files("headscope.views").joinpath("loader.js").read_text("utf-8")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _digest(text: str) -> str:
    return f"'sha256-{_base64(hashlib.sha256(text.encode()).digest())}'"


def plain_table(view: "View") -> str:
    """For a browser that runs no scripts: the strongest connections, in plain HTML."""
    try:
        table = strongest(view, _TABLE_ROWS)
    except HeadscopeError as error:
        return f"<p>{escape(view.title)}. {escape(str(error))}</p>"
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>" for row in table.rows()
    )
    return (
        f"<h1>{escape(view.title)}</h1>\n<p>This page is drawn by JavaScript, which is switched off; "
        f"these are the {len(table)} strongest connections.</p>\n"
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    )


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
