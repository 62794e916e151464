"""Comparison of a column with a text, ignoring case, equal for all letters on SQLite and PostgreSQL."""

from sqlalchemy import Boolean
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

NAME = "contains_lowered"
EQUALS = "equals_lowered"


class contains_lowered(GenericFunction[bool]):
    """True if the column, in lower case, contains the text, which is in lower case. ``lower()`` of SQLite changes ASCII
    only, and its LIKE refuses long patterns."""

    type = Boolean()
    inherit_cache = True


class equals_lowered(GenericFunction[bool]):
    """True if the column, in lower case, is the text, which is in lower case."""

    type = Boolean()
    inherit_cache = True


@compiles(equals_lowered, "postgresql")
def _equals_on_postgresql(element: equals_lowered, compiler: SQLCompiler, **options: object) -> str:
    column, text = (compiler.process(each, **options) for each in element.clauses)
    return f"(lower({column}) = {text})"


@compiles(contains_lowered, "postgresql")
def _on_postgresql(element: contains_lowered, compiler: SQLCompiler, **options: object) -> str:
    column, text = (compiler.process(each, **options) for each in element.clauses)
    return f"(strpos(lower({column}), {text}) > 0)"


def register(connection: DBAPIConnection) -> None:
    """Adds the functions to a connection of SQLite."""
    connection.create_function(
        NAME, 2, lambda column, text: column is not None and text in column.lower(), deterministic=True
    )
    connection.create_function(
        EQUALS, 2, lambda column, text: column is not None and text == column.lower(), deterministic=True
    )
