"""Bulk inserts store the same rows as an INSERT, on both databases."""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, insert, select, text
from sqlalchemy.exc import DBAPIError
from tests.support.new_database import new_database
from tests.support.postgresql import Server, fresh_database

from determined_master.db.engine import make_group_engine, report_failures, sqlite_url
from determined_master.db.models import LogRow, MetricRow
from determined_master.db.models.base import table_of, to_micros
from determined_master.db.statements.bulk_insert import copy_rows
from determined_master.db.statements.nul import keep_symbol
from determined_master.errors import StorageUnavailable
from determined_master.json_numbers import is_plain
from determined_master.metrics import ingest_repository
from determined_master.metrics.report import Report
from determined_master.settings.database_url import normalized

pytestmark = pytest.mark.budget(10, "inserts very many rows")

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
METRICS, LINES = table_of(MetricRow), table_of(LogRow)
REPORTS: list[dict[str, Any]] = [
    {"metrics": {"loss": 0.1, "a\0b": "x\0y"}, "batch_metrics": None, "signed_metric": None},
    {"metrics": {"é\t\n\\": [1, None, "\\N"]}, "batch_metrics": [{"a": 1}], "signed_metric": 1e300},
    {"metrics": {}, "batch_metrics": [], "signed_metric": float("inf")},
]
TEXTS = ["", "plain", "tab\tnew\nline\r", "\\N", "\\", "a\0b", "é 漢 😀", '"quoted"', "\\."]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        (tmp_path / "db").write_bytes(new_database())
        return sqlite_url(tmp_path / "db")
    server: Server = request.getfixturevalue("postgresql")
    return normalized(fresh_database(server.url))


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    created = make_group_engine(url)
    report_failures(created, lambda _text, _is_full: None, lambda _error: None)
    keep_symbol(created)
    yield created
    created.dispose()


def reports() -> list[dict[str, Any]]:
    common = {"trial_id": 1, "run_id": 1, "group": "training", "reported_at": NOW}
    return [common | {"steps": step} | each for step, each in enumerate(REPORTS)]


def drop_foreign_keys(engine: Engine) -> None:
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE metrics DROP CONSTRAINT fk_metrics_trial_id_trials")
        return
    with contextlib.closing(engine.raw_connection()) as raw:  # SQLite ignores the pragma inside a transaction
        raw.cursor().execute("PRAGMA foreign_keys=OFF")


@pytest.mark.parametrize("count", [1, 15, 16, 17, 256, 300])
def test_rows_are_stored_in_their_order(engine: Engine, count: int):
    rows = [{"task_id": "t", "timestamp": NOW, "log": f"line {each}", "is_error": False} for each in range(count)]
    with engine.connect() as connection, connection.begin():
        copy_rows(connection, LINES, rows)
        stored = connection.execute(select(LINES.c.log).order_by(LINES.c.id)).scalars().all()
    assert stored == [row["log"] for row in rows]


def test_rows_are_stored_as_by_an_insert(engine: Engine):
    drop_foreign_keys(engine)
    stored = []
    lines = [
        {"task_id": "t", "timestamp": NOW, "log": each, "level": "", "stdtype": "", "source": "", "is_error": True}
        for each in TEXTS
    ]
    with engine.connect() as connection:
        for in_bulk in (True, False):
            with connection.begin():
                for table, rows in ((METRICS, reports()), (LINES, lines)):
                    if in_bulk:
                        copy_rows(connection, table, rows)
                    else:
                        connection.execute(insert(table), rows)
                    columns = [each for each in table.columns if each.name != "id"]
                    stored.append(connection.execute(select(*columns).order_by(table.c.id)).all())
                    # The text of JSON columns is compared too, which tells null from NULL.
                    if table is METRICS:
                        raw = "SELECT CAST(metrics AS TEXT), CAST(batch_metrics AS TEXT) FROM metrics ORDER BY id"
                        stored.append(connection.execute(text(raw)).all())
                    connection.execute(table.delete())
    assert stored[:3] == stored[3:]
    assert [row.log for row in stored[2]] == [each.replace("\0", "\u2400") for each in TEXTS]
    assert stored[0][0].metrics == {"loss": 0.1, "a\u2400b": "x\u2400y"}
    assert stored[0][0].archived is False


def test_new_reports_are_stored_as_by_an_insert(engine: Engine):
    drop_foreign_keys(engine)
    columns = [each for each in METRICS.columns if each.name != "id"]
    raw = text("SELECT CAST(metrics AS TEXT), CAST(batch_metrics AS TEXT), archived FROM metrics ORDER BY id")
    stored = []
    with engine.connect() as connection:
        for is_new in (True, False):
            with connection.begin():
                if is_new:
                    new = [
                        Report(*(each[name] for name in Report.__struct_fields__[:7]), is_plain(each["metrics"]))
                        for each in reports()
                    ]
                    rows = [
                        ingest_repository.new_report(report, to_micros(report.reported_at), each["signed_metric"])
                        for report, each in zip(new, reports(), strict=True)
                    ]
                    ingest_repository.insert_many(connection, rows)
                else:
                    connection.execute(insert(METRICS), reports())
                stored.append(connection.execute(select(*columns).order_by(METRICS.c.id)).all())
                stored.append(connection.execute(raw).all())
                connection.execute(METRICS.delete())
    assert stored[:2] == stored[2:]


def test_inserting_no_rows_is_no_error(engine: Engine):
    with engine.begin() as connection:
        copy_rows(connection, METRICS, [])


def test_a_failing_insert_raises_a_database_error_and_stores_nothing(engine: Engine):
    with engine.connect() as connection, pytest.raises(DBAPIError), connection.begin():
        copy_rows(connection, METRICS, [{**each, "group": None} for each in reports()])
    with engine.begin() as connection:
        assert connection.execute(select(METRICS.c.id)).all() == []


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_lost_server_raises_storage_unavailable(url: str, engine: Engine):
    other = make_group_engine(url)

    def end(pid: int) -> None:
        with other.begin() as killer:
            killer.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        other.dispose()

    with engine.connect() as connection:
        end(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        with pytest.raises(StorageUnavailable):
            copy_rows(connection, METRICS, reports())
