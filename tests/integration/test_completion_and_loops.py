"""The end of an attempt leads to the same rows whether its own transaction or the loops do what follows."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select
from tests.support.cluster import Cluster, open_cluster
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer
from determined_master.db.models import AllocationRow, EventRow, ExperimentRow, SearchEventRow, TrialRow
from determined_master.experiments.completion import Completion

RUN = """
name: the same rows
entrypoint: python3 run.py
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
max_restarts: {max_restarts}
reproducibility: {{experiment_seed: 7}}
searcher: {{name: random, metric: loss, max_trials: {trials}, max_concurrent_trials: {concurrent}}}
"""
OF_TRIALS = (
    *("request_id", "state", "exit_reason", "hparams", "seed", "restarts", "system_failures", "run_id", "closed"),
    *("steps_completed", "progress", "searcher_metric_value", "retry_at"),
)
OF_ALLOCATIONS = (
    "id",
    "state",
    "exit_reason",
    "exit_code",
    "message",
    "settled",
    "slots",
    "priority",
    "pool",
    "waiting",
)


class Run(NamedTuple):
    """A random search and, in their order, its ends: which of the running trials exits, after how many reports, and
    with which code."""

    trials: int
    concurrent: int
    max_restarts: int
    ends: list[tuple[float, int, int]]


def drawn(seed: int) -> Run:
    rng = random.Random(seed)
    ends = [(rng.random(), rng.randrange(3), rng.choice((0, 0, 0, 1))) for _ in range(40)]
    return Run(rng.randint(1, 4), rng.randint(1, 3), rng.randint(0, 1), ends)


async def report(cluster: Cluster, container: DesiredContainer, steps: int) -> None:
    async with cluster.master.database.read() as session:
        query = select(TrialRow.id).where(TrialRow.task_id == container.spec.task_id)
        trial_id = (await session.scalars(query)).one()
    run_id = int(container.allocation_id.rpartition(".")[2])
    metrics = {
        "trialId": trial_id,
        "trialRunId": run_id,
        "stepsCompleted": steps,
        "metrics": {"avgMetrics": {"loss": 1}},
    }
    body = {"group": "validation", "metrics": metrics}
    answer = await cluster.post(f"/api/v1/trials/{trial_id}/metrics", body, **cluster.as_task(container.allocation_id))
    assert answer.status_code == 200, answer.text


async def rows(cluster: Cluster) -> dict[str, Any]:
    """Returns what the search and its trials have left, without times and ids that differ between any two runs."""
    async with cluster.master.database.read() as session:
        trials = list(await session.scalars(select(TrialRow).order_by(TrialRow.request_id)))
        allocations = list(await session.scalars(select(AllocationRow).order_by(AllocationRow.id)))
        (experiment,) = await session.scalars(select(ExperimentRow))
        search_events = await session.execute(select(SearchEventRow.kind, SearchEventRow.processed))
        events = await session.execute(select(EventRow.kind, EventRow.target_type, EventRow.actor, EventRow.payload))
    return {
        "experiment": (experiment.state, experiment.progress, experiment.end_time is not None),
        "trials": [{name: getattr(row, name) for name in OF_TRIALS} for row in trials],
        "allocations": [{name: getattr(row, name) for name in OF_ALLOCATIONS} for row in allocations],
        "search events": sorted(map(tuple, search_events)),
        "events": sorted(json.dumps([*row[:3], _without_slots(row[3])], sort_keys=True, default=str) for row in events),
    }


def _without_slots(payload: Any) -> Any:
    """Trials that start together get slots in any order."""
    return {key: value for key, value in (payload or {}).items() if key != "parts"}


async def play(folder: Path, run: Run) -> dict[str, Any]:
    folder.mkdir()
    async with open_cluster(folder) as cluster:
        agent = await cluster.join(slots=run.concurrent)
        await cluster.create(RUN.format(**run._asdict()))
        done: set[str] = set()
        failures: Counter[str] = Counter()
        closed = 0
        for choice, reports, code in run.ends:
            expected = min(run.concurrent, run.trials - closed)
            if expected == 0:
                break

            async def running(count: int = expected) -> list[DesiredContainer] | None:
                live = [each for each in await agent.desired() if each.allocation_id not in done]
                return live if len(live) == count else None

            containers = sorted(await eventually(running) or (), key=lambda each: each.allocation_id)
            ends = containers[int(choice * len(containers))]
            await agent.run(ends)
            for number in range(reports):
                await report(cluster, ends, number + 1)
            await agent.exit(ends, code)
            done.add(ends.allocation_id)
            failures[ends.spec.task_id] += code != 0
            closed += code == 0 or failures[ends.spec.task_id] > run.max_restarts

        async def has_ended() -> bool:
            return await cluster.state(1) in ("STATE_COMPLETED", "STATE_ERROR")

        await eventually(has_ended)
        return await rows(cluster)


@pytest.mark.parametrize("seed", range(6))
async def test_the_completion_path_and_the_loops_write_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
):
    run = drawn(seed)
    at_once = await play(tmp_path / "at once", run)

    async def left_to_loops(*_: Any) -> bool:
        return False

    monkeypatch.setattr(Completion, "follow", left_to_loops)
    assert await play(tmp_path / "by loops", run) == at_once
