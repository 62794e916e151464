"""Lists of trials and agents are paged by the database: a page loads its own rows only, in a stable order."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import Cluster, cluster
from tests.support.database_reads import loads
from tests.support.makers import NOON, add_experiment, add_trial

from determined.states import TrialState
from determined_master.db.models import AgentRow, AgentSlotRow, TrialRow

COUNT, PAGE = 40, 7

# How each order compares trials; equal ones are ordered by id.
TRIAL_ORDERS: dict[str, Callable[[TrialRow], Any]] = {
    "SORT_BY_ID": lambda t: t.id,
    "SORT_BY_START_TIME": lambda t: t.start_time,
    "SORT_BY_END_TIME": lambda t: (t.end_time is None, t.end_time or t.start_time),
    "SORT_BY_STATE": lambda t: t.state.value,
    "SORT_BY_DURATION": lambda t: (t.end_time is None, (t.end_time or t.start_time) - t.start_time),
    "SORT_BY_CHECKPOINT_SIZE": lambda t: t.checkpoint_size,
    "SORT_BY_BATCHES_PROCESSED": lambda t: t.steps_completed,
    "SORT_BY_RESTARTS": lambda t: t.restarts,
    "SORT_BY_SEARCHER_METRIC_VAL": lambda t: (t.searcher_metric_value is None, t.searcher_metric_value or 0.0),
}


async def add_trials(one: Cluster) -> list[TrialRow]:
    states = [TrialState.COMPLETED, TrialState.ERROR, TrialState.CANCELED]
    async with one.master.database.write() as session:
        experiment = await add_experiment(session)
        return [
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


@pytest.mark.parametrize("order", TRIAL_ORDERS)
async def test_pages_of_trials_follow_the_order(tmp_path: Path, order: str) -> None:
    async with cluster(tmp_path) as one:
        rows = sorted(await add_trials(one), key=lambda t: (TRIAL_ORDERS[order](t), t.id))
        path = f"/api/v1/experiments/{rows[0].experiment_id}/trials"
        for direction, expected in (("ORDER_BY_ASC", rows), ("ORDER_BY_DESC", rows[::-1])):
            ids: list[int] = []
            for offset in range(0, COUNT, PAGE):
                answer = await one.get(path, sortBy=order, orderBy=direction, offset=offset, limit=PAGE)
                assert answer["pagination"]["total"] == COUNT
                ids += [trial["id"] for trial in answer["trials"]]
            assert ids == [row.id for row in expected]


async def test_a_page_of_trials_loads_its_own_rows_only(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        rows = await add_trials(one)
        path = f"/api/v1/experiments/{rows[0].experiment_id}/trials"
        with loads(TrialRow) as loaded:
            answer = await one.get(path, offset=-PAGE, limit=PAGE, states="STATE_ERROR")
        failed = [row.id for row in rows if row.state is TrialState.ERROR]
        assert [trial["id"] for trial in answer["trials"]] == failed[-PAGE:]
        assert answer["pagination"]["total"] == len(failed)
        assert len({row.id for row in loaded}) == PAGE


async def test_a_page_of_agents_loads_its_own_rows_and_slots_only(tmp_path: Path) -> None:
    async with cluster(tmp_path) as one:
        async with one.master.database.write() as session:
            for i in range(COUNT):
                name, at = f"agent-{i:02}", NOON + timedelta(seconds=i * 7 % 11)
                session.add(AgentRow(id=name, pool="default", registered_at=at, lost=i == 0))
                await session.flush()
                session.add(AgentSlotRow(agent_id=name, slot_id=0, type="cpu"))
        with loads(AgentRow) as agents, loads(AgentSlotRow) as slots:
            answer = await one.get("/api/v1/agents", offset=3, limit=PAGE, orderBy="ORDER_BY_DESC")
        assert [agent["id"] for agent in answer["agents"]] == [f"agent-{i:02}" for i in range(36, 36 - PAGE, -1)]
        assert all(len(agent["slots"]) == 1 for agent in answer["agents"])
        assert answer["pagination"]["total"] == COUNT - 1
        assert (len(agents), len(slots)) == (PAGE, PAGE)
        timed = await one.get("/api/v1/agents", sortBy="SORT_BY_TIME")
        times = [(agent["registeredTime"], agent["id"]) for agent in timed["agents"]]
        assert times == sorted(times)
