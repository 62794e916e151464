"""A statement of SQLAlchemy in the terms of SQLite's driver: its text, its values, and how to read its rows."""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, Select
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

from determined_master.db.kept_connection import driver_of
from determined_master.db.kept_sessions import raise_as_sqlalchemy
from determined_master.db.nul import IS_CLEAN, NUL, SYMBOL
from determined_master.db.row_objects import RowObjects, row_objects
from determined_master.db.session import ReadSession
from determined_master.db.sqlite_connection import Answer, SqliteConnection

Convert = Callable[[Any], Any] | None
_LIST = re.compile(r"__\[POSTCOMPILE_(\w+)\]")
MAX_LENGTHS = 64
"""So many texts of a statement with lists are kept."""
_EMPTY_LIST = "SELECT 1 WHERE 1 != 1"


class _Value(NamedTuple):
    """A value of a statement: one that the caller names, or a constant."""

    name: str
    is_given: bool
    constant: Any
    is_list: bool
    convert: Convert


class _Object(NamedTuple):
    """The columns ``start`` to ``end`` of a row are those of an object."""

    maker: RowObjects
    start: int
    end: int


class CompiledStatement:
    """Each row has the elements of the statement; where that is a mapped class, an object of the session."""

    def __init__(self, statement: Any, dialect: Dialect, names: Sequence[str] | None = None) -> None:  # noqa: ANN401
        """``statement``: of any kind. ``names``: the columns of an insertion."""
        columns: list[Any] = []
        elements: list[_Object | int] = []
        if isinstance(statement, Select):
            for element in statement.column_descriptions:
                if isinstance(element["expr"], type):
                    maker = row_objects(element["expr"])
                    elements.append(_Object(maker, len(columns), len(columns) + len(maker.loaded)))
                    columns += [maker.table.c[name] for name in maker.loaded]
                else:
                    elements.append(len(columns))
                    columns.append(element["expr"])
            statement = statement.with_only_columns(*columns, maintain_column_froms=True)
        elif isinstance(statement, ReturningInsert | ReturningUpdate):
            columns = list(statement.exported_columns)
        converts = [each.type.dialect_impl(dialect).result_processor(dialect, None) for each in columns]
        self._converts = [(place, convert) for place, convert in enumerate(converts) if convert is not None]
        self._elements = elements if any(isinstance(each, _Object) for each in elements) else None
        compiled = statement.compile(dialect=dialect, column_keys=names)
        assert isinstance(compiled, SQLCompiler)
        self._sql = compiled.string
        self._values = tuple(_value_of(name, compiled.binds[name], dialect) for name in compiled.positiontup or ())
        self._lists = {each.name: each for each in self._values if each.is_list}
        self._sql_of_lengths: dict[tuple[int, ...], str] = {}

    async def execute(self, session: ReadSession, driver: SqliteConnection, values: Mapping[str, Any]) -> Answer:
        sql = self._sql_of(values) if self._lists else self._sql
        try:
            return await driver.execute(sql, self._parameters(values))
        except sqlite3.Error as error:
            await raise_as_sqlalchemy(await session.connection(), driver, sql, error)

    async def execute_many(
        self, session: ReadSession, driver: SqliteConnection, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """``rows``: values of each execution. The statement has no lists."""
        try:
            await driver.execute(self._sql, [self._parameters(row) for row in rows], is_many=True)
        except sqlite3.Error as error:
            await raise_as_sqlalchemy(await session.connection(), driver, self._sql, error)

    def rows_in(self, connection: Connection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        sql = self._sql_of(values) if self._lists else self._sql
        parameters = tuple(self._parameters(values))
        driver = driver_of(connection)
        if driver is not None:
            return [self._converted(row) for row in driver.execute(sql, parameters).fetchall()]
        found = connection.exec_driver_sql(sql, parameters, execution_options={IS_CLEAN: True})
        return [self._converted(tuple(row)) for row in found]

    def execute_in(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        parameters = [tuple(self._parameters(row)) for row in rows]
        driver = driver_of(connection)
        if driver is not None:
            driver.executemany(self._sql, parameters)
        else:
            connection.exec_driver_sql(self._sql, parameters, execution_options={IS_CLEAN: True})

    def row(self, session: ReadSession, found: tuple[Any, ...]) -> tuple[Any, ...]:
        found = self._converted(found)
        if self._elements is None:
            return found
        return tuple(
            [
                found[each] if isinstance(each, int) else each.maker.of(session, found[each.start : each.end])
                for each in self._elements
            ]
        )

    def _converted(self, found: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self._converts:
            return found
        values = list(found)
        for place, convert in self._converts:
            values[place] = convert(values[place])
        return tuple(values)

    def _parameters(self, values: Mapping[str, Any]) -> list[Any]:
        parameters: list[Any] = []
        for name, is_given, constant, is_list, convert in self._values:
            value = values[name] if is_given else constant
            if is_list:
                parameters += [_bound(each, convert) for each in value]
            else:
                parameters.append(_bound(value, convert))
        return parameters

    def _sql_of(self, values: Mapping[str, Any]) -> str:
        lists = {name: values[name] if each.is_given else each.constant for name, each in self._lists.items()}
        lengths = tuple(map(len, lists.values()))
        sql = self._sql_of_lengths.get(lengths)
        if sql is None:
            sql = _LIST.sub(lambda found: ", ".join("?" * len(lists[found[1]])) or _EMPTY_LIST, self._sql)
            if len(self._sql_of_lengths) < MAX_LENGTHS:
                self._sql_of_lengths[lengths] = sql
        return sql


def _value_of(name: str, parameter: BindParameter[Any], dialect: Dialect) -> _Value:
    convert = parameter.type.dialect_impl(dialect).bind_processor(dialect)
    return _Value(name, parameter.required, parameter.value, parameter.expanding, convert)


def _bound(value: Any, convert: Convert) -> Any:  # noqa: ANN401  # of any column
    if convert is not None:
        value = convert(value)
    return value.replace(NUL, SYMBOL) if isinstance(value, str) and NUL in value else value
