"""Constant statements: the same rows, objects and errors as those that a session executes."""

import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Select, bindparam, inspect, select
from sqlalchemy.exc import IntegrityError
from tests.support.cluster import Cluster, FakeAgent
from tests.support.makers import rolled_back

from determined.link.messages import DesiredContainer
from determined_master.allocations import repository as allocations
from determined_master.db.models import AllocationRow, ContainerRow, JobRow, SearchEventRow
from determined_master.db.models.base import Base, table_of
from determined_master.db.session import ReadSession
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import insert_rows, update_rows

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
SYMBOL = "\N{SYMBOL FOR NULL}"


async def busy(cluster: Cluster) -> tuple[FakeAgent, DesiredContainer]:
    """Creates three experiments: the attempt of one has ended, one runs, and one waits."""
    agent = await cluster.join()
    for _ in range(3):
        await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    await agent.exit(desired)
    (other,) = await agent.wait_for_desired()
    await agent.run(other)
    return agent, other


def queries() -> list[Prepared[Any]]:
    """Returns all prepared queries of the master's modules."""
    modules = [module for name, module in sys.modules.items() if name.startswith("determined_master.")]
    values = [value for module in modules for value in vars(module).values()]
    values += [each for value in values if isinstance(value, dict) for each in value.values()]
    return [each for each in values if isinstance(each, Prepared) and isinstance(each._statement, Select)]


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        (type(each), {a.key: each.__dict__.get(a.key) for a in inspect(type(each)).column_attrs})
        if isinstance(each, Base)
        else each
        for each in row
    )


async def test_every_constant_query_returns_the_rows_of_a_session(cluster: Cluster):
    _, desired = await busy(cluster)
    task_id = desired.allocation_id.rpartition(".")[0]
    async with cluster.master.database.read() as session:
        job_id = await session.scalar(select(JobRow.id))
    values: dict[str, Any] = {
        "after": 0,
        "agent_id": "one",
        "agent_ids": ["one"],
        "allocation_id": desired.allocation_id,
        "allocation_ids": [desired.allocation_id],
        "container_id": desired.container_id,
        "container_ids": [desired.container_id],
        "cursor": 0,
        "experiment_id": 1,
        "first_id": 1,
        "ids": [1, 2],
        "job_id": job_id,
        "job_ids": [job_id],
        "last_id": 3,
        "most": 100,
        "of_group": "validation",
        "pool": "default",
        "reported_at": datetime.now(UTC),
        "run_id": 1,
        "steps": 1,
        "task_id": task_id,
        "task_ids": [task_id, "other"],
        "to": 1000,
        "trial_id": 1,
        "trial_ids": [1, 2, 3],
        "user_id": 1,
    }
    with_rows = 0
    for query in queries():
        names = {each.key for each in query._statement.compile().binds.values() if each.required}
        arguments = {name: values[name] for name in names}
        async with cluster.master.database.read() as session:
            expected = [plain(tuple(row)) for row in await session.execute(query._statement, arguments)]
        async with cluster.master.database.read() as session:
            rows = [plain(row) for row in await query.rows(session, **arguments)]
        with_rows += bool(rows)
        assert sorted(map(repr, rows)) == sorted(map(repr, expected)), str(query._statement)
    assert with_rows > 20


async def test_a_row_is_one_object_in_its_session_however_it_is_read(cluster: Cluster):
    _, desired = await busy(cluster)
    async with cluster.master.database.read() as session:
        row = await session.get(AllocationRow, desired.allocation_id)
        assert row is not None
        assert await session.get(AllocationRow, desired.allocation_id) is row
        assert (await session.scalars(select(AllocationRow).where(AllocationRow.id == row.id))).one() is row
        assert await session.get(AllocationRow, row.id) is row
        attempt = await allocations.attempt_of(session, desired.container_id)
        assert attempt is not None
        assert attempt[0] is row
        assert await session.get(AllocationRow, "unknown") is None


async def test_changes_of_an_object_are_stored(cluster: Cluster):
    _, desired = await busy(cluster)
    async with cluster.master.database.write() as session:
        row = await session.get(ContainerRow, desired.container_id)
        assert row is not None
        row.address = "10.0.0.1"
    async with cluster.master.database.read() as session:
        row = await session.get(ContainerRow, desired.container_id)
        assert row is not None
        assert row.address == "10.0.0.1"


@pytest.mark.parametrize("count", [1, 3, 9])
async def test_rows_are_inserted_and_changed(cluster: Cluster, count: int):
    experiment = await cluster.create(activate=False)
    async with rolled_back(cluster.master.database) as session:
        rows = [{"experiment_id": experiment, "trial_id": n, "kind": "x\0y", "payload": {"n": n}} for n in range(count)]
        await insert_rows(session, table_of(SearchEventRow), rows)
        query = (
            select(SearchEventRow).where(SearchEventRow.experiment_id == experiment).order_by(SearchEventRow.trial_id)
        )
        stored = (await session.scalars(query)).all()
        assert [(row.trial_id, row.kind, row.payload["n"], row.processed) for row in stored] == [
            (n, f"x{SYMBOL}y", n, False) for n in range(count)
        ]
        await update_rows(session, SearchEventRow, [{"id": row.id, "trial_id": 100 + row.trial_id} for row in stored])
        assert sorted(await session.scalars(select(SearchEventRow.trial_id))) == list(range(100, 100 + count))


async def test_a_violated_constraint_raises_the_error_of_sqlalchemy(cluster: Cluster):
    async with cluster.master.database.write() as session:
        await insert_rows(session, table_of(JobRow), [{"id": "new", "pool": "default", "position": NOW}])
        with pytest.raises(IntegrityError) as refused:
            async with session.begin_nested():
                await insert_rows(session, table_of(JobRow), [{"id": "new", "pool": "default", "position": NOW}])
        assert "[parameters" not in str(refused.value)
    async with cluster.master.database.read() as session:
        assert await session.get(JobRow, "new") is not None


_WITH_IDS = Prepared(select(JobRow.id).where(JobRow.id.in_(bindparam("ids", expanding=True))).order_by(JobRow.id))
_OF_ID = Prepared(select(JobRow.id).where(JobRow.id == bindparam("id")))


async def _jobs(session: ReadSession, *ids: str) -> list[str]:
    return await _WITH_IDS.scalars(session, ids=list(ids))


async def test_list_parameters_may_have_any_length(cluster: Cluster):
    async with rolled_back(cluster.master.database) as session:
        session.add_all([JobRow(id=name, pool="default", position=NOW) for name in "abc"])
        await session.flush()
        assert await _jobs(session) == []
        assert await _jobs(session, "b") == ["b"]
        assert await _jobs(session, "c", "a", "x") == ["a", "c"]
        assert await _jobs(session, "a", "c", "b", "y") == ["a", "b", "c"]
        assert await _OF_ID.first(session, id="b") == "b"
        assert await _OF_ID.first(session, id="x") is None
