"""A master on PostgreSQL: its lease, reports during changes of states, the order of ids, and crashes of the server."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, text
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.postgresql import Server, fresh_database
from tests.support.waiting import eventually

from determined_master.db import lease
from determined_master.db.lease import DatabaseAway, DatabaseTaken, Lease
from determined_master.loops import lease as lease_loop
from determined_master.settings.database_url import normalized

pytestmark = pytest.mark.budget(20, "starts and kills database servers")

LINE = "INSERT INTO task_logs (task_id, timestamp, level, stdtype, source, log, is_error) VALUES ('t', 0, '', '', '', 'x', false)"
FACT = (
    "INSERT INTO search_facts (experiment_id, trial_id, kind, payload, heard) VALUES (1, 1, 'validated', '{}', false)"
)


@pytest.fixture
async def lab(tmp_path: Path, postgresql: Server) -> AsyncIterator[Cluster]:
    """Yields a master on a new database."""
    async with open_cluster(tmp_path, database_url=normalized(fresh_database(postgresql.url))) as cluster:
        yield cluster


@pytest.fixture
def server() -> Iterator[Server]:
    """Yields a server with PostgreSQL's default durability, which the test may stop."""
    created = Server(fsync="on", synchronous_commit="on")
    created.start()
    yield created
    created.close()


def libpq(cluster: Cluster) -> str:
    return cluster.master.settings.url.replace("+psycopg", "")


async def running_trial(cluster: Cluster) -> dict[str, str]:
    """Creates an experiment whose trial runs and returns its task's headers."""
    agent = await cluster.join()
    await cluster.create(CONFIG)
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    return cluster.as_task(desired.allocation_id)


def report(steps: int) -> dict[str, Any]:
    return {
        "group": "training",
        "metrics": {
            "trial_id": 1,
            "trial_run_id": 1,
            "steps_completed": steps,
            "metrics": {"avg_metrics": {"loss": 1.0 / steps}},
        },
    }


async def test_a_second_master_is_refused_and_the_first_one_is_named(lab: Cluster) -> None:
    with pytest.raises(DatabaseTaken, match=r"another master uses this database: det-master .* pid \d+ from 127.0.0.1"):
        Lease(lab.master.settings.url).acquire()


async def test_a_lease_is_taken_if_its_holder_ends_during_the_check(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = normalized(fresh_database(postgresql.url))
    former, following = Lease(url), Lease(url)
    former.acquire()
    holder = lease.find_holder

    def ends_before(connection: Connection) -> str | None:
        former.release()
        while (name := holder(connection)) is not None:
            assert "det-master" in name
        return name

    monkeypatch.setattr(lease, "find_holder", ends_before)
    following.acquire()
    following.release()


async def test_a_wrong_password_or_database_is_refused_at_once(postgresql: Server) -> None:
    with pytest.raises(DatabaseAway, match='database "nowhere" does not exist'):
        Lease(f"postgresql://postgres@127.0.0.1:{postgresql.port}/nowhere").acquire(patience=60)


@pytest.mark.parametrize("statement", [LINE, FACT])
async def test_rows_that_are_read_by_their_id_appear_in_the_order_of_their_ids(lab: Cluster, statement: str) -> None:
    if statement == FACT:
        await lab.create(CONFIG, activate=False)
    with psycopg.connect(libpq(lab)) as first, psycopg.connect(libpq(lab)) as second:
        first.execute(statement)
        second.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            second.execute(statement)  # a reader would skip the first row: it has the smaller id
        second.rollback()
        first.commit()
        second.execute(statement)
        second.commit()


async def test_reports_do_not_wait_for_a_change_of_states(lab: Cluster) -> None:
    task = await running_trial(lab)
    other = await lab.create(CONFIG, activate=False)
    async with lab.master.database.write() as session:
        await session.execute(text("UPDATE experiments SET notes = 'x' WHERE id = :id"), {"id": other})
        answer = await asyncio.wait_for(lab.post("/api/v1/trials/1/metrics", report(1), **task), 10)
    assert answer.status_code == 200, answer.text


async def test_a_report_waits_for_a_change_of_its_own_trial_and_is_stored_then(lab: Cluster) -> None:
    task = await running_trial(lab)
    async with lab.master.database.write() as session:
        await session.execute(text("UPDATE trials SET restarts = restarts WHERE id = 1"))
        sent = asyncio.create_task(lab.post("/api/v1/trials/1/metrics", report(1), **task))
        await asyncio.wait([sent], timeout=0.5)  # beyond the time for which the writer waits for a lock
        assert not sent.done()
        # The transaction of the state never gives way, even if each waits for the other.
        await session.execute(text(LINE))
    assert (await sent).status_code == 200
    assert (await lab.get("/api/v1/trials/1"))["trial"]["totalBatchesProcessed"] == 1


async def test_an_acknowledged_report_outlives_a_crash_of_the_server(tmp_path: Path, server: Server) -> None:
    async with open_cluster(tmp_path, database_url=normalized(server.create("lab"))) as cluster:
        task = await running_trial(cluster)
        acknowledged: list[int] = []
        refused: list[str] = []
        crashed = asyncio.Event()

        async def send() -> None:
            steps = 0
            while not crashed.is_set() or len(acknowledged) < after + 20:
                answer = await cluster.post("/api/v1/trials/1/metrics", report(steps + 1), **task)
                if answer.status_code == 200:
                    steps += 1
                    acknowledged.append(steps)
                else:
                    refused.append(f"{answer.status_code} {answer.json()['error']['reason']}")
                    await asyncio.sleep(0.02)

        after = 10**9
        sending = asyncio.create_task(send())
        await eventually(lambda: len(acknowledged) > 20)
        await asyncio.to_thread(server.stop, "immediate")
        health = await cluster.client.get("/health")
        assert (health.status_code, health.json()["database"]) == (503, "down")
        answer = await cluster.client.get("/api/v1/experiments")
        assert answer.status_code == 503
        assert "cannot reach its database and tries again" in answer.text
        await asyncio.to_thread(server.start)
        after = len(acknowledged)
        crashed.set()
        await asyncio.wait_for(sending, 60)
        assert (await cluster.client.get("/health")).status_code == 200
        stored = await cluster.get("/api/v1/trials/1")
        assert stored["trial"]["totalBatchesProcessed"] == acknowledged[-1]
        assert set(refused) == {refused[0]}
        assert refused[0].startswith("503 ")


async def take_from_the_master(server: Server, url: str) -> Lease:
    """Crashes the server until this lease, and not the master, is the first to take the database."""
    while True:
        await asyncio.to_thread(server.stop, "immediate")
        await asyncio.to_thread(server.start)
        other = Lease(url)
        try:
            other.acquire()
        except DatabaseTaken:
            continue
        return other


async def test_a_master_whose_database_another_one_has_taken_stops(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []
    monkeypatch.setattr(lease_loop.signal, "raise_signal", stopped.append)
    url = normalized(server.create("lab"))
    async with open_cluster(tmp_path, database_url=url) as cluster:
        other = await take_from_the_master(server, url)
        try:
            await eventually(lambda: stopped)
            assert stopped[0] == signal.SIGTERM
            answer = await cluster.post("/api/v1/experiments", {"config": CONFIG})
            assert answer.status_code == 503  # it writes nothing while another master has the database
        finally:
            other.release()


async def test_ids_beyond_32_bits_are_stored(lab: Cluster) -> None:
    with psycopg.connect(libpq(lab)) as connection:
        connection.execute("SELECT setval(pg_get_serial_sequence('experiments', 'id'), 2147483648)")
    number = await lab.create(CONFIG, activate=False)
    assert number == 2147483649
    assert (await lab.get(f"/api/v1/experiments/{number}"))["experiment"]["id"] == number
