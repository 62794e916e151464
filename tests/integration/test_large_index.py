"""The index of an experiment with very many values is updated in lots, and other writes run between them."""

from typing import Any

import pytest
from sqlalchemy import func, select, update
from tests.support.cluster import CONFIG, Cluster
from tests.support.columns import update_columns
from tests.support.makers import add_project
from tests.support.waiting import eventually
from tests.support.write_holds import MAX_HOLD_SECONDS, Holds, write_holds

from determined_master.db.models import ColumnCountRow, ColumnValueRow, ExperimentRow, TrialRow
from determined_master.db.session import WriteSession
from determined_master.experiment_index import large_experiments

pytestmark = pytest.mark.budget(15, "creates very many rows")

VALUES = 10_000
METRICS = 10_000
MANY = CONFIG.replace("hyperparameters: {}", f"hyperparameters: {{{', '.join(f'h{n}: {n}' for n in range(VALUES))}}}")


async def count(cluster: Cluster, *conditions: Any) -> int:
    async with cluster.master.database.read() as session:
        return (await session.scalars(select(func.count()).where(*conditions))).one()


async def index_all(cluster: Cluster) -> None:
    async def nothing_is_stale() -> bool:
        await update_columns(cluster.master.indexer)
        return await count(cluster, ExperimentRow.values_stale) == await count(cluster, TrialRow.values_stale) == 0

    await eventually(nothing_is_stale)


async def column_count(cluster: Cluster, project: int = 1) -> int:
    return await count(cluster, ColumnCountRow.project_id == project, ColumnCountRow.count == 1)


def check(holds: Holds) -> None:
    print(holds)
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)


async def test_very_many_hyperparameters_are_indexed_moved_and_removed_in_lots(cluster: Cluster):
    async with cluster.master.database.write() as session:
        project = await add_project(session)
    with write_holds(cluster.master.database) as holds:
        await cluster.create(MANY, activate=False)
        await index_all(cluster)
        assert await count(cluster, ColumnValueRow.experiment_id == 1) >= VALUES
        values = await column_count(cluster)
        assert values >= VALUES
        body = {"projectId": 1, "experimentIds": [1], "destinationProjectId": project}
        assert (await cluster.post("/api/v1/projects/1/experiments/move", body)).status_code == 200
        await index_all(cluster)
        assert (await column_count(cluster), await column_count(cluster, project)) == (0, values)
        await cluster.post("/api/v1/experiments/1/kill")

        async def ended() -> bool:
            return await cluster.state(1) == "STATE_CANCELED"

        await eventually(ended)
        assert (await cluster.client.delete("/api/v1/experiments/1")).status_code == 200

        async def deleted() -> bool:
            return await count(cluster, ColumnValueRow.experiment_id == 1) == await column_count(cluster, project) == 0

        await eventually(deleted)
    check(holds)


async def test_very_many_metrics_of_a_report_are_indexed_in_lots(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    metrics = {f"m{n}": n / 2 for n in range(METRICS)}
    report = {"trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": metrics}}
    body = {"group": "validation", "metrics": report}
    with write_holds(cluster.master.database) as holds:
        answer = await cluster.post("/api/v1/trials/1/metrics", body, **cluster.as_task(desired.allocation_id))
        assert answer.status_code == 200, answer.text
        await index_all(cluster)
    assert await column_count(cluster) >= METRICS
    check(holds)


async def test_an_experiment_that_is_moved_while_it_is_indexed_counts_in_its_new_project_only(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    async with cluster.master.database.write() as session:
        project = await add_project(session)
    await cluster.create(CONFIG, activate=False)
    original = large_experiments.indexed_values.store
    moves = [project]

    async def moved(session: WriteSession, experiment_id: int, *arguments: Any) -> bool:
        if moves:
            await session.execute(update(ExperimentRow).values(project_id=moves.pop(), values_stale=True))
        return await original(session, experiment_id, *arguments)

    monkeypatch.setattr(large_experiments.indexed_values, "store", moved)
    await large_experiments.update(cluster.master.database, 1)
    values = await count(cluster, ColumnValueRow.experiment_id == 1)
    assert values > 0
    assert (await column_count(cluster), await column_count(cluster, project)) == (0, values)
