"""Lists take few statements, whatever their length, and use indexes."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert
from tests.integration.test_checkpoints import add_checkpoints
from tests.integration.test_experiment_totals import add_experiments
from tests.integration.test_long_lists import MANY, add_places
from tests.support.cluster import Cluster, open_cluster
from tests.support.database_reads import loads, reads
from tests.support.makers import NOON, add_experiment, add_trial

from determined.states import AllocationState, ContainerState
from determined_master.db.models import (
    AgentRow,
    AgentSlotRow,
    AllocationRow,
    CheckpointRow,
    ContainerRow,
    ExperimentLabelRow,
    ExperimentRow,
    ProjectRow,
    TrialRow,
    WorkspaceRow,
)


@pytest.mark.parametrize(
    ("path", "key", "model"),
    [
        ("/api/v1/workspaces", "workspaces", WorkspaceRow),
        ("/api/v1/workspaces/1/projects", "projects", ProjectRow),
    ],
)
async def test_a_page_of_workspaces_or_projects_reads_its_own_rows_only(
    tmp_path: Path, path: str, key: str, model: type[Any]
) -> None:
    async with open_cluster(tmp_path) as cluster:
        await add_places(cluster, MANY)
        counts = []
        for limit in (3, 30):
            with loads(model) as loaded, reads(cluster.master.database) as statements:
                answer = await cluster.get(path, offset=1000, limit=limit)
            assert {row.id for row in loaded} - {1} == {each["id"] for each in answer[key]}
            assert (len(answer[key]), answer["pagination"]["total"]) == (limit, MANY + 1)
            counts.append(sum("workspaces" in each or "project" in each for each in statements))
        assert counts[0] == counts[1]


async def add_tasks(cluster: Cluster, count: int) -> TrialRow:
    """Adds live allocations of one trial on one agent; each even one has a container."""
    async with cluster.master.database.write() as session:
        trial = await add_trial(session, await add_experiment(session))
        session.add(AgentRow(id="a", pool="default", registered_at=NOON))
        await session.flush()
        session.add(AgentSlotRow(agent_id="a", slot_id=0, type="cuda"))
        allocations = [
            {
                "id": f"{trial.task_id}.{i}",
                "task_id": trial.task_id,
                "run_id": i,
                "slots": 1,
                "state": AllocationState.RUNNING,
                "single_agent": False,
                "pool": "default",
                "priority": 42,
                "owner": "admin",
                "user_id": 1,
                "submitted_at": NOON,
                "created_at": NOON,
                "spec": {},
                "waiting": "",
                "preemption_timeout": 60,
            }
            for i in range(count)
        ]
        await session.execute(insert(AllocationRow), allocations)
        containers = [
            {
                "id": f"c-{i}",
                "allocation_id": f"{trial.task_id}.{i}",
                "agent_id": "a",
                "rank": 0,
                "slot_ids": [0],
                "state": ContainerState.RUNNING,
            }
            for i in range(0, count, 2)
        ]
        await session.execute(insert(ContainerRow), containers)
    return trial


async def test_tasks_are_read_in_few_statements(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        trial = await add_tasks(cluster, MANY)
        with loads(TrialRow) as trials, reads(cluster.master.database) as statements:
            tasks = (await cluster.get("/api/v1/tasks"))["allocationIdToSummary"]
        assert len(tasks) == MANY
        assert not trials
        # the loops of the master read meanwhile
        assert len(statements) < 50
        first, second = tasks[f"{trial.task_id}.0"], tasks[f"{trial.task_id}.1"]
        assert first["name"] == f"Trial {trial.id} (Experiment {trial.experiment_id})"
        [resources] = first["resources"]
        assert (resources["resourcesId"], resources["containerId"]) == ("c-0", "c-0")
        [device] = resources["agentDevices"]["a"]["devices"]
        assert (device["id"], device["type"]) == (0, "TYPE_CUDA")
        assert second["resources"] == []


async def test_labels_are_counted_by_the_database(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        async with cluster.master.database.write() as session:
            await add_experiment(session, labels=[f"label-{i:04}" for i in range(MANY)])
            await add_experiment(session, labels=["label-2000"])
        with loads(ExperimentRow) as experiments, reads(cluster.master.database) as statements:
            labels = (await cluster.get("/api/v1/experiment/labels"))["labels"]
        assert labels[0] == "label-2000"
        assert labels[1:3] == ["label-0000", "label-0001"]
        assert len(labels) == MANY
        assert not experiments
        assert sum(ExperimentLabelRow.__tablename__ in each for each in statements) == 1


async def test_totals_of_experiments_are_read_in_few_statements(cluster: Cluster):
    await add_experiments(cluster, 3)
    with reads(cluster.master.database) as statements:
        experiments = (await cluster.get("/api/v1/experiments"))["experiments"]
    assert len(experiments) == 3
    assert len(statements) < 50


@pytest.mark.parametrize("path", ["/api/v1/experiments/1/checkpoints", "/api/v1/trials/1/checkpoints"])
@pytest.mark.parametrize(
    "query",
    [{}, {"sortByAttr": "SORT_BY_UUID"}, {"sortByAttr": "SORT_BY_SEARCHER_METRIC"}, {"sortByMetric": "loss"}],
)
async def test_a_page_of_checkpoints_loads_only_its_rows(cluster: Cluster, path: str, query: dict[str, str]):
    await add_checkpoints(cluster, 20)
    loaded: list[object] = []
    statements: list[str] = []

    def on_load(row: object, _context: object) -> None:
        loaded.append(row)

    def on_statement(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    engine = cluster.master.database.read_engine.sync_engine
    event.listen(CheckpointRow, "load", on_load)
    event.listen(engine, "before_cursor_execute", on_statement)
    try:
        page = await cluster.get(path, limit=3, offset=1, **query)
    finally:
        event.remove(CheckpointRow, "load", on_load)
        event.remove(engine, "before_cursor_execute", on_statement)
    assert len(page["checkpoints"]) == 3
    assert page["pagination"] == {"offset": 1, "limit": 3, "startIndex": 1, "endIndex": 4, "total": 20}
    assert len(loaded) == 3
    # the master's loops read meanwhile, but no checkpoints
    assert sum("checkpoints" in statement for statement in statements) == 2, statements


@pytest.mark.sqlite
async def test_the_first_error_is_found_by_its_index(cluster: Cluster):
    connection = sqlite3.connect(cluster.master.settings.data / "master.sqlite")
    plan = connection.execute(
        "EXPLAIN QUERY PLAN SELECT id FROM task_logs WHERE task_id = 'x' AND is_error = 1"
        " AND source NOT IN ('agent', 'master') ORDER BY id LIMIT 1000"
    ).fetchall()
    connection.close()
    assert "ix_task_logs_error" in str(plan)
