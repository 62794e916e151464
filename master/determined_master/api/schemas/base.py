"""Base class of wire models: writes every field in camelCase, reads both spellings, ignores unknown keys."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticKnownError
from starlette.responses import Response

from determined_master.db.models.base import EARLIEST, LATEST, MAX_INT64
from determined_master.json_numbers import outward


class Wire(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="ignore",
        protected_namespaces=(),
    )


def rfc3339(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def utc(value: datetime | None) -> datetime | None:
    """A time in a request; without a zone it is UTC."""
    return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


def _clamped(value: datetime) -> datetime:
    try:
        return min(LATEST, max(EARLIEST, (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)))
    except OverflowError:
        return EARLIEST if value.year < EARLIEST.year else LATEST


def _plainly_spelled(value: object) -> object:
    """Raises for a spelling that pydantic reads as an integer too, such as ``+7``, ``007``, ``7.0`` and ``0_7``: an id
    that is checked in one place and read in another has one spelling."""
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        raise PydanticKnownError("int_parsing")
    return value


_PLAIN = re.compile("0|-?[1-9][0-9]*")
RowId = Annotated[int, BeforeValidator(_plainly_spelled), Field(gt=0, le=MAX_INT64)]
"""The id of a row."""
ProjectId = Annotated[int, Field(ge=-1, le=MAX_INT64)]
"""The id of a project; 0 and -1 mean any."""
BoundedInt = Annotated[int, Field(ge=-MAX_INT64, le=MAX_INT64)]
"""A number that fits into 64 bits."""
Name = Annotated[str, Field(max_length=255)]
"""A name, an id or another short text."""
LongText = Annotated[str, Field(max_length=1_000_000)]
"""A text that people write, such as notes."""
Moment = Annotated[datetime, AfterValidator(_clamped)]
"""A time in a query, moved into the bounds of stored times."""
Time = Annotated[datetime, PlainSerializer(rfc3339, return_type=str)]
Int64 = Annotated[int, BeforeValidator(int), PlainSerializer(str, return_type=str)]
"""A string on the wire; numbers are accepted too."""
Json = Annotated[dict[str, Any], PlainSerializer(outward, return_type=dict[str, Any])]
Number = Annotated[float, PlainSerializer(outward, return_type=float | str)]
"""A float; a string on the wire where it is not finite."""


WIRE_VERSION = "0.38.1"
"""Version of the older product whose API this is; its clients compare it with their own."""


class Empty(Wire):
    """An empty object."""


def answered(model: Wire) -> Response:
    """Response for large answers: serialized once, where FastAPI would validate and copy each part."""
    return Response(model.model_dump_json(), media_type="application/json")


class Pagination(Wire):
    offset: int = 0
    limit: int = 0
    start_index: int = 0
    end_index: int = 0
    total: int = 0
