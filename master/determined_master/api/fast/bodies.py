"""Bodies of the fast path: JSON of any content type, both spellings of the envelope's keys, decoded by msgspec."""

from typing import TypeVar

import msgspec
from starlette.requests import Request

from determined.errors import BadRequest

T = TypeVar("T")
V = TypeVar("V")


async def decode(request: Request, decoder: "msgspec.json.Decoder[T]") -> T:
    """Decodes the body. Raises BadRequest, which names the position of the first error."""
    body = await request.body()
    try:
        return decoder.decode(body or b"{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(f"the body cannot be read: {error}") from error


def either(snake: V | None, camel: V | None) -> V | None:
    """Returns the value of the spelling that was sent."""
    return camel if snake is None else snake
