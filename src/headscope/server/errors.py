"""Errors as the page hears them: a status, and a Problem in words. Where it failed, the terminal says (`log.py`)."""

import re
from dataclasses import asdict
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from headscope.errors import (
    AbsentPatternError,
    BudgetError,
    HeadscopeError,
    LoadError,
    TooLongError,
    TooManyNumbersError,
)
from headscope.server.messages import Problem


class Refused(Exception):
    """A request that is answered with a Problem."""

    def __init__(self, status: int, error: str, message: str, hint: str = "", headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status, self.problem, self.headers = status, Problem(error, message, hint), headers

    def answer(self) -> JSONResponse:
        """The response."""
        return JSONResponse(asdict(self.problem), self.status, headers=self.headers)


def stopping() -> Refused:
    """The answer to what is asked while the server ends."""
    return Refused(503, "Stopping", "the server is being stopped.", "Start it again: headscope serve")


def unexpected(id: str) -> Problem:
    """An error that nobody foresaw; the log names it by the same id."""
    hint = f"The terminal it runs in says where, under the id {id}: please report it."
    return Problem("Unexpected", "something went wrong inside the server.", hint)


def problem_of(error: HeadscopeError) -> Problem:
    """An error of ours in the words of the page, which knows nothing of Python's arguments."""
    hint, message, cut_to = "", str(error), ""
    if isinstance(error, LoadError) and any(word in message for word in ("pickle", "trust_remote_code")):
        hint = "The workbench reads safetensors only, and never runs code that comes with a model."
    elif isinstance(error, TooManyNumbersError):
        hint = 'Save "Numbers on screen", or show fewer heads or fewer lines: only the strongest keys of each query.'
    elif isinstance(error, AbsentPatternError):
        message = error.reason  # the page offers the example itself
    elif isinstance(error, BudgetError):
        hint = "To let it keep more, start the server with --max-memory, as in --max-memory 8GB."
    elif isinstance(error, TooLongError):
        cut_to = error.cut_to
        what = "Give a shorter sound" if message.startswith("the sound") else "Shorten the text"
        message, hint = re.sub(r"\. [^.]*`truncate=True`.*", ".", message), f"{what}, or run the first {cut_to}."
    return Problem(type(error).__name__, message, hint, cut_to)


def answer_of(request: Any, error: Exception) -> JSONResponse:
    """The response to any error; FastAPI calls it."""
    if isinstance(error, Refused):
        return error.answer()
    if isinstance(error, HeadscopeError):
        status = 404 if isinstance(error, LookupError) else 422
        return JSONResponse(asdict(problem_of(error)), status)
    if isinstance(error, RequestValidationError):
        reason = "; ".join(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()[:5])
        return JSONResponse(asdict(Problem("InvalidRequest", f"this request cannot be read: {reason}.")), 422)
    if isinstance(error, HTTPException):
        address = f"{request.method} {request.url.path[:200]}"
        reasons = {404: "there is nothing at this address", 405: "this address does not take this method"}
        message = f"{address}: {reasons.get(error.status_code, error.detail)}."
        return JSONResponse(asdict(Problem("HttpError", message)), error.status_code, headers=error.headers)
    return JSONResponse(asdict(unexpected(request.scope["id"])), 500)
