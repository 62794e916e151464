"""Search for a text in a column, ignoring case, equal for all letters on SQLite and PostgreSQL."""

from sqlalchemy import Boolean
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

NAME = "contains_lowered"


class contains_lowered(GenericFunction[bool]):
    """True if the column, in lower case, contains the text, which is in lower case. ``lower()`` of SQLite changes ASCII
    only, and its LIKE refuses long patterns."""

    type = Boolean()
    inherit_cache = True


@compiles(contains_lowered, "postgresql")
def _on_postgresql(element: contains_lowered, compiler: SQLCompiler, **options: object) -> str:
    column, text = (compiler.process(each, **options) for each in element.clauses)
    return f"(strpos(lower({column}), {text}) > 0)"


def register(connection: DBAPIConnection) -> None:
    """Adds the function to a connection of SQLite."""
    connection.create_function(NAME, 2, lambda column, text: text in column.lower(), deterministic=True)
