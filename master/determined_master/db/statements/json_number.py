"""A number of a JSON object, by its name, on SQLite and PostgreSQL."""

from sqlalchemy import Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction


class json_number(GenericFunction[float]):
    """The number with this name in the column's object, 1 and 0 for true and false; NULL for everything else."""

    type = Float()
    inherit_cache = True


@compiles(json_number, "sqlite")
def _on_sqlite(element: json_number, compiler: SQLCompiler, **options: object) -> str:
    column, name = (compiler.process(each, **options) for each in element.clauses)
    kinds = "('integer', 'real', 'true', 'false')"
    return f"(SELECT value FROM json_each({column}) WHERE key = {name} AND type IN {kinds})"


@compiles(json_number, "postgresql")
def _on_postgresql(element: json_number, compiler: SQLCompiler, **options: object) -> str:
    column, name = (compiler.process(each, **options) for each in element.clauses)
    text = f"({column} ->> CAST({name} AS text))"
    return (
        f"CASE json_typeof({column} -> CAST({name} AS text)) WHEN 'number' THEN CAST({text} AS double precision)"
        f" WHEN 'boolean' THEN CAST(CAST(CAST({text} AS boolean) AS integer) AS double precision) END"
    )
