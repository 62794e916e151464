"""Converts errors to responses: one format and one handler for every error of a request."""

import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from determined.config.validation_words import in_words
from determined.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    NotFound,
    NotImplementedYet,
    Unauthenticated,
)
from determined_launch.out_of_space import is_out_of_space
from determined_master.errors import InvalidConfig, StorageUnavailable, unexpected

_BY_STATUS = {
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: NotFound,
    501: NotImplementedYet,
}


def error_body(error: ApiError) -> dict[str, Any]:
    body: dict[str, Any] = {"error": {"code": error.code, "reason": error.reason, "error": error.message}}
    if isinstance(error, InvalidConfig):
        body["diagnostics"] = [
            {
                "severity": d.severity,
                "code": d.code,
                "message": d.message,
                "path": list(d.path),
                "line": d.line,
                "column": d.column,
                "hint": d.hint,
            }
            for d in error.checked.diagnostics
        ]
    return body


def response_of(error: ApiError) -> Response:
    content = json.dumps(error_body(error), ensure_ascii=False, separators=(",", ":"))
    # A message may quote the request, which may contain characters that cannot be encoded.
    headers = {"Retry-After": str(error.RETRY_SECONDS)} if isinstance(error, StorageUnavailable) else None
    return Response(content.encode("utf-8", "replace"), error.status, headers, media_type="application/json")


def translate(error: Exception) -> ApiError:
    """Logs an unexpected error with its traceback and answers with a sentence that reveals no internals."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RequestValidationError):
        return BadRequest("; ".join(f"{_name_of(each['loc'])}: {in_words(each)}" for each in error.errors()))
    if isinstance(error, HTTPException):
        kind = _BY_STATUS.get(error.status_code, ApiError)
        return kind("no such path" if kind is NotFound else str(error.detail))
    if is_out_of_space(error):
        return StorageUnavailable()
    if isinstance(error, ClientDisconnect):  # a task that was killed in the middle; nobody reads the answer
        return BadRequest("the client has gone")
    return unexpected(error)


def _name_of(place: tuple[str | int, ...]) -> str:
    """Returns the name of a value. FastAPI puts before it where it was; a body that a route checks has none."""
    steps = place[1:] if place[:1] and place[0] in _PARTS else place
    return ".".join(map(str, steps)) or "body"


_PARTS = ("body", "query", "path", "header", "cookie")


def install(app: FastAPI, note_failure: Callable[[str], None]) -> None:
    """Registers the handlers. ``note_failure`` is called with the text of an error of a full disk."""

    async def handle(_request: Request, error: Exception) -> Response:
        if is_out_of_space(error):
            note_failure(str(error))
        return response_of(translate(error))

    # OSError is registered separately: after the handler of Exception the server logs a traceback.
    for kind in (ApiError, RequestValidationError, HTTPException, OSError, Exception):
        app.add_exception_handler(kind, handle)
