"""NUL in texts: PostgreSQL stores none, so both databases keep its symbol (U+2400) instead."""

import re
from typing import Any

import msgspec
from sqlalchemy import Engine, event
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import ExecutionContext

NUL, SYMBOL = "\0", "\u2400"
IS_CLEAN = "values_have_no_nul"
"""Execution option of a statement whose values were looked at already."""
_Row = dict[str, Any] | tuple[Any, ...]
_Bound = _Row | list[_Row]
_ESCAPE = re.compile(r"\\(?:u0000|.)")


def keep_symbol(engine: Engine) -> None:
    """Makes ``engine`` bind the symbol wherever a text has a NUL. JSON columns: see ``without_nul``."""

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def _replace(
        _connection: Connection,
        _cursor: object,
        statement: str,
        values: _Bound,
        context: ExecutionContext | None,
        _many: bool,
    ) -> tuple[str, _Bound]:
        if context is not None and context.execution_options.get(IS_CLEAN):
            return statement, values
        if isinstance(values, list):  # "many" is also said of one statement with many rows
            return statement, [_clean(each) for each in values]
        return statement, _clean(values)


def without_nul(json: str) -> str:
    r"""Returns JSON in which each escaped NUL is its symbol.

    >>> without_nul('"a\\u0000b", "\\\\u0000"')
    '"a␀b", "\\\\u0000"'
    """
    return _ESCAPE.sub(lambda found: SYMBOL if found[0] == r"\u0000" else found[0], json) if r"\u0000" in json else json


def to_json(value: object) -> str:
    """Returns the text of a JSON column. msgspec is several times faster than the standard library."""
    return without_nul(msgspec.json.encode(value).decode())


def _clean(row: _Row) -> _Row:
    if isinstance(row, dict):
        has_nul = any(isinstance(value, str) and NUL in value for value in row.values())
        return {name: _cleaned(value) for name, value in row.items()} if has_nul else row
    return tuple(map(_cleaned, row))


def _cleaned(value: object) -> object:
    return value.replace(NUL, SYMBOL) if isinstance(value, str) and NUL in value else value
