"""The deletion of an experiment: each transaction deletes a bounded number of rows."""

import asyncio
import sqlite3
from itertools import pairwise
from unittest.mock import patch

import pytest
from tests.integration.test_deletion import complete_experiment, delete, is_gone
from tests.support.cluster import Cluster
from tests.support.database_rows import write_rows
from tests.support.waiting import eventually

from determined_master.db.sqlite.connection import SqliteConnection

pytestmark = pytest.mark.budget(10, "creates very many rows")


@pytest.mark.sqlite
async def test_rows_are_deleted_in_bounded_transactions(cluster: Cluster):
    experiment, _ = await complete_experiment(cluster)
    task = (await cluster.get("/api/v1/trials/1"))["trial"]["taskId"]
    await asyncio.to_thread(
        write_rows,
        cluster.master.settings.data,
        "INSERT INTO task_logs (task_id, timestamp, level, stdtype, source, log, is_error)"
        " VALUES (?, 1, '', 'stdout', 'task', 'x', 0)",
        [(task,)] * 12_000,
    )
    await asyncio.to_thread(
        write_rows,
        cluster.master.settings.data,
        'INSERT INTO metrics (trial_id, run_id, "group", reported_at, steps, metrics, archived)'
        " VALUES (1, 1, 'training', 1, ?, '{}', 0)",
        [(step,) for step in range(100, 2600)],
    )
    changes = [0]

    commit = SqliteConnection.commit

    async def counted(connection: SqliteConnection) -> None:
        changes.append(connection.total_changes)
        await commit(connection)

    with patch.object(SqliteConnection, "commit", counted):
        await delete(cluster, experiment)
        await eventually(lambda: is_gone(cluster, experiment))
    transactions = [after - before for before, after in pairwise(changes[1:])]
    assert sum(transactions) >= 14_500
    assert max(transactions) <= 5100
    connection = sqlite3.connect(cluster.master.settings.data / "master.sqlite")
    for table in ("task_logs", "metrics", "checkpoints", "series", "series_chunks", "series_cursors", "search_facts"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    connection.close()
