"""Lists of trials and agents are paged by the database: a page loads its own rows only, in a stable order."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import Cluster, open_cluster
from tests.support.database_reads import loads
from tests.support.makers import NOON, add_experiment, add_trial
from tests.support.postgresql import Server, fresh_database

from determined.states import ExperimentState, TrialState
from determined_master.db.models import AgentRow, AgentSlotRow, ExperimentRow, MetricRow, TrialRow
from determined_master.settings.database_url import normalized

COUNT, PAGE = 40, 7

# How each order compares trials; equal ones are ordered by id.
TRIAL_ORDERS: dict[str, Callable[[TrialRow], Any]] = {
    "SORT_BY_ID": lambda t: t.id,
    "SORT_BY_START_TIME": lambda t: t.start_time,
    "SORT_BY_END_TIME": lambda t: (t.end_time is None, t.end_time or t.start_time),
    "SORT_BY_STATE": lambda t: list(TrialState).index(t.state),
    "SORT_BY_DURATION": lambda t: (t.end_time is None, (t.end_time or t.start_time) - t.start_time),
    "SORT_BY_CHECKPOINT_SIZE": lambda t: t.checkpoint_size,
    "SORT_BY_BATCHES_PROCESSED": lambda t: t.steps_completed,
    "SORT_BY_RESTARTS": lambda t: t.restarts,
    "SORT_BY_SEARCHER_METRIC_VAL": lambda t: (t.searcher_metric_value is None, t.searcher_metric_value or 0.0),
    "SORT_BY_BEST_VALIDATION_METRIC": lambda t: (t.searcher_metric_value is None, t.searcher_metric_value or 0.0),
    "SORT_BY_LATEST_VALIDATION_METRIC": lambda t: (t.latest_validation_id is None, LATEST.get(t.id, 0.0)),
}
LATEST: dict[int, float] = {}
"""The searcher's metric in the latest validation, by trial."""


@pytest.fixture(params=["sqlite", "postgresql"])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    """Yields a master, once on each database."""
    url: dict[str, Any] = {}
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("postgresql")
        url = {"database_url": normalized(fresh_database(server.url))}
    async with open_cluster(tmp_path, **url) as created:
        yield created


async def add_trials(cluster: Cluster) -> list[TrialRow]:
    states = [TrialState.COMPLETED, TrialState.ERROR, TrialState.CANCELED]
    async with cluster.master.database.write() as session:
        experiment = await add_experiment(session, smaller_is_better=False)
        rows = [
            await add_trial(
                session,
                experiment,
                state=states[i % 3],
                start_time=NOON + timedelta(seconds=i * 7 % 11),
                end_time=None if i % 5 == 0 else NOON + timedelta(seconds=60 + i * 13 % 17),
                checkpoint_size=i * 5 % 6,
                steps_completed=i * 3 % 8,
                restarts=i % 4,
                searcher_metric_value=None if i % 6 == 0 else float(i * 11 % 9),
            )
            for i in range(COUNT)
        ]
        for i, row in enumerate(rows[1:], 1):
            LATEST[row.id] = i * 7 % 5 - 2.0
            values = {"loss": LATEST[row.id]}
            metric = MetricRow(trial_id=row.id, run_id=1, group="validation", steps=1, reported_at=NOON, metrics=values)
            metric.signed_metric = -LATEST[row.id]
            session.add(metric)
            await session.flush()
            row.latest_validation_id = metric.id
        return rows


async def test_pages_of_trials_follow_each_order(cluster: Cluster) -> None:
    trials = await add_trials(cluster)
    path = f"/api/v1/experiments/{trials[0].experiment_id}/trials"
    for order, key in TRIAL_ORDERS.items():
        rows = sorted(trials, key=lambda t, key=key: (key(t), t.id))
        for direction, expected in (("ORDER_BY_ASC", rows), ("ORDER_BY_DESC", rows[::-1])):
            ids: list[int] = []
            for offset in range(0, COUNT, PAGE):
                answer = await cluster.get(path, sortBy=order, orderBy=direction, offset=offset, limit=PAGE)
                assert answer["pagination"]["total"] == COUNT
                ids += [trial["id"] for trial in answer["trials"]]
            assert ids == [row.id for row in expected], (order, direction)


async def test_experiments_follow_each_order_of_their_trials_and_states(cluster: Cluster) -> None:
    states = [*reversed([s for s in ExperimentState if s is not ExperimentState.DELETED]), ExperimentState.ERROR]
    facts: list[tuple[ExperimentRow, list[TrialRow]]] = []
    async with cluster.master.database.write() as session:
        for i, state in enumerate(states):
            row = await add_experiment(
                session,
                state=state,
                smaller_is_better=i % 2 == 0,
                end_time=None if i % 3 else NOON + timedelta(seconds=i % 4),
                parent_id=1 if i % 4 == 1 else None,
            )
            trials = [
                await add_trial(
                    session,
                    row,
                    state=TrialState.COMPLETED,
                    checkpoint_count=(i + j) % 3,
                    checkpoint_size=(i * 5 + j) % 4,
                    searcher_metric_value=None if i % 5 == 2 else float((i * 3 + j * 5) % 4),
                )
                for j in range(i * 3 % 4)
            ]
            facts.append((row, trials))

    def best(row: ExperimentRow, trials: list[TrialRow]) -> tuple[bool, float]:
        values = [t.searcher_metric_value for t in trials if t.searcher_metric_value is not None]
        return (not values, (min if row.smaller_is_better else max)(values, default=0.0))

    orders: dict[str, Callable[[ExperimentRow, list[TrialRow]], Any]] = {
        "SORT_BY_NUM_TRIALS": lambda _row, trials: len(trials),
        "SORT_BY_CHECKPOINT_COUNT": lambda _row, trials: sum(t.checkpoint_count for t in trials),
        "SORT_BY_CHECKPOINT_SIZE": lambda _row, trials: sum(t.checkpoint_size for t in trials),
        "SORT_BY_SEARCHER_METRIC_VAL": best,
        "SORT_BY_STATE": lambda row, _trials: list(ExperimentState).index(row.state),
        "SORT_BY_END_TIME": lambda row, _trials: (row.end_time is None, row.end_time or NOON),
        "SORT_BY_FORKED_FROM": lambda row, _trials: (row.parent_id is None, row.parent_id or 0),
        "SORT_BY_NAME": lambda row, _trials: row.name,
    }
    for order, key in orders.items():
        rows = [row.id for row, _ in sorted(facts, key=lambda fact, key=key: (key(*fact), fact[0].id))]
        for direction, expected in (("ORDER_BY_ASC", rows), ("ORDER_BY_DESC", rows[::-1])):
            listed = await cluster.get("/api/v1/experiments", sortBy=order, orderBy=direction, limit=-1)
            assert [each["id"] for each in listed["experiments"]] == expected, (order, direction)


async def test_a_page_of_trials_loads_its_own_rows_only(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        rows = await add_trials(cluster)
        path = f"/api/v1/experiments/{rows[0].experiment_id}/trials"
        with loads(TrialRow) as loaded:
            answer = await cluster.get(path, offset=-PAGE, limit=PAGE, states="STATE_ERROR")
        failed = [row.id for row in rows if row.state is TrialState.ERROR]
        assert [trial["id"] for trial in answer["trials"]] == failed[-PAGE:]
        assert answer["pagination"]["total"] == len(failed)
        assert len({row.id for row in loaded}) == PAGE


async def test_a_page_of_agents_loads_its_own_rows_and_slots_only(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        async with cluster.master.database.write() as session:
            for i in range(COUNT):
                name, at = f"agent-{i:02}", NOON + timedelta(seconds=i * 7 % 11)
                session.add(AgentRow(id=name, pool="default", registered_at=at, lost=i == 0))
                await session.flush()
                session.add(AgentSlotRow(agent_id=name, slot_id=0, type="cpu"))
        with loads(AgentRow) as agents, loads(AgentSlotRow) as slots:
            answer = await cluster.get("/api/v1/agents", offset=3, limit=PAGE, orderBy="ORDER_BY_DESC")
        assert [agent["id"] for agent in answer["agents"]] == [f"agent-{i:02}" for i in range(36, 36 - PAGE, -1)]
        assert all(len(agent["slots"]) == 1 for agent in answer["agents"])
        assert answer["pagination"]["total"] == COUNT - 1
        assert (len(agents), len(slots)) == (PAGE, PAGE)
        timed = await cluster.get("/api/v1/agents", sortBy="SORT_BY_TIME")
        times = [(agent["registeredTime"], agent["id"]) for agent in timed["agents"]]
        assert times == sorted(times)
