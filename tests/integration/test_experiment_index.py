"""The index behind searches of experiments: when the columns of an experiment are indexed again."""

from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster
from tests.support.columns import update_columns
from tests.support.experiment_list import add_three, field, search
from tests.support.makers import add_experiment, add_trial
from tests.support.waiting import eventually

from determined.states import TrialState
from determined_master.db.session import ReadSession
from determined_master.experiment_index import index_repository
from determined_master.loops.columns import ColumnLoop
from determined_master.trials import repository as trial_rows

pytestmark = pytest.mark.budget(10, "stores very many columns")


async def test_a_report_updates_the_columns_of_its_experiment(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    await update_columns(cluster.master.indexer)  # from here on, only the mark of the report leads to an update
    body = {
        "group": "validation",
        "metrics": {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 0.25}}},
    }
    headers = cluster.as_task(desired.allocation_id)
    assert (await cluster.client.post("/api/v1/trials/1/metrics", json=body, headers=headers)).status_code == 200

    async def is_listed() -> bool:
        page = (await cluster.post("/detent/experiments/search", {"columns": ["validation.loss.last"]})).json()
        return bool(page["experiments"][0]["cells"].get("validation.loss.last") == 0.25)

    await eventually(is_listed)
    assert await search(cluster, field("searcherMetricsVal", "=", 0.25)) == [experiment]


async def test_columns_of_a_completed_experiment_are_indexed_with_its_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)

    async def nothing(_session: ReadSession) -> list[int]:
        return []

    monkeypatch.setattr(index_repository, "stale", nothing)  # the loop indexes nothing any more
    report = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 0.25}}}
    headers = cluster.as_task(desired.allocation_id)
    body = {"group": "validation", "metrics": report}
    assert (await cluster.client.post("/api/v1/trials/1/metrics", json=body, headers=headers)).status_code == 200
    await agent.exit(desired)

    async def has_ended() -> bool:
        return await cluster.state(experiment) == "STATE_COMPLETED"

    await eventually(has_ended)
    assert await search(cluster, field("validation.loss.last", "=", 0.25)) == [experiment]
    columns = (await cluster.get("/api/v1/projects/1/columns"))["columns"]
    assert "validation.loss.last" in {column["column"] for column in columns}


async def test_an_experiment_that_cannot_be_indexed_completes(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)

    async def breaks(*_: Any) -> None:
        raise RuntimeError("a test's")

    monkeypatch.setattr(index_repository, "settle", breaks)
    await agent.exit(desired)

    async def has_ended() -> bool:
        return await cluster.state(experiment) == "STATE_COMPLETED"

    await eventually(has_ended)


async def test_of_two_thousand_metrics_those_that_changed_are_indexed_again(cluster: Cluster):
    names = [f"layer{i}/gradient" for i in range(2000)]
    async with cluster.master.database.write() as session:
        row = await add_experiment(session)
        trial = await add_trial(session, row, reports=[("training", dict.fromkeys(names, 1.0))])
    await update_columns(cluster.master.indexer)
    assert (await cluster.get("/detent/columns", kind="metric"))["total"] == 8000
    async with cluster.master.database.write() as session:
        again = await session.merge(trial)
        metrics = again.summary_metrics["avg_metrics"]
        del metrics[names[0]]
        metrics[names[1]]["last"] = "NaN"
        again.summary_metrics = {"avg_metrics": dict(metrics)}
        again.values_stale = True
    await update_columns(cluster.master.indexer)
    columns = [f"training.{name}.last" for name in names[:3]]
    cells = (await cluster.post("/detent/experiments/search", {"columns": columns})).json()["experiments"][0]["cells"]
    assert list(cells.values()) == [None, "NaN", 1.0]
    assert (await cluster.get("/detent/columns", kind="metric"))["total"] == 7996
    assert await search(cluster, field(columns[1], "=", "NaN")) == [row.id]


async def test_deleting_an_experiment_removes_its_column_values(cluster: Cluster):
    first, *_ = await add_three(cluster)
    assert (await cluster.client.delete(f"/api/v1/experiments/{first}")).status_code == 200

    async def gone() -> bool:
        return (await cluster.get("/detent/columns", query="hp.opt"))["columns"][0]["count"] == 2

    await eventually(gone)
    assert first not in await search(cluster)
    assert (await cluster.get("/detent/columns/values", column="hp.opt"))["values"] == ["beta", "gamma_%"]
    assert (await cluster.get("/detent/columns/values", column="tags"))["values"] == ["b"]


async def test_an_experiment_is_indexed_again_after_its_indexing_failed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    async with cluster.master.database.write() as session:
        row = await add_experiment(session)
        await add_trial(session, row, hparams={"lr": 1.0}, state=TrialState.ACTIVE)

    async def breaks(*_: Any) -> None:
        raise RuntimeError("a test's")

    with monkeypatch.context() as broken:
        broken.setattr(index_repository, "settle", breaks)
        await update_columns(cluster.master.indexer)
    assert (await cluster.get("/detent/columns", kind="hyperparameter"))["total"] == 0
    await update_columns(cluster.master.indexer)
    assert await search(cluster, field("hp.lr", "=", 1)) == [row.id]


async def mark_stale(cluster: Cluster, trial_id: int, **values: Any) -> None:
    async with cluster.master.database.write() as session:
        row = await trial_rows.get(session, trial_id)
        await trial_rows.change(session, row, values_stale=True, **values)


async def test_a_trial_with_many_metrics_is_indexed_again_only_after_a_wait(cluster: Cluster):
    async with cluster.master.database.write() as session:
        row = await add_experiment(session)
        trial = await add_trial(session, row, reports=[("training", {f"m{i}": 1.0 for i in range(2000)})])
    await update_columns(cluster.master.indexer)
    await mark_stale(cluster, trial.id, hparams={"lr": 2.0})
    wait = await ColumnLoop(cluster.master.indexer).tick()
    assert wait is not None
    assert 5 < wait <= 11
    assert (await cluster.get("/detent/columns", kind="hyperparameter"))["total"] == 0
    await update_columns(cluster.master.indexer)
    assert (await cluster.get("/detent/columns", kind="hyperparameter"))["total"] == 1


async def test_an_experiment_that_cannot_be_indexed_keeps_no_other_out(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    first, second, third = await add_three(cluster)
    hparams = index_repository.hparams

    async def breaks(session: Any, trial_id: int) -> dict[str, Any]:
        if trial_id == 2:
            raise RuntimeError("a test's")
        return await hparams(session, trial_id)

    with monkeypatch.context() as broken:
        broken.setattr(index_repository, "hparams", breaks)
        for trial in (1, 2, 3):
            await mark_stale(cluster, trial, hparams={"opt": "new"})
        await update_columns(cluster.master.indexer)
    assert await search(cluster, field("hp.opt", "=", "new")) == [third, first]
    await update_columns(cluster.master.indexer)
    assert await search(cluster, field("hp.opt", "=", "new")) == [third, second, first]


async def test_a_changed_priority_is_indexed(cluster: Cluster):
    experiment = await cluster.create(CONFIG, activate=False)
    await update_columns(cluster.master.indexer)
    path = f"/api/v1/experiments/{experiment}"
    assert (await cluster.client.patch(path, json={"resources": {"priority": 7}})).status_code == 200
    await update_columns(cluster.master.indexer)
    assert await search(cluster, field("config.resources.priority", "=", 7)) == [experiment]
