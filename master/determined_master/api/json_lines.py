"""Streams of JSON lines: one object per line, an error as a line of its own, never a blank line."""

import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from starlette.responses import StreamingResponse

from determined.errors import ApiError
from determined_master.api.errors import translate
from determined_master.api.schemas.base import Wire

T = TypeVar("T")


class Streamed(Wire, Generic[T]):
    """One line of a stream, for the OpenAPI document."""

    result: T


def json_lines(source: AsyncIterator[Any]) -> StreamingResponse:
    """Returns a stream. ``source`` yields the values of ``result``, dictionaries or wire models, or encoded lines."""
    return StreamingResponse(_encode(source), media_type="application/json")


async def _encode(source: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    try:
        async for item in source:
            if isinstance(item, bytes):
                yield item
                continue
            value = item.model_dump(mode="json") if hasattr(item, "model_dump") else item
            yield json.dumps({"result": value}).encode() + b"\n"
    except Exception as error:
        known: ApiError = translate(error)
        failure = {
            "grpcCode": known.code,
            "httpCode": known.status,
            "message": known.message,
            "httpStatus": HTTPStatus(known.status).phrase,
            "details": [],
        }
        yield json.dumps({"error": failure}).encode() + b"\n"
