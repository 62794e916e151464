"""Parses JSON bodies. Answers 400 for invalid JSON, deep nesting and lone surrogates."""

import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(data: bytes) -> object:
    """Parses JSON. Raises HTTPException, the only error that FastAPI passes on from the parsing of a body."""
    try:
        # Decoded here, because ``json`` lets the bytes of lone surrogates pass.
        text = data.decode(json.detect_encoding(data))
        value = json.loads(text)
        # Surrogate pairs have been joined; remaining surrogates are not text and cannot be stored.
        if _SURROGATE_ESCAPE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"the body is not valid text: byte {error.start} is not {error.encoding}") from error
    except UnicodeEncodeError as error:
        raise HTTPException(400, "the body has a lone surrogate, which is not valid text") from error
    except RecursionError as error:
        raise HTTPException(400, "the body is nested too deeply") from error
    except ValueError as error:
        raise HTTPException(400, f"the body is not JSON{place_of(error)}") from error
    return value


def place_of(error: ValueError) -> str:
    """Returns where JSON is wrong, to be put behind a sentence."""
    return f": line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""


class JsonRequest(Request):
    async def json(self) -> object:
        if not hasattr(self, "_json"):
            self._json = parse_json(await self.body())
        return self._json


class JsonRoute(APIRoute):
    """Route class for every route with a JSON body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(JsonRequest(request.scope, request.receive))

        return handle
