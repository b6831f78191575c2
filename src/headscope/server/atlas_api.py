"""Atlases over HTTP: the parts of each, and what can be made: maps, scores, an atlas of texts."""

import asyncio
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from starlette.responses import Response

from headscope.atlases.build_atlas import compile_kernels
from headscope.server.atlas_jobs import build_job, task_job
from headscope.server.atlases import OfferedAtlas
from headscope.server.jobs import Job, Jobs
from headscope.server.messages import AtlasBuildRequest, AtlasOffer, AtlasPageRequest, AtlasTaskRequest, RunEvent
from headscope.server.request_bodies import BoundedLists
from headscope.server.streamed_responses import NDJSON, RunStream, while_connected
from headscope.server.workbench import Workbench
from headscope.views.atlas_keys import parse_atlas_key
from headscope.views.atlas_parts import atlas_part
from headscope.views.atlas_views import AtlasView

BYTES = "application/octet-stream"
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
_MOST_TEXTS, _MOST_HEADS = 50_000, 10_000
PART_OPTIONS = {
    "head": "a head, as L3H2",
    "stack": "the stack whose tokens are meant",
    "method": "pca, tsne or umap",
    "dims": "2 or 3",
    "coordinates": "raw, translated, scaled or lifted",
    "points": "the most points a head",
    "name": "norm or key_bias",
    "top": "how many keys a query",
    "pairs": "how many pairs",
    "example": "the number of an example",
    "text": "a token, or a regular expression (RE2)",
    "regex": "1 for a regular expression",
    "ignore_case": "1 to ignore case",
    "role": "query or key",
    "row": "a row of the table of tokens",
    "k": "how many neighbours",
}
PageWanted = Annotated[AtlasPageRequest, BoundedLists(_MOST_HEADS)]
Responses = dict[int | str, dict[str, Any]]
Id = Annotated[str, Path(description="The atlas's id, as the settings tell it.", max_length=64)]


def add_atlases(app: FastAPI, workbench: Workbench, busy: Responses) -> None:
    """The addresses under `/api/atlases`."""

    @app.get("/api/atlases")
    def offers() -> list[AtlasOffer]:
        """The atlases that this server offers."""
        return workbench.atlases.offers()

    _add_jobs(app, workbench, busy)
    _add_page(app, workbench)
    _add_parts(app, workbench)


def _add_jobs(app: FastAPI, workbench: Workbench, busy: Responses) -> None:
    atlases, jobs, memory = workbench.atlases, workbench.jobs, workbench.memory
    stream: Responses = {
        200: {"content": {NDJSON: {"schema": {"type": "string"}}}, "description": "A RunEvent a line."}
    }

    @app.post("/api/atlases", responses=stream | busy, response_class=Response)
    async def build(wanted: Annotated[AtlasBuildRequest, BoundedLists(_MOST_TEXTS)]) -> Response:
        """Make an atlas of texts. Ends with its id; closing the connection stops it."""
        # In a thread: names of folders are looked up.
        about = (wanted, atlases, workbench.catalogue, memory, workbench.options.limits)
        work = await asyncio.to_thread(build_job, *about)
        return RunStream(jobs, jobs.submit(work.key, work.run))

    @app.post("/api/atlases/{id}/tasks", responses=stream | busy, response_class=Response)
    async def make(id: Id, wanted: AtlasTaskRequest) -> Response:
        """Make the map of all heads, or the scores. Ends with the atlas's new id; closing the connection stops it."""
        work = task_job(wanted, atlases.find(id), memory)
        return RunStream(jobs, jobs.submit(work.key, work.run))


def _add_page(app: FastAPI, workbench: Workbench) -> None:
    html: Responses = {200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A file."}}

    @app.post("/api/atlases/{id}/page", responses=html, response_class=Response)
    async def page(
        id: Id, wanted: Annotated[AtlasPageRequest, BoundedLists(_MOST_HEADS)], request: Request
    ) -> Response:
        """One HTML file that shows an atlas without a server."""
        offered = workbench.atlases.find(id)
        atlas = await asyncio.to_thread(offered.atlas)

        def compute() -> bytes:
            return AtlasView(atlas, wanted.selection, tuple(wanted.heads)).html().encode()

        size = await asyncio.to_thread(offered.working_bytes, "page")
        work = workbench.parts.get(f"atlas {offered.id}", f"page {wanted}", compute, size=size)
        headers = {"Content-Disposition": 'attachment; filename="headscope-atlas.html"'}
        return Response(await while_connected(request.receive, work), media_type="text/html", headers=headers)


def _add_parts(app: FastAPI, workbench: Workbench) -> None:
    binary = {"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}, "description": "The part."}
    options = [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"}, "description": description}
        for name, description in PART_OPTIONS.items()
    ]

    @app.get(
        "/api/atlases/{id}/parts/{key}",
        responses={200: binary},
        response_class=Response,
        openapi_extra={"parameters": options},
    )
    async def part(id: Id, key: Annotated[str, Path(max_length=40)], request: Request) -> Response:
        """One part of an atlas, as `headscope.views.contract` lists them, in the format of `headscope.views.wire`."""
        offered = workbench.atlases.find(id)
        query = request.url.query
        whole = f"{key}?{query}" if query else key
        atlas = await asyncio.to_thread(offered.atlas)
        if key == "atlas" and atlas.index["has_vectors"]:
            _warm_up(workbench.jobs, offered)

        def compute() -> bytes:
            return atlas_part(atlas, whole, offered.names).encode()

        part_key = parse_atlas_key(whole)
        points = part_key.points if part_key.kind == "maps" else 0
        size = await asyncio.to_thread(offered.working_bytes, part_key.kind, points)
        work = workbench.parts.get(f"atlas {offered.id}", whole, compute, size=size)
        return Response(await while_connected(request.receive, work), media_type=BYTES, headers=FOREVER)


_is_warm: set[str] = set()


def _warm_up(jobs: Jobs, offered: OfferedAtlas) -> None:
    """Have what UMAP and scores run compiled, once, before anybody asks for a map."""
    if _is_warm:
        return
    _is_warm.add(offered.key)

    def work(job: Job) -> RunEvent:
        compile_kernels()
        return RunEvent("done")

    jobs.submit("kernels of atlases", work, is_ours=True)
