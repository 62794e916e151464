"""The list flags ``--columns``, ``--sort`` and ``--filter``: select the columns, the order and the rows of a list."""

import math
import operator
import re
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from determined.errors import BadRequest
from determined_cli.output.render import Column

_CONDITION = re.compile(r"([A-Za-z_][\w ]*?)\s*(!=|<=|>=|=|<|>|~)\s*(.*)\Z", re.DOTALL)
_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Rows = Sequence[Mapping[str, Any]]


class Condition(NamedTuple):
    """A condition of ``--filter``; ``key`` is that of the column."""

    key: str
    sign: str
    value: str


class Sort(NamedTuple):
    """The order of ``--sort``; ``key`` is that of the column."""

    key: str
    is_descending: bool


def select(args: Namespace, columns: Sequence[Column], rows: Rows) -> tuple[list[Column], list[Mapping[str, Any]]]:
    """Returns the chosen columns and the rows that match every filter, sorted. Raises BadRequest for a wrong flag."""
    conditions = [_condition(text, columns) for text in args.filter]
    selected = [row for row in rows if all(matches(row) for matches in conditions)]
    sort = parse_sort(args.sort, columns)
    if sort is not None:
        known = [row for row in selected if not _is_missing(row.get(sort.key))]
        known.sort(key=lambda row: _sortable(row[sort.key]), reverse=sort.is_descending)
        selected = [*known, *(row for row in selected if _is_missing(row.get(sort.key)))]
    return chosen_columns(args, columns), selected


def chosen_columns(args: Namespace, columns: Sequence[Column]) -> list[Column]:
    """Returns the columns that ``--columns`` names, in its order; all columns without the flag."""
    if not args.columns:
        return list(columns)
    titles = {key: (title, key) for title, key in columns}
    return [titles[_key(name, columns)] for name in args.columns.split(",")]


def _key(name: str, columns: Sequence[Column]) -> str:
    """Returns the key of a column, which may be named by its key or by its header."""
    word = name.strip().lower()
    for title, key in columns:
        if word in (key.lower(), title.lower()):
            return key
    raise BadRequest(f'no column "{name.strip()}"; valid: {", ".join(key for _, key in columns)}')


def parse_sort(text: str | None, columns: Sequence[Column]) -> Sort | None:
    """Parses ``COLUMN:asc`` or ``COLUMN:desc``; None without the flag. Raises BadRequest."""
    if not text:
        return None
    column, _, order = text.partition(":")
    if order not in ("", "asc", "desc"):
        raise BadRequest(f'--sort "{text}": use COLUMN, COLUMN:asc or COLUMN:desc')
    return Sort(_key(column, columns), order == "desc")


def parse_condition(text: str, columns: Sequence[Column]) -> Condition:
    """Parses ``COLUMN=VALUE`` or another operator. Raises BadRequest."""
    match = _CONDITION.match(text)
    if match is None:
        raise BadRequest(f'--filter "{text}": use COLUMN=VALUE; the operators are = != < <= > >= and ~ (contains)')
    return Condition(_key(match[1], columns), match[2], match[3].strip())


def _condition(text: str, columns: Sequence[Column]) -> Callable[[Mapping[str, Any]], bool]:
    key, sign, wanted = parse_condition(text, columns)

    def matches(row: Mapping[str, Any]) -> bool:
        value = row.get(key)
        if sign == "~":
            return wanted.lower() in _text(value).lower()
        if sign in ("=", "!="):
            return _is_equal(value, wanted) == (sign == "=")
        if value in (None, ""):
            return False
        left, right = _sortable(value), _sortable(wanted)
        return left[0] == right[0] and _ORDERED[sign](left, right)

    return matches


def _is_equal(value: object, wanted: str) -> bool:
    if isinstance(value, list):
        return wanted in map(str, value)
    text = _text(value)
    return text.lower() == wanted.lower() or (
        text != "" and _sortable(text)[0] == 0 == _sortable(wanted)[0] and _sortable(text) == _sortable(wanted)
    )


def _text(value: object) -> str:
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _sortable(value: object) -> tuple[int, float, str]:
    """Returns a key that sorts numbers by value and before texts; a percentage counts as a number."""
    text = _text(value)
    try:
        return 0, float(text.removesuffix("%")), ""
    except ValueError:
        return 1, 0.0, text


def _is_missing(value: object) -> bool:
    """Returns True for what comes last in every order: nothing, and NaN, which compares with no number."""
    return value in (None, "") or (isinstance(value, float) and math.isnan(value))
