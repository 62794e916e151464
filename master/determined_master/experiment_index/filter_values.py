"""Values in filter conditions: numbers, words, booleans and times; others are refused. Pure."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from determined.errors import BadRequest
from determined_master.experiment_index.filters import Field

_DAY = 10  # length of 2026-01-31


def figure_of(field: Field, *, needed: bool) -> float | None:
    """Parses a number. Returns None for other words, or raises BadRequest if it is ``needed``."""
    try:
        figure = float(field.value or 0.0)
    except ValueError:
        figure = math.nan
    if field.value in (None, "") or math.isnan(figure):
        if needed:
            raise BadRequest(f"{field.column} {field.operator} needs a number, not {field.value!r}")
        return None
    return figure


def word_of(field: Field) -> str:
    if isinstance(field.value, bool):
        return "true" if field.value else "false"
    if isinstance(field.value, float):
        return str(int(field.value)) if field.value.is_integer() else str(field.value)
    return str(field.value or "")


def truth_of(field: Field) -> bool:
    word = word_of(field).lower()
    if field.operator not in ("=", "!=") or word not in ("true", "false"):
        raise BadRequest(f"{field.column} can be = or != true or false, not {field.operator} {field.value!r}")
    return word == "true"


@dataclass(frozen=True)
class Dates:
    """The first and the last moment that a text means."""

    first: datetime
    last: datetime

    @classmethod
    def of(cls, field: Field) -> "Dates":
        words = word_of(field).strip()
        if field.operator in ("contains", "notContains"):
            raise BadRequest(f"{field.column} is a time; {field.operator} needs text")
        try:
            first = datetime.fromisoformat(words)
            first = (first if first.tzinfo else first.replace(tzinfo=UTC)).astimezone(UTC)
            whole_day = timedelta(days=1) - timedelta(microseconds=1)
            return cls(first, first + whole_day if len(words) == _DAY else first)
        except (ValueError, OverflowError):
            raise BadRequest(
                f"{field.column} {field.operator} needs a time such as 2026-01-31T12:00:00Z, not {words[:60]!r}"
            ) from None
