"""Masters on PostgreSQL: rows stored per second against COPY of the same rows, and latency against a master on SQLite."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection
from tests.support.postgresql import Server

from bench.fake_agent import running_trials
from bench.figure import Figure, paired
from bench.servers import Running, master
from determined.client.session import Session
from determined_master.db.engine import make_group_engine
from determined_master.db.models.base import to_micros
from determined_master.logs import repository as log_repository
from determined_master.logs.line import LogLine
from determined_master.metrics import ingest_repository
from determined_master.metrics.report import Report

COUNT = 20_000
"""Rows of one measurement."""
GROUP = 512
"""Rows of one transaction: the maximum of the group writer."""
REQUESTS = 200


def figures(rounds: int = 7) -> list[Figure]:
    server = Server()  # with PostgreSQL's default fsync and synchronous_commit
    server.start()
    try:
        with tempfile.TemporaryDirectory() as name:
            return _figures(server, Path(name), rounds)
    finally:
        server.close()


def _figures(server: Server, folder: Path, rounds: int) -> list[Figure]:
    url = server.create("bench")
    with (
        master(folder / "sqlite") as lite,
        master(folder / "postgresql", database_url=url) as running,
        running.session() as admin,
        lite.session() as lite_admin,
        running_trials(running.url, running.data, admin, 4) as tokens,
        running_trials(lite.url, lite.data, lite_admin, 4),
    ):
        trials = list(tokens)
        task = str(admin.get(f"/api/v1/trials/{trials[0]}")["trial"]["taskId"])
        stored, stored_words = paired(_Reports(url, trials).stored, lambda: _copied(url, "metrics"), rounds)
        logged, logged_words = paired(lambda: _logged(url, task), lambda: _copied(url, "task_logs"), rounds)
        p95, p95_words = paired(lambda: _p95(running, admin), lambda: _p95(lite, lite_admin), rounds)
    return [
        Figure("metric reports/s on PostgreSQL, over COPY", 0.5, stored, at_least=True, note=f"{stored_words} rows/s"),
        Figure("log lines/s on PostgreSQL, over COPY", 0.5, logged, at_least=True, note=f"{logged_words} rows/s"),
        Figure("API p95 on PostgreSQL, over SQLite", 2, p95, note=f"{p95_words} s"),
    ]


class _Reports:
    """Each measurement stores new steps of the same trials."""

    def __init__(self, url: str, trials: Sequence[int]) -> None:
        self._url = url
        self._trials = trials
        self._step = 0

    def stored(self) -> float:
        """Returns rows stored per second."""
        metrics = {"loss": 0.123456, "accuracy": 0.91, "lr": 0.001}
        now, trials = datetime.now(UTC), self._trials
        reports = [
            Report(trials[number % len(trials)], 1, "training", self._step + number, now, metrics, None, True)
            for number in range(COUNT)
        ]
        self._step += COUNT
        return _stored(self._url, _insert_reports, reports)


def _insert_reports(connection: Connection, reports: Sequence[Report]) -> None:
    rows = [ingest_repository.new_report(report, to_micros(report.reported_at), None) for report in reports]
    ingest_repository.insert_many(connection, rows)


def _logged(url: str, task: str) -> float:
    """Returns log lines stored per second."""
    line = LogLine(task, "step 1200 of 90000: loss 0.123456, accuracy 0.91, 1.3 s a batch", datetime.now(UTC), "INFO")
    return _stored(url, log_repository.insert_lines, [line.values() | {"is_error": False} for _ in range(COUNT)])


def _stored(url: str, insert: Callable[[Connection, Sequence[Any]], None], rows: Sequence[Any]) -> float:
    """Returns rows per second, from the master's values to the commit of the last group."""
    engine = make_group_engine(url)
    with engine.connect() as connection:
        began = time.perf_counter()
        for start in range(0, len(rows), GROUP):
            with connection.begin():
                insert(connection, rows[start : start + GROUP])
        took = time.perf_counter() - began
    engine.dispose()
    return len(rows) / took


def _copied(url: str, table: str) -> float:
    """Returns rows per second of a COPY of a table's newest rows into a table with the same columns and indexes, with a
    commit after each group."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute(f"CREATE TABLE copied (LIKE {table} INCLUDING ALL)")
        names = [
            column[0]
            for column in connection.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND column_name <> 'id'",
                [table],
            )
        ]
        columns = ", ".join(f'"{name}"' for name in names)
        rows = _newest_rows(connection, table, columns)
        connection.commit()
        began = time.perf_counter()
        for start in range(0, len(rows), GROUP):
            with connection.cursor().copy(f"COPY copied ({columns}) FROM STDIN") as copy:
                for row in rows[start : start + GROUP]:
                    copy.write_row(row)
            connection.commit()
        took = time.perf_counter() - began
        connection.execute("DROP TABLE copied")
    return len(rows) / took


def _newest_rows(connection: psycopg.Connection[Any], table: str, columns: str) -> list[tuple[Any, ...]]:
    texts = [name if "metrics" not in name else f"{name}::text" for name in columns.split(", ")]
    query = f"SELECT {', '.join(texts)} FROM {table} ORDER BY id DESC LIMIT {COUNT}"
    return connection.execute(query.encode()).fetchall()


def _p95(running: Running, session: Session) -> float:
    """Returns the 95th percentile of the seconds of a page's requests and of a change of a name."""
    trial = session.get("/api/v1/experiments/1/trials")["trials"][0]["id"]
    requests: list[Callable[[], object]] = [
        lambda: session.get("/api/v1/experiments", query={"limit": 50}),
        lambda: session.get("/api/v1/experiments/1"),
        lambda: session.get(f"/api/v1/trials/{trial}"),
        lambda: session.get("/api/v1/agents"),
        lambda: session.patch("/api/v1/experiments/1", {"notes": str(time.time_ns())}),
    ]
    seconds = []
    for number in range(REQUESTS):
        began = time.perf_counter()
        requests[number % len(requests)]()
        seconds.append(time.perf_counter() - began)
    return statistics.quantiles(seconds, n=20)[-1]


if __name__ == "__main__":
    for figure in figures(int(sys.argv[1]) if len(sys.argv) > 1 else 7):
        print(figure.line())
