"""How few statements the master needs for what happens in every trial."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event, select
from tests.support.cluster import CONFIG, Cluster, FakeAgent
from tests.support.database_reads import writes
from tests.support.waiting import eventually

from determined_master.db.models import AllocationRow, ExperimentRow
from determined_master.db.session import Database


@contextmanager
def transactions(database: Database) -> Iterator[list[list[str]]]:
    """Yields the statements of each write transaction meanwhile; there is one at a time."""
    found: list[list[str]] = []
    engine = database.write_engine.sync_engine

    def begin(_connection: object) -> None:
        found.append([])

    event.listen(engine, "begin", begin)
    with writes(database) as statements:
        event.listen(engine, "before_cursor_execute", note := lambda *given: found[-1].append(given[2]))
        try:
            yield found
        finally:
            event.remove(engine, "before_cursor_execute", note)
            event.remove(engine, "begin", begin)
    assert statements


async def running(one: Cluster) -> tuple[FakeAgent, dict[str, str]]:
    agent = await one.join()
    await one.create()
    (wish,) = await agent.wished()
    await agent.run(wish)
    return agent, one.as_task(wish.allocation_id)


async def test_a_search_takes_in_a_report_without_a_look_at_its_experiment(one: Cluster):
    _, task = await running(one)
    metrics = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 0.5}}}
    with writes(one.master.database) as statements:
        body = {"group": "validation", "metrics": metrics}
        assert (await one.post("/api/v1/trials/1/metrics", body, **task)).status_code == 200

        async def taken_in() -> bool:
            async with one.master.database.read() as session:
                return bool(await session.scalar(select(ExperimentRow.searcher_cursor)))

        await eventually(taken_in)
    of_search = [each for each in statements if "searcher_cursor" in each or "search_facts" in each]
    assert [each.split()[0] for each in of_search] == ["UPDATE", "UPDATE"]


async def test_why_others_wait_is_stored_together_with_a_placement(one: Cluster):
    for _ in range(2):
        await one.create(CONFIG)

    async def waiting() -> list[str]:
        async with one.master.database.read() as session:
            return [row.waiting for row in await session.scalars(select(AllocationRow)) if row.waiting]

    async def both_wait() -> bool:
        return len([each for each in await waiting() if "agent" in each]) == 2

    await eventually(both_wait)
    with transactions(one.master.database) as found:
        agent = await one.join()
        await agent.wished()

        async def is_explained() -> bool:
            return [each.partition(";")[0] for each in await waiting()] == ["needs 1 slot"]

        await eventually(is_explained)
    (placing,) = [each for each in found if any("INTO slot_holds" in statement for statement in each)]
    assert len([each for each in placing if "FROM agents" in each]) == 1
    assert any(each.startswith("UPDATE allocations SET waiting=") for each in placing)
