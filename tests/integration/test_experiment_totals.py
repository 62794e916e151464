"""The list of experiments counts trials, checkpoints and failures in SQL; no trial is loaded for it."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select
from tests.support.cluster import Cluster, open_cluster
from tests.support.database_reads import loads
from tests.support.makers import NOON, add_allocation, add_experiment, add_trial

from determined.states import AllocationState, ExperimentState, TrialState
from determined_master.db.models import ExperimentRow, TrialRow, UserRow
from determined_master.trials import totals_queries

TRIALS = 1500
VALUES = [0.5, None, -2.0, 3.0, -2.0, 3.0, 0.0]


async def add_experiments(cluster: Cluster, count: int) -> list[ExperimentRow]:
    """Adds experiments with many trials, some with equal metrics. The last experiment has no trial."""
    async with cluster.master.database.write() as session:
        rows = [await add_experiment(session, smaller_is_better=i % 2 == 0) for i in range(count)]
        for row in rows[:-1]:
            trials = [
                {
                    "experiment_id": row.id,
                    "request_id": f"{i}",
                    "task_id": f"{row.id}.{i}",
                    "seed": 0,
                    "state": TrialState.COMPLETED,
                    "hparams": {},
                    "start_time": NOON,
                    "checkpoint_count": i % 3,
                    "checkpoint_size": i % 5 * 2**40,
                    "searcher_metric_value": VALUES[i % len(VALUES)],
                }
                for i in range(TRIALS)
            ]
            await session.execute(insert(TrialRow), trials)
    return rows


@pytest.mark.parametrize("batch", [2, totals_queries.MAX_IDS_A_STATEMENT])
async def test_totals_of_an_experiment_equal_those_of_its_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(totals_queries, "MAX_IDS_A_STATEMENT", batch)
    async with open_cluster(tmp_path) as cluster:
        rows = await add_experiments(cluster, 3)
        async with cluster.master.database.read() as session:
            trials = (await session.scalars(select(TrialRow).order_by(TrialRow.id))).all()
        with loads(TrialRow) as loaded, loads(UserRow) as users:
            experiments = (await cluster.get("/api/v1/experiments", sortBy="SORT_BY_ID"))["experiments"]
        assert not loaded
        assert {user.username for user in users} <= {"admin"}
        for row, experiment in zip(rows, experiments, strict=True):
            own_trials = [trial for trial in trials if trial.experiment_id == row.id]
            assert experiment["trialIds"] == [trial.id for trial in own_trials]
            assert experiment["numTrials"] == len(own_trials)
            assert experiment["checkpointCount"] == sum(trial.checkpoint_count for trial in own_trials)
            assert int(experiment["checkpointSize"]) == sum(trial.checkpoint_size for trial in own_trials)
            best = best_of(row, own_trials)
            assert (experiment["bestTrialId"], experiment["bestTrialSearcherMetric"]) == best
            path = f"/api/v1/experiments/{row.id}/searcher/best_searcher_validation_metric"
            if best[0] is None:
                assert (await cluster.client.get(path)).status_code == 404
            else:
                assert (await cluster.get(path))["metric"] == best[1]


def best_of(row: ExperimentRow, trials: list[TrialRow]) -> tuple[int | None, float | None]:
    sign = 1 if row.smaller_is_better else -1
    ranked = [(sign * t.searcher_metric_value, t.id) for t in trials if t.searcher_metric_value is not None]
    value, trial_id = min(ranked, default=(None, None))
    return trial_id, None if value is None else sign * value


async def test_the_failure_of_an_experiment_is_that_of_its_first_failed_trial(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        async with cluster.master.database.write() as session:
            experiment = await add_experiment(session, state=ExperimentState.ERROR)
            states = (TrialState.COMPLETED, TrialState.ERROR, TrialState.ERROR)
            trials = [await add_trial(session, experiment, state=state) for state in states]
            for trial, texts in zip(trials, (["no failure"], ["older", "newer"], ["of the second"]), strict=True):
                for run_id, text in enumerate(texts):
                    await add_allocation(session, trial, AllocationState.TERMINATED, run_id, failure=text, settled=True)
        [listed] = (await cluster.get("/api/v1/experiments"))["experiments"]
        assert listed["failure"] == "newer"


@pytest.mark.parametrize(
    ("state", "live", "expected"),
    [
        (ExperimentState.ACTIVE, [], "STATE_QUEUED"),
        (ExperimentState.ACTIVE, [AllocationState.PENDING, AllocationState.RUNNING], "STATE_RUNNING"),
        (ExperimentState.ACTIVE, [AllocationState.TERMINATED, AllocationState.PULLING], "STATE_PULLING"),
        (ExperimentState.PAUSED, [AllocationState.RUNNING], "STATE_PAUSING"),
        (ExperimentState.PAUSED, [AllocationState.TERMINATED], "STATE_PAUSED"),
        (ExperimentState.STOPPING_KILLED, [AllocationState.RUNNING], "STATE_STOPPING_KILLED"),
    ],
)
async def test_the_displayed_state_of_a_listed_experiment_follows_its_live_allocations(
    tmp_path: Path, state: ExperimentState, live: list[AllocationState], expected: str
) -> None:
    async with open_cluster(tmp_path) as cluster:
        async with cluster.master.database.write() as session:
            experiment = await add_experiment(session, state=state, end_time=None)
            for each in live:
                trial = await add_trial(session, experiment, state=TrialState.PAUSED)
                await add_allocation(session, trial, each, settled=True)
        experiments: Any = (await cluster.get("/api/v1/experiments"))["experiments"]
        assert [each["displayState"] for each in experiments] == [expected]
