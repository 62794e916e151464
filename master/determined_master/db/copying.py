"""Copies all rows of a database into an empty one: SQLite to PostgreSQL, or back for a backup."""

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, Table, func, select, text
from sqlalchemy.exc import DBAPIError

from determined_master.db.engine import make_copy_engine
from determined_master.db.migrate import bring_up, newest_revision, revision_of
from determined_master.db.models.base import Base
from determined_master.db.sqlite import file as sqlite_file
from determined_master.db.statements.bulk_insert import copy_rows
from determined_master.db.statements.nul import keep_symbol
from determined_master.settings.database_url import is_sqlite

BATCH_ROWS = 2000


class CopyFailed(Exception):
    """The rows cannot be copied; the target is as it was. The text is one line."""


def copy_database(source: str, target: str, report: Callable[[str, int], None] = lambda _table, _rows: None) -> int:
    """Copies every row, in one transaction, and counts each table on both sides before the commit.

    Parameters:
        source: URL of a database at the newest revision. Its rows are read in one frozen view.
        target: URL of an empty database; its tables are made.
        report: called with the name of each table and the number of its rows.

    Returns:
        The number of rows.

    Raises:
        CopyFailed: the source is of another revision, the target has rows, or a database is not there.
        MigrationFailed: the tables of the target cannot be made.

    Example:
        >>> copy_database("sqlite:////srv/detent/master.sqlite", "postgresql://det@db/lab")  # doctest: +SKIP
        48211
    """
    _check_source(source)
    bring_up(target)
    here, there = make_copy_engine(source), make_copy_engine(target)
    keep_symbol(there)
    try:
        with here.connect() as reading, there.begin() as writing:
            return sum(_copy_table(reading, writing, table, report) for table in Base.metadata.sorted_tables)
    except DBAPIError as error:
        raise CopyFailed(f"the rows were not copied: {' '.join(str(error.orig).split())}") from error
    finally:
        here.dispose()
        there.dispose()


def _check_source(source: str) -> None:
    file = sqlite_file.file_of(source)
    if file is not None and not file.exists():
        raise CopyFailed(f"{file} does not exist")
    engine = make_copy_engine(source)
    try:
        found = revision_of(engine)
    except DBAPIError as error:
        raise CopyFailed(f"cannot read {_name(source, file)}: {' '.join(str(error.orig).split())}") from error
    finally:
        engine.dispose()
    if found != newest_revision():
        raise CopyFailed(
            f"{_name(source, file)} is at revision {found or 'none'} and this version copies {newest_revision()}: "
            "run det-master migrate first"
        )


def _name(url: str, file: Path | None) -> str:
    return str(file) if file is not None else ("the SQLite database" if is_sqlite(url) else "the database")


def _copy_table(reading: Connection, writing: Connection, table: Table, report: Callable[[str, int], None]) -> int:
    if writing.execute(select(table).limit(1)).first() is not None:
        raise CopyFailed(f"the target has rows already (table {table.name}); name an empty database")
    query = select(table).order_by(*table.primary_key.columns)
    rows = reading.execution_options(yield_per=BATCH_ROWS).execute(query).mappings()
    for some in rows.partitions():
        copy_rows(writing, table, [dict(row) for row in some])
    counts = [one.execute(select(func.count()).select_from(table)).scalar_one() for one in (reading, writing)]
    if counts[0] != counts[1]:
        raise CopyFailed(f"table {table.name} has {counts[0]} rows, and {counts[1]} were copied")
    _continue_numbers(writing, table)
    report(table.name, counts[1])
    return int(counts[1])


def _continue_numbers(writing: Connection, table: Table) -> None:
    """Makes the sequence of PostgreSQL go on behind the largest id."""
    if writing.dialect.name != "postgresql" or "id" not in table.c or table.c.id.type.python_type is not int:
        return
    sequence = writing.execute(text("SELECT pg_get_serial_sequence(:table, 'id')"), {"table": table.name}).scalar_one()
    largest = writing.execute(select(func.max(table.c.id))).scalar_one()
    if sequence is not None and largest is not None:
        writing.execute(text("SELECT setval(:sequence, :largest)"), {"sequence": sequence, "largest": largest})
