"""Uploading pictures and sounds, and small pictures of them."""

from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from starlette.responses import Response

from headscope.server.errors import Refused
from headscope.server.media import MediaStore
from headscope.server.messages import MediaProps

MediaId = Annotated[str, Path(description="The id that the upload was given, or preset:NAME.", max_length=100)]


def add_media(app: FastAPI, store: MediaStore) -> None:
    """The two addresses of pictures and sounds."""
    binary: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
    body = {"required": True, "content": {"application/octet-stream": binary}}

    @app.post("/api/media", openapi_extra={"requestBody": body})
    async def upload(request: Request) -> MediaProps:
        """Upload a picture or a sound, as bare bytes; its id is for `media` of a run."""
        return (await store.add(await request.body())).props()

    png: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": binary}, "description": "A small picture."}}

    @app.get("/api/media/{id}", responses=png, response_class=Response)
    def thumbnail(id: MediaId) -> Response:
        """A small picture of an upload or a preset."""
        media = store.find(id)
        if media.kind != "image":
            raise Refused(404, "NoPicture", "a sound has no picture before it is run.")
        return Response(media.thumbnail, media_type="image/png")
