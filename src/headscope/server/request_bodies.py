"""Bodies of requests, read so that none keeps the event loop busy: a body of 2 MB has room for a million values.

Reading JSON and checking its types cannot be interrupted, in whatever thread it happens, so it is bounded.
"""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import GetCoreSchemaHandler
from pydantic_core import from_json

MOST_VALUES = 300_000
"""Of a body, told by its punctuation, in texts too: a text of 200,000 characters may be commas alone."""
_LISTS = ("list", "tuple", "set", "frozenset")


def values_in(body: bytes) -> int:
    """How many numbers take as long to read as this JSON: a list counts as two, a member of an object as four."""
    return body.count(b",") + 2 * body.count(b"[") + 2 * body.count(b"{") + 4 * body.count(b":")


class JsonRoute(APIRoute):
    """A route whose bodies are read by pydantic's parser: Python's own takes ten times as long on some numbers."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function that answers."""
        answer = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await answer(_JsonRequest(request.scope, request.receive))

        return handler


class _JsonRequest(Request):
    async def json(self) -> Any:
        body = await self.body()
        try:
            return from_json(body, allow_inf_nan=False)
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from None


class BoundedLists:
    """Annotates a type that pydantic checks: each list has at most `most` elements, and the first wrong one is told.

    By default pydantic describes every wrong element, which takes seconds for a body full of them.
    """

    def __init__(self, most: int):
        self.most = most

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        schema = handler(source)
        self._bound(schema, handler, set())
        return schema

    def _bound(self, schema: Any, handler: GetCoreSchemaHandler, visited: set[int]) -> None:
        """Bound every list in a schema, also those of the types that it refers to."""
        if isinstance(schema, dict):
            if schema.get("type") == "definition-ref":
                schema = handler.resolve_ref_schema(schema)  # type: ignore[arg-type]
            if id(schema) in visited:
                return
            visited.add(id(schema))
            if schema.get("type") in _LISTS:
                schema["fail_fast"] = True
            if schema.get("type") == "list":
                schema["max_length"] = self.most
            for part in schema.values():
                self._bound(part, handler, visited)
        elif isinstance(schema, list | tuple):
            for part in schema:
                self._bound(part, handler, visited)
