"""The index of an experiment with very many values is updated in lots; others write between them."""

from typing import Any

from sqlalchemy import func, select
from tests.support.cluster import CONFIG, Cluster
from tests.support.makers import add_project
from tests.support.waiting import eventually
from tests.support.write_holds import MAX_HOLD_SECONDS, Holds, write_holds

from determined_master.db.models import ColumnCountRow, ColumnValueRow, ExperimentRow, TrialRow

VALUES = 10_000
METRICS = 10_000
MANY = CONFIG.replace("hyperparameters: {}", f"hyperparameters: {{{', '.join(f'h{n}: {n}' for n in range(VALUES))}}}")


async def count(one: Cluster, *conditions: Any) -> int:
    async with one.master.database.read() as session:
        return (await session.scalars(select(func.count()).where(*conditions))).one()


async def up_to_date(one: Cluster) -> None:
    async def nothing_is_stale() -> bool:
        await one.master.indexer.catch_up(at_once=True)
        return await count(one, ExperimentRow.values_stale) == await count(one, TrialRow.values_stale) == 0

    await eventually(nothing_is_stale)


async def counted(one: Cluster, project: int = 1) -> int:
    return await count(one, ColumnCountRow.project_id == project, ColumnCountRow.count == 1)


def check(holds: Holds) -> None:
    print(holds)
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)


async def test_very_many_hyperparameters_are_indexed_moved_and_removed_in_lots(one: Cluster):
    async with one.master.database.write() as session:
        project = await add_project(session)
    with write_holds(one.master.database) as holds:
        await one.create(MANY, activate=False)
        await up_to_date(one)
        assert await count(one, ColumnValueRow.experiment_id == 1) >= VALUES
        values = await counted(one)
        assert values >= VALUES
        body = {"projectId": 1, "experimentIds": [1], "destinationProjectId": project}
        assert (await one.post("/api/v1/projects/1/experiments/move", body)).status_code == 200
        await up_to_date(one)
        assert (await counted(one), await counted(one, project)) == (0, values)
        await one.post("/api/v1/experiments/1/kill")

        async def ended() -> bool:
            return await one.state(1) == "STATE_CANCELED"

        await eventually(ended)
        assert (await one.client.delete("/api/v1/experiments/1")).status_code == 200

        async def deleted() -> bool:
            return await count(one, ColumnValueRow.experiment_id == 1) == await counted(one, project) == 0

        await eventually(deleted)
    check(holds)


async def test_very_many_metrics_of_a_report_are_indexed_in_lots(one: Cluster):
    agent = await one.join()
    await one.create()
    (wish,) = await agent.wished()
    await agent.run(wish)
    metrics = {f"m{n}": n / 2 for n in range(METRICS)}
    report = {"trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": metrics}}
    body = {"group": "validation", "metrics": report}
    with write_holds(one.master.database) as holds:
        answer = await one.post("/api/v1/trials/1/metrics", body, **one.as_task(wish.allocation_id))
        assert answer.status_code == 200, answer.text
        await up_to_date(one)
    assert await counted(one) >= METRICS
    check(holds)
