"""Parses filters (Determined's nested JSON) and sort orders. Pure."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from determined.errors import BadRequest

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "notContains", "isEmpty", "notEmpty"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
WITHOUT_VALUE: tuple[Operator, ...] = ("isEmpty", "notEmpty")
MAX_SORT_COLUMNS = 10
_SORT_PART = re.compile(r"(.+?)=(asc|desc)(?:,|$)", re.S)
MAX_FIELDS = 100
DEEPEST = 10
MAX_LENGTH = 256 * 1024
MAX_VALUE_LENGTH = 1000

Scalar = str | float | bool


@dataclass(frozen=True)
class Field:
    column: str
    operator: Operator
    value: Scalar | None = None
    """None exactly where the operator takes none."""


@dataclass(frozen=True)
class Group:
    """True where all, or any, of its children are; without children always."""

    conjunction: Literal["and", "or"]
    children: tuple["Field | Group", ...]


@dataclass(frozen=True)
class Filter:
    group: Group
    show_archived: bool = False

    @property
    def columns(self) -> list[str]:
        return [field.column for field in fields(self.group)]


EVERYTHING = Filter(Group("and", ()))


def parse(text: str | None) -> Filter:
    """Raises BadRequest that names what is wrong, and where in the tree."""
    if text is None or not text.strip():
        return EVERYTHING
    if len(text) > MAX_LENGTH:
        raise BadRequest(f"the filter is longer than {MAX_LENGTH} characters")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the filter is no JSON: {error}") from None
    if not isinstance(told, dict):
        raise BadRequest("the filter has to be an object with filterGroup")
    show_archived = told.get("showArchived")
    if show_archived is not None and not isinstance(show_archived, bool):
        raise BadRequest("the filter's showArchived has to be true or false")
    if told.get("filterGroup") is None:
        return Filter(EVERYTHING.group, bool(show_archived))
    group = _group(told["filterGroup"], "filterGroup", 1)
    if sum(1 for _ in fields(group)) > MAX_FIELDS:
        raise BadRequest(f"the filter has more than {MAX_FIELDS} conditions")
    return Filter(group, bool(show_archived))


def fields(group: Group) -> Iterator[Field]:
    for child in group.children:
        if isinstance(child, Field):
            yield child
        else:
            yield from fields(child)


def _group(told: Any, at: str, depth: int) -> Group:
    if not isinstance(told, dict) or told.get("kind", "group") != "group":
        raise BadRequest(f'the filter: {at} has to be an object of kind "group"')
    if depth > DEEPEST:
        raise BadRequest(f"the filter is nested more than {DEEPEST} deep")
    conjunction = told.get("conjunction", "and")
    if conjunction not in ("and", "or"):
        raise BadRequest(f'the filter: {at}.conjunction is {_shown(conjunction)}; it may be "and" or "or"')
    children = told.get("children") or []
    if not isinstance(children, list):
        raise BadRequest(f"the filter: {at}.children has to be a list")
    return Group(conjunction, tuple(_child(c, f"{at}.children[{i}]", depth + 1) for i, c in enumerate(children)))


def _child(told: Any, at: str, depth: int) -> Field | Group:
    kind = told.get("kind") if isinstance(told, dict) else None
    if kind == "group":
        return _group(told, at, depth)
    if kind == "field":
        return _field(told, at)
    raise BadRequest(f'the filter: {at} has to be an object of kind "field" or "group"')


def _field(told: dict[str, Any], at: str) -> Field:
    column = told.get("columnName")
    if not isinstance(column, str) or not column:
        raise BadRequest(f"the filter: {at}.columnName is missing")
    operator = told.get("operator")
    if operator not in OPERATORS:
        raise BadRequest(f"the filter: {at}.operator is {_shown(operator)}; there are {' '.join(OPERATORS)}")
    known = cast(Operator, operator)
    if known in WITHOUT_VALUE:
        return Field(_sound(column, at), known)
    return Field(_sound(column, at), known, _value(told.get("value"), f"{at}.value"))


def _value(told: Any, at: str) -> Scalar:
    if isinstance(told, bool):
        return told
    if isinstance(told, int | float):
        try:
            figure = float(told)
        except OverflowError:
            raise BadRequest(f"the filter: {at} is too large a number") from None
        return "NaN" if math.isnan(figure) else figure
    if isinstance(told, str):
        if len(told) > MAX_VALUE_LENGTH:
            raise BadRequest(f"the filter: {at} is longer than {MAX_VALUE_LENGTH} characters")
        return _sound(told, at)
    raise BadRequest(f"the filter: {at} has to be a word, a number, true or false")


def _sound(text: str, at: str) -> str:
    """JSON may spell half a character, and a database may end a text at a zero."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadRequest(f"the filter: {at} has a character that no text can have")
    return text


def _shown(value: Any) -> str:
    return json.dumps(value)[:60]


@dataclass(frozen=True)
class SortKey:
    """One column of a sort order."""

    column: str
    descending: bool


def parse_sort(text: str | None) -> list[SortKey]:
    """Parses ``column=asc,column=desc``. Raises BadRequest.

    Column names may contain commas and equals signs: a part ends at ``=asc`` or ``=desc``.
    """
    if not text:
        return []
    found: list[SortKey] = []
    place = 0
    while place < len(text):
        match = _SORT_PART.match(text, place)
        if match is None:
            raise BadRequest(f"cannot sort by {text[place : place + 100]!r}: column=asc or column=desc is needed")
        if match[1] not in (by.column for by in found):
            found.append(SortKey(match[1], match[2] == "desc"))
        place = match.end()
    if len(found) > MAX_SORT_COLUMNS:
        raise BadRequest(f"lists can be sorted by {MAX_SORT_COLUMNS} columns at most")
    return found
