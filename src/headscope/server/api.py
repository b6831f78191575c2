"""What the page can ask for, as an OpenAPI description and as the functions that answer."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from headscope import __version__
from headscope.errors import HeadscopeError
from headscope.server.access import Access, Guard
from headscope.server.atlas_api import add_atlases
from headscope.server.edits import (
    EditsFile,
    EditsRead,
    SavedModel,
    SaveModelRequest,
    edits_file,
    edits_in,
    place_for,
    write_model,
)
from headscope.server.errors import Refused, answer_of
from headscope.server.exports import TYPES, TableQuery, saved_page
from headscope.server.jobs import Job, Jobs
from headscope.server.media_api import add_media
from headscope.server.memory import Address
from headscope.server.messages import (
    LoadRequest,
    PageRequest,
    Problem,
    Remembered,
    RunEvent,
    RunRequest,
    Settings,
    TaskRequest,
)
from headscope.server.page import HTML, static_file
from headscope.server.part_cache import working_bytes
from headscope.server.request_bodies import BoundedLists, JsonRoute
from headscope.server.runs import Runs
from headscope.server.streamed_responses import NDJSON, Left, RunStream, line, while_connected
from headscope.server.workbench import Workbench
from headscope.traces import Trace, compare
from headscope.views.contract import ModelProps
from headscope.views.parts import part

BYTES = "application/octet-stream"
# Parts of a trace never change, and another server has other ids.
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
WARM_SECONDS = 20
# Elements of a list in a request: edits and turns of a chat (their limits proper are smaller); tokens.
MOST_LINES, MOST_TOKENS = 1_000, 100_000
MOST_REMEMBERED = 200
EDIT_FILES = {"edits.json": "application/json", "edits.zip": "application/zip"}

Id = Annotated[str, Path(description="The trace's id, as the last event of its run tells it.", max_length=64)]
OnlyKept = Annotated[bool, Query(description="Return the kept result, or the state absent; compute nothing.")]
Responses = dict[int | str, dict[str, Any]]


def _answers(description: str, *kinds: str, schema: dict[str, str] | None = None) -> Responses:
    """The description of an answer that is not JSON."""
    return {
        200: {"content": {kind: {"schema": schema or {"type": "string"}} for kind in kinds}, "description": description}
    }


REFUSALS: Responses = {
    status: {"model": Problem, "description": description}
    for status, description in {
        400: "Not HTTP, or with more headers than this server reads.",
        401: "No cookie and no token.",
        403: "Another host, another page, or something this server may not read.",
        404: "There is no such thing (any more).",
        405: "This address does not take this method.",
        408: "The rest of the request did not come in time.",
        409: "Something of this name is there already, or has changed meanwhile.",
        413: "More than this server takes.",
        422: "A request that cannot be done, and why.",
        503: "The server has no memory left for it just now, or is being stopped.",
    }.items()
}
BUSY: Responses = {
    429: {"model": Problem, "description": "Too many runs are waiting; the header Retry-After says how long."}
}
PART_OPTIONS = {
    "what": "pattern, contribution or scores",
    "by": "tokens, words or sentences",
    "hide": "positions to leave out",
    "size": "cells a side of a pooled map",
    "query": "position of a query",
    "key": "position of a key",
    "rows": "first:last",
    "columns": "first:last",
    "minus": "the id of a run that is subtracted, or compared with",
    "source": "place of a word among those that both runs have",
    "target": "place of a word among those that both runs have",
}


def application(workbench: Workbench) -> Guard:
    """The whole server: the checks of access, and behind them the API and the page."""
    return Guard(api(workbench), workbench.access, workbench.options.limits)


def api(workbench: Workbench) -> FastAPI:
    """The API and the page."""

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        workbench.warm_up()
        yield
        workbench.close()

    app = FastAPI(
        title="Headscope",
        version=__version__,
        description="The workbench's own API: it serves the page, and may change with it.",
        docs_url=None,  # they come from a CDN
        redoc_url=None,
        openapi_url=None,  # answered in a thread, by `_describe`
        lifespan=life,
        responses=REFUSALS,
    )
    app.router.route_class = JsonRoute
    for error in (Refused, HeadscopeError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(error, answer_of)
    app.add_exception_handler(Left, lambda request, error: Response(status_code=499))
    _add_page(app, workbench)
    _add_models(app, workbench)
    _add_runs(app, workbench)
    _add_edits(app, workbench)
    add_media(app, workbench.media)
    _add_downloads(app, workbench)
    _add_parts(app, workbench)
    add_atlases(app, workbench, BUSY)
    _describe(app, workbench.access)
    return app


def _add_page(app: FastAPI, workbench: Workbench) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(HTML)

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str, request: Request) -> Response:
        return static_file(workbench.options.static, name, request)


def _add_models(app: FastAPI, workbench: Workbench) -> None:
    jobs, catalogue = workbench.jobs, workbench.catalogue

    @app.get("/api/settings")
    async def settings() -> Settings:
        """What this server offers, and its limits."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(workbench.is_warm.wait(), WARM_SECONDS)
        await asyncio.to_thread(catalogue.look_for_folders)
        return workbench.settings()

    @app.post("/api/models", responses=BUSY)
    async def load_model(wanted: LoadRequest, request: Request) -> ModelProps:
        """Load a model, if it is not yet, and tell what it takes."""
        name = await asyncio.to_thread(catalogue.resolve, wanted.name)
        if catalogue.is_loaded(name):
            return catalogue.props(name)

        def work(job: Job) -> RunEvent:
            catalogue.load(name)
            return RunEvent("done")

        await _await_job(jobs, jobs.submit(f"load {name}", work), request)
        return catalogue.props(name)


def _add_runs(app: FastAPI, workbench: Workbench) -> None:
    jobs, runs = workbench.jobs, workbench.runs
    events = _answers("A RunEvent a line.", NDJSON) | BUSY

    @app.get("/api/traces", response_model=list[Remembered])
    def history() -> Response:
        """The cached runs, up to 200, the newest first."""
        rows = [json.dumps(asdict(run.summary())) for run in runs.cache.newest_first()[:MOST_REMEMBERED]]
        return Response(f"[{','.join(rows)}]", media_type="application/json")

    @app.post("/api/runs", responses=events, response_class=Response)
    async def run(wanted: Annotated[RunRequest, BoundedLists(MOST_LINES)], only_kept: OnlyKept = False) -> Response:
        """Run a model on an input. Closing the connection stops the run."""
        started = await runs.start(wanted, only_kept=only_kept)
        if isinstance(started, Job):
            return RunStream(jobs, started)
        event = RunEvent("absent") if started is None else RunEvent("done", trace=started)
        return Response(line(event), media_type=NDJSON)

    @app.post("/api/tasks", responses=events, response_class=Response)
    async def start_task(wanted: TaskRequest, only_kept: OnlyKept = False) -> Response:
        """Have something worked out that needs the model. Closing the connection stops it."""
        started = await workbench.tasks.start(wanted, only_kept=only_kept)
        if isinstance(started, Job):
            return RunStream(jobs, started)
        event = RunEvent("absent") if started is None else RunEvent("done", result=started)
        return Response(line(event), media_type=NDJSON)

    result = _answers("The part.", BYTES, schema={"type": "string", "format": "binary"})

    @app.get("/api/results/{id}", responses=result, response_class=Response)
    async def task_result(id: Annotated[str, Path(max_length=64)]) -> Response:
        """What a task gave, in the format of `headscope.views.wire`."""
        return Response(workbench.tasks.find(id), media_type=BYTES, headers=FOREVER)


def _add_edits(app: FastAPI, workbench: Workbench) -> None:
    jobs, runs, catalogue = workbench.jobs, workbench.runs, workbench.catalogue

    @app.post("/api/edits")
    def read_edits(wanted: EditsFile) -> EditsRead:
        """The edits that lie in a file, as `hs.save_interventions` writes it."""
        return EditsRead(edits_in(wanted.text, workbench.options.limits.edits))

    edits = _answers("A file.", *EDIT_FILES.values(), schema={"title": "Interventions, or an archive of them"})

    @app.get("/api/traces/{id}/edits", responses=edits, response_class=Response)
    async def take_edits(id: Id) -> Response:
        """The edits of a run as a file for `hs.load_interventions`; in a ZIP where tensors lie beside it."""
        data, name = await asyncio.to_thread(edits_file, runs.find(id).interventions)
        return _download(data, EDIT_FILES[name], name)

    @app.post("/api/traces/{id}/model", responses=BUSY)
    async def save_model(id: Id, wanted: SaveModelRequest, request: Request) -> SavedModel:
        """Write the model with a run's edits in its weights, where this server was started to."""
        run = runs.find(id)
        folder = await asyncio.to_thread(place_for, wanted.name, workbench.options.save_to)

        def work(job: Job) -> RunEvent:
            write_model(catalogue.load(run.request.model), run.interventions, folder)
            return RunEvent("done")

        await _await_job(jobs, jobs.submit(f"save {id} {folder}", work), request)
        return SavedModel(str(folder))


def _add_downloads(app: FastAPI, workbench: Workbench) -> None:
    runs, parts = workbench.runs, workbench.parts

    @app.get("/api/traces/{id}/table", responses=_answers("A file.", *TYPES.values()), response_class=Response)
    async def table(id: Id, wanted: Annotated[TableQuery, Depends()], request: Request) -> Response:
        """Numbers of heads as a file: weights between tokens, or with `view=model` the scores of all heads."""
        trace, reads = _subject(runs, id, wanted.minus)
        size = working_bytes(runs.find(id).trace, "table", is_difference=bool(wanted.minus))
        work = parts.get(id, f"table {wanted}", lambda: wanted.bytes(trace()), size=size, reads=reads)
        data = await while_connected(request.receive, work)
        return _download(data, TYPES[wanted.format], f"headscope.{wanted.format}")

    @app.post("/api/traces/{id}/page", responses=_answers("A file.", "text/html"), response_class=Response)
    async def page(id: Id, wanted: Annotated[PageRequest, BoundedLists(MOST_TOKENS)], request: Request) -> Response:
        """One HTML file that shows the selection without a server."""
        run = runs.find(id)
        trace, reads = _subject(runs, id, wanted.minus)
        more = await asyncio.to_thread(workbench.beside, id, wanted.selection, wanted.minus)
        # By the ids of results: the same task may have been asked for more since.
        key = await asyncio.to_thread(lambda: f"page {wanted} {sorted(more)}")

        def compute() -> bytes:
            beside = {name: part for parts_of in more.values() for name, part in parts_of().items()}
            return saved_page(trace(), wanted, gold=run.gold, parts=beside)

        size = working_bytes(run.trace, "page", is_difference=bool(wanted.minus))
        work = parts.get(id, key, compute, size=size, reads=reads)
        return _download(await while_connected(request.receive, work), "text/html; charset=utf-8", "headscope.html")


def _add_parts(app: FastAPI, workbench: Workbench) -> None:
    """The rest of what lies under a trace: its parts, by any key that no other address has."""
    runs, parts = workbench.runs, workbench.parts
    binary = {"type": "string", "format": "binary"}
    options = [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"}, "description": description}
        for name, description in PART_OPTIONS.items()
    ]

    @app.get(
        "/api/traces/{id}/{key:path}",
        responses=_answers("The part.", BYTES, schema=binary),
        response_class=Response,
        openapi_extra={"parameters": options},
    )
    async def trace_part(id: Id, key: Annotated[str, Path(max_length=200)], request: Request) -> Response:
        """One part of a trace, as `headscope.views.contract` lists them, in the format of `headscope.views.wire`."""
        run = runs.find(id)
        query = request.url.query
        whole = f"{key}?{query}" if query else key
        other = request.query_params.get("minus")
        second = runs.find(other).trace if other else None
        size = working_bytes(run.trace, key.partition("/")[0], is_difference=bool(other))
        reads = [runs.cache.address(id), *([runs.cache.address(other)] if other else [])]

        def compute() -> bytes:
            if whole == "report":
                return workbench.reports.part(run.request.model).encode()
            return part(run.trace, whole, id=id, find=lambda _: second or run.trace, gold=run.gold).encode()

        work = parts.get(id, whole, compute, size=size, reads=reads)
        return Response(await while_connected(request.receive, work), media_type=BYTES, headers=FOREVER)


async def _await_job(jobs: Jobs, job: Job, request: Request) -> None:
    """Wait for a job whose answer is one word; leaving stops it, and what went wrong is refused."""
    try:
        last = await while_connected(request.receive, job.end())
    finally:
        jobs.leave(job)
    if last.state != "done":
        raise Refused(422, last.error or "Cancelled", last.message or "the server was stopped.", last.hint)


def _subject(runs: Runs, id: str, minus: str) -> tuple[Callable[[], Trace], list[Address]]:
    """A run, or where another is named, the one minus the other: looked up now, subtracted by whoever has the time.
    And what of the cache is read for that.
    """
    trace, reads = runs.find(id).trace, [runs.cache.address(id)]
    if not minus:
        return lambda: trace, reads
    other = runs.find(minus).trace
    return lambda: compare(trace, other).difference(), [*reads, runs.cache.address(minus)]


def _download(data: bytes, kind: str, name: str) -> Response:
    return Response(data, headers={"Content-Type": kind, "Content-Disposition": f'attachment; filename="{name}"'})


def _describe(app: FastAPI, access: Access) -> None:
    """Serve the description. It says how one is let in; the checks themselves are made before FastAPI is asked."""
    default_openapi = app.openapi

    def description() -> dict[str, Any]:
        schema = default_openapi()
        schema.setdefault("components", {})["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": access.cookie_name},
        }
        schema["security"] = [{"token": []}, {"cookie": []}]
        return schema

    app.openapi = description  # type: ignore[method-assign]
    app.add_route("/api/openapi.json", lambda request: JSONResponse(description()), include_in_schema=False)
