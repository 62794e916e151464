"""Base class of wire models: writes every field in camelCase, reads both spellings, ignores unknown keys."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel
from starlette.responses import Response

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
    """A time that was asked for; without a zone it is taken as UTC, as all times here are."""
    return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


Time = Annotated[datetime, PlainSerializer(rfc3339, return_type=str)]
Int64 = Annotated[int, BeforeValidator(int), PlainSerializer(str, return_type=str)]
"""A string on the wire; either is taken."""
Json = Annotated[dict[str, Any], PlainSerializer(outward, return_type=dict[str, Any])]
Number = Annotated[float, PlainSerializer(outward, return_type=float | str)]
"""A float; a string on the wire where it is not finite."""


class Empty(Wire):
    """``{}``."""


def answered(model: Wire) -> Response:
    """For what is large: written once, where FastAPI would check each part again and copy it."""
    return Response(model.model_dump_json(), media_type="application/json")


class Pagination(Wire):
    offset: int = 0
    limit: int = 0
    start_index: int = 0
    end_index: int = 0
    total: int = 0
