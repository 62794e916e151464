"""Writes and changes rows of a running master's database, bypassing its API."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.postgresql import VARIABLE


def write_rows(data: Path, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Executes ``statement`` for each row, in one transaction. Call it outside the master's event loop, which may hold
    the lock."""
    if VARIABLE in os.environ:
        pytest.skip("a test of the SQLite file")
    with closing(sqlite3.connect(data / "master.sqlite", timeout=30)) as connection, connection:
        assert connection.executemany(statement, rows).rowcount >= len(rows)
