"""`det-master copy-database` and backups of PostgreSQL: all rows are copied, or none."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.columns import update_columns
from tests.support.postgresql import Server, fresh_database

from determined_launch.pid_lock import PidLock
from determined_master.__main__ import main
from determined_master.db.engine import make_copy_engine, sqlite_url
from determined_master.db.models import LogRow
from determined_master.db.models.base import Base, table_of
from determined_master.settings.database_url import normalized

pytestmark = [pytest.mark.sqlite, pytest.mark.budget(15, "copies and compares whole databases")]


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Returns all rows of all tables, as Python reads them."""
    engine = make_copy_engine(url)
    try:
        with engine.connect() as connection:
            return {
                table.name: [
                    tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))
                ]
                for table in Base.metadata.sorted_tables
            }
    finally:
        engine.dispose()


async def populate(cluster: Cluster) -> None:
    agent = await cluster.join()
    await cluster.create(CONFIG)
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    report = {"trial_id": 1, "trial_run_id": 1, "steps_completed": 1, "metrics": {"avg_metrics": {"loss": 0.5}}}
    body = {"group": "validation", "metrics": report}
    assert (
        await cluster.post("/api/v1/trials/1/metrics", body, **cluster.as_task(desired.allocation_id))
    ).status_code == 200
    cluster.master.blobs.keep_bytes(b"a context")


@pytest.fixture
async def old(tmp_path: Path) -> Path:
    """Returns the SQLite file of a stopped master. A line of its log has a NUL, as earlier versions stored it."""
    (tmp_path / "old").mkdir()
    async with open_cluster(tmp_path / "old") as cluster:
        await populate(cluster)
        file = cluster.master.settings.data / "master.sqlite"
    engine = make_copy_engine(sqlite_url(file))
    with engine.begin() as connection:
        line = {"task_id": "t", "timestamp": cluster.master.clock.now(), "log": "a\0b", "is_error": False}
        connection.execute(insert(table_of(LogRow)), line)
    engine.dispose()
    return file


def test_a_copy_has_every_row_and_new_ids_follow_the_largest(
    old: Path, postgresql: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    target = fresh_database(postgresql.url)
    assert main(["copy-database", f"sqlite:///{old}", target]) == 0
    copied, expected = rows(target), rows(sqlite_url(old))
    assert [row for row in expected["task_logs"] if "a\0b" in row]
    expected["task_logs"] = [
        tuple("a\u2400b" if value == "a\0b" else value for value in row) for row in expected["task_logs"]
    ]
    assert copied == expected
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"copied {sum(map(len, copied.values()))} rows"
    for name, table_rows in copied.items():
        assert f"{name:24} {len(table_rows):12} rows" in lines
    engine = make_copy_engine(target)
    logs = table_of(LogRow)
    with engine.begin() as connection:
        largest = connection.execute(select(func.max(logs.c.id))).scalar_one()
        line = {"task_id": "t", "timestamp": copied["users"][0][-1], "log": "new", "is_error": False}
        line["timestamp"] = connection.execute(select(func.max(logs.c.timestamp))).scalar_one()
        new = connection.execute(insert(logs).values(line).returning(logs.c.id)).scalar_one()
    engine.dispose()
    assert new == largest + 1


def test_a_copy_is_refused_while_the_master_runs_or_if_the_target_has_rows(
    old: Path, postgresql: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = fresh_database(postgresql.url)
    with PidLock(old.parent / "master.lock"):
        assert main(["copy-database", f"sqlite:///{old}", target]) == 2
    assert "the master runs" in capsys.readouterr().err
    assert main(["copy-database", f"sqlite:///{tmp_path}/none.sqlite", target]) == 1
    assert capsys.readouterr().err == f"det-master: {tmp_path}/none.sqlite does not exist\n"
    assert main(["copy-database", f"sqlite:///{old}", "mysql://x/y"]) == 2
    assert "databases of the kind 'mysql' are not supported" in capsys.readouterr().err
    assert main(["copy-database", f"sqlite:///{old}", target]) == 0
    before = rows(target)
    capsys.readouterr()
    assert main(["copy-database", f"sqlite:///{old}", target]) == 1
    assert "the target has rows already" in capsys.readouterr().err
    assert rows(target) == before


async def test_a_master_goes_on_with_the_copied_database(old: Path, postgresql: Server) -> None:
    target = normalized(fresh_database(postgresql.url))
    assert await asyncio.to_thread(main, ["copy-database", f"sqlite:///{old}", target]) == 0
    async with open_cluster(old.parent.parent, database_url=target) as cluster:
        assert (await cluster.get("/api/v1/trials/1"))["trial"]["totalBatchesProcessed"] == 1
        assert await cluster.create(CONFIG, activate=False) == 2


async def test_a_live_postgresql_is_backed_up_and_restored_equal(
    tmp_path: Path, postgresql: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "live").mkdir()
    url = normalized(fresh_database(postgresql.url))
    archive = tmp_path / "lab.tar.zst"
    async with open_cluster(tmp_path / "live", database_url=url) as cluster:
        await populate(cluster)
        await update_columns(cluster.master.indexer)  # its loop must not write between the backup and the comparison
        data = cluster.master.settings.data
        options = ["--data", str(data), "--database-url", url]
        assert await asyncio.to_thread(main, ["backup", str(archive), *options]) == 0
        expected = rows(url)
    elsewhere, target = tmp_path / "elsewhere", fresh_database(postgresql.url)
    options = ["--data", str(elsewhere), "--database-url", target]
    assert await asyncio.to_thread(main, ["restore", str(archive), *options]) == 0, capsys.readouterr().err
    restored = rows(target)
    # The loops of the live master may have written to these after the backup.
    for name in ("events", "agents", "agent_slots", "sessions"):
        restored.pop(name), expected.pop(name)
    assert restored == expected
    assert {file.name for file in elsewhere.iterdir()} == {"agent-token", "blobs", "operator-token", "secret"}
    assert await asyncio.to_thread(main, ["restore", str(archive), "--data", str(tmp_path / "x"), *options[2:]]) == 1
    assert "the target has rows already" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
