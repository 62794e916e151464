"""Parses filters (Determined's nested JSON) and sort orders. Pure."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from determined.errors import BadRequest

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "notContains", "isEmpty", "notEmpty"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
_OPERATORS: dict[str, Operator] = {operator: operator for operator in OPERATORS}
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
    """None if and only if the operator takes no operand."""


@dataclass(frozen=True)
class Group:
    """A group is true if all, or any, of its children are; an empty group is true."""

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
    """Parses a filter. Raises BadRequest, which names the error and its position in the tree."""
    if text is None or not text.strip():
        return EVERYTHING
    if len(text) > MAX_LENGTH:
        raise BadRequest(f"the filter is longer than {MAX_LENGTH} characters")
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequest(f"the filter is not JSON: line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):
        raise BadRequest(
            "the filter is not JSON of this kind: it is nested too deeply, or has too long a number"
        ) from None
    if not isinstance(given, dict):
        raise BadRequest("the filter must be an object with filterGroup")
    show_archived = given.get("showArchived")
    if show_archived is not None and not isinstance(show_archived, bool):
        raise BadRequest("the filter's showArchived must be true or false")
    if given.get("filterGroup") is None:
        return Filter(EVERYTHING.group, bool(show_archived))
    group = _group(given["filterGroup"], "filterGroup", 1)
    if sum(1 for _ in fields(group)) > MAX_FIELDS:
        raise BadRequest(f"the filter has more than {MAX_FIELDS} conditions")
    return Filter(group, bool(show_archived))


def fields(group: Group) -> Iterator[Field]:
    for child in group.children:
        if isinstance(child, Field):
            yield child
        else:
            yield from fields(child)


def _group(given: object, at: str, depth: int) -> Group:
    if not isinstance(given, dict) or given.get("kind", "group") != "group":
        raise BadRequest(f'the filter: {at} must be an object of kind "group"')
    if depth > DEEPEST:
        raise BadRequest(f"the filter is nested more than {DEEPEST} levels deep")
    conjunction = given.get("conjunction", "and")
    if conjunction not in ("and", "or"):
        raise BadRequest(f'the filter: {at}.conjunction is {_shown(conjunction)}; use "and" or "or"')
    children = given.get("children") or []
    if not isinstance(children, list):
        raise BadRequest(f"the filter: {at}.children must be a list")
    return Group(conjunction, tuple(_child(c, f"{at}.children[{i}]", depth + 1) for i, c in enumerate(children)))


def _child(given: object, at: str, depth: int) -> Field | Group:
    if isinstance(given, dict) and given.get("kind") == "group":
        return _group(given, at, depth)
    if isinstance(given, dict) and given.get("kind") == "field":
        return _field(given, at)
    raise BadRequest(f'the filter: {at} must be an object of kind "field" or "group"')


def _field(given: dict[str, Any], at: str) -> Field:
    column = given.get("columnName")
    if not isinstance(column, str) or not column:
        raise BadRequest(f"the filter: {at}.columnName is missing")
    name = given.get("operator")
    operator = _OPERATORS.get(name) if isinstance(name, str) else None
    if operator is None:
        raise BadRequest(f"the filter: {at}.operator is {_shown(name)}; there are {' '.join(OPERATORS)}")
    if operator in WITHOUT_VALUE:
        return Field(_sound(column, at), operator)
    return Field(_sound(column, at), operator, _value(given.get("value"), f"{at}.value"))


def _value(given: object, at: str) -> Scalar:
    if isinstance(given, bool):
        return given
    if isinstance(given, int | float):
        try:
            figure = float(given)
        except OverflowError:
            raise BadRequest(f"the filter: {at} is out of range") from None
        return "NaN" if math.isnan(figure) else figure
    if isinstance(given, str):
        if len(given) > MAX_VALUE_LENGTH:
            raise BadRequest(f"the filter: {at} is longer than {MAX_VALUE_LENGTH} characters")
        return _sound(given, at)
    raise BadRequest(f"the filter: {at} must be a string, a number, true or false")


def _sound(text: str, at: str) -> str:
    """Raises BadRequest for lone surrogates and NULs, which databases cannot store."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadRequest(f"the filter: {at} has an invalid character")
    return text


def _shown(value: object) -> str:
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
    keys: list[SortKey] = []
    place = 0
    while place < len(text):
        match = _SORT_PART.match(text, place)
        if match is None:
            raise BadRequest(f"cannot sort by {text[place : place + 100]!r}: use column=asc or column=desc")
        if match[1] not in (by.column for by in keys):
            keys.append(SortKey(match[1], match[2] == "desc"))
        place = match.end()
    if len(keys) > MAX_SORT_COLUMNS:
        raise BadRequest(f"cannot sort by more than {MAX_SORT_COLUMNS} columns")
    return keys
