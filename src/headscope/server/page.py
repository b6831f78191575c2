"""The workbench's page and the files it is made of."""

import hashlib
import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from headscope.errors import LoadError
from headscope.server.errors import Refused

NEEDED = ("headscope.js", "headscope.css")
HTML = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Headscope</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/headscope.css">
<script type="module" src="/static/headscope.js"></script>
</head>
<body>
<div data-headscope="page"></div>
<noscript>The workbench is drawn by JavaScript, which is switched off in this browser.</noscript>
</body>
</html>
"""


def check_static(folder: Path) -> None:
    """Refuse to start without the page."""
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    if missing:
        raise LoadError(
            f"the workbench's page is not built ({missing[0]} is missing in {folder}). In a checkout of the "
            "repository, build it with `python scripts/web`; an installed package brings it along."
        )


def static_file(folder: Path, name: str, request: Request) -> Response:
    """A file of the page; a browser that has this very version is told so."""
    file = folder / name
    if name.startswith(".") or not name.isascii() or "/" in name or "\\" in name or "\0" in name or not file.is_file():
        raise Refused(404, "UnknownFile", f"the page has no file {name[:100]!r}.")
    data = file.read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    kind = {".js": "text/javascript"}.get(file.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(data, media_type=kind, headers=headers)
