"""Inserts many rows at once, by a statement and conversions that are made once: SQLAlchemy's own cost more for each row
than the database. On PostgreSQL by COPY, which is several times faster than INSERT there."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from sqlalchemy import JSON, Connection, Engine, Table, event
from sqlalchemy.engine import Dialect
from sqlalchemy.engine.interfaces import DBAPICursor, ExecutionContext

from determined_master.db.statements.nul import IS_CLEAN, NUL, SYMBOL, to_json

SIZES = (256, 16)
"""Numbers of rows of a statement of SQLite. The driver gives up Python's lock for each statement, and where another
thread wants it, waits for it longer than ten rows take."""
_ROWS = "rows_to_copy"
_Convert = Callable[[Any], Any]


def copy_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows that all have the same columns; columns that are missing get their default.

    Parameters:
        connection: of an engine for which ``allow_copy`` was called, or of SQLite.
        rows: column → value, as for ``insert(table)``.
    """
    if not rows:
        return
    names = tuple(rows[0])
    statement, columns, defaults = _plan(table, names, connection.dialect)
    _insert(connection, statement, list(_converted(rows, columns, defaults)))


def copy_values(connection: Connection, table: Table, names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
    """Like ``copy_rows`` for rows whose values are what the database stores: times in microseconds, JSON as text
    without NUL. ``names``: of the columns, in the order of the values."""
    if not rows:
        return
    statement, _, defaults = _plan(table, names, connection.dialect)
    _insert(connection, statement, [row + defaults for row in rows] if defaults else list(rows))


def allow_copy(engine: Engine) -> None:
    """Makes ``engine`` send the rows of ``copy_rows`` by COPY. Its errors are converted as those of any statement."""

    @event.listens_for(engine, "do_execute")
    def _copy(cursor: DBAPICursor, statement: str, _values: object, context: ExecutionContext) -> bool:
        rows = context.execution_options.get(_ROWS)
        if rows is None:
            return False
        with cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
        return True


def _insert(connection: Connection, statement: str, values: list[tuple[Any, ...]]) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(statement, execution_options={_ROWS: values})
        return
    for text, parameters in _parts(statement, values):
        connection.exec_driver_sql(text, parameters, execution_options={IS_CLEAN: True})


def _parts(
    statement: str, rows: list[tuple[Any, ...]]
) -> Iterator[tuple[str, tuple[Any, ...] | list[tuple[Any, ...]]]]:
    """Yields statements of SQLite that insert ``rows``, each with the values of several rows or a list of rows."""
    at = 0
    for size in SIZES:
        while len(rows) - at >= size:
            yield _several(statement, size), tuple(chain.from_iterable(rows[at : at + size]))
            at += size
    if at < len(rows):
        yield statement, rows[at:]


@lru_cache
def _several(statement: str, count: int) -> str:
    """Returns the statement for ``count`` rows."""
    row = statement[statement.rindex("(") :]
    return statement + f", {row}" * (count - 1)


@cache
def _plan(
    table: Table, names: tuple[str, ...], dialect: Dialect
) -> tuple[str, tuple[tuple[str, _Convert | None], ...], tuple[Any, ...]]:
    """Returns the statement, the columns with what converts their values, and the values of all other columns."""
    added = [each for each in table.columns if each.name not in names and each.default and each.default.is_scalar]
    quoted = dialect.identifier_preparer
    columns = [quoted.quote(name) for name in (*names, *(each.name for each in added))]
    place = f"{quoted.format_table(table)} ({', '.join(columns)})"
    marks = ", ".join("?" * len(columns))
    statement = f"COPY {place} FROM STDIN" if dialect.name == "postgresql" else f"INSERT INTO {place} VALUES ({marks})"
    defaults = ((_converter(table, each.name, dialect), each.default.arg) for each in added)  # type: ignore[union-attr]
    return (
        statement,
        tuple((name, _converter(table, name, dialect)) for name in names),
        tuple(value if convert is None else convert(value) for convert, value in defaults),
    )


def _converter(table: Table, name: str, dialect: Dialect) -> _Convert | None:
    kind = table.columns[name].type
    if isinstance(kind, JSON):
        none = None if kind.none_as_null else to_json(None)
        return lambda value: none if value is None else to_json(value)
    convert = kind.dialect_impl(dialect).bind_processor(dialect)
    if kind.python_type is str:
        return lambda text: _without_nul(convert(text) if convert else text)
    return convert


def _converted(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[tuple[str, _Convert | None]], defaults: tuple[Any, ...]
) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        yield (*[row[name] if convert is None else convert(row[name]) for name, convert in columns], *defaults)


def _without_nul(value: Any) -> Any:  # noqa: ANN401  # a text, None, or what its column takes
    return value.replace(NUL, SYMBOL) if isinstance(value, str) and NUL in value else value
