"""Responses of the Determined API in each state: every value is one that the official client knows."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.support.cluster import Cluster, open_cluster
from tests.support.seeded_cluster import seed_cluster
from tests.support.wire_shape import ENUMS, bodies, faults, operations

from determined.states import (
    AllocationState,
    CheckpointState,
    ContainerState,
    ExperimentState,
    TaskKind,
    TaskState,
    TrialState,
)
from determined_master.api.schemas.enums import LOG_LEVELS, log_level, wire_state
from determined_master.api.v1.unsupported_operations import OPERATIONS
from determined_master.db.models import (
    AllocationRow,
    CheckpointRow,
    ContainerRow,
    ExperimentRow,
    TaskRow,
    TrialRow,
)
from determined_master.db.session import note
from determined_master.states.display_state import display_state

pytestmark = pytest.mark.budget(15, "asks every route in every state")

WAITING = ("AllocationPreemptionSignal", "AllocationRendezvousInfo")
"""Operations that answer only after an allocation has started. Their answers contain no state."""
LATER = {name for name, _method, _path in OPERATIONS}
QUERY = {
    "trialIds": 1,
    "ids": 1,
    "group": "training",
    "metricName": "loss",
    "metricNames": "loss",
    "batchesProcessed": 2,
}
CASES: Sequence[tuple[Any, Sequence[Enum]]] = [
    (ExperimentRow, list(ExperimentState)),
    (TrialRow, list(TrialState)),
    (CheckpointRow, list(CheckpointState)),
    (AllocationRow, list(AllocationState)),
    (ContainerRow, list(ContainerState)),
    (TaskRow, list(TaskState)),
]
ROUNDS = max(len(states) for _row, states in CASES)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with open_cluster(tmp_path) as created:
        yield created


@pytest.mark.parametrize(("kind", "states"), [("experimentv1State", ExperimentState), ("trialv1State", TrialState)])
def test_displayed_states_of_every_allocation_state_are_known(kind: str, states: type[Enum]):
    displayed = {
        wire_state(display_state(state, live))
        for state in states
        for live in ([], *([each] for each in AllocationState if each.is_live))
    }
    assert displayed - set(ENUMS[kind]) == set()


def test_task_kinds_and_log_levels_are_known():
    assert {f"TASK_TYPE_{kind.wire}" for kind in TaskKind} - set(ENUMS["v1TaskType"]) == set()
    assert {log_level(level) for level in (*LOG_LEVELS, "FATAL", "")} - set(ENUMS["v1LogLevel"]) == set()


async def test_every_answer_in_every_state_has_only_known_values(cluster: Cluster):
    seeded = await seed_cluster(cluster)
    await _stop_loops()  # they would change the states
    wrong: set[str] = set()
    for number in range(ROUNDS):
        states = [(row, kinds[number % len(kinds)]) for row, kinds in CASES]
        async with cluster.master.database.write() as session:
            note(session, "allocations", ())
            note(session, "agents", ())
            for row, state in states:
                values: dict[str, Any] = {"state": state}
                if row is CheckpointRow and state is CheckpointState.DELETE_FAILED:
                    values["delete_error"] = "the folder is read-only"
                await session.execute(update(row).where(row.state.is_not(None)).values(**values))
        for name, path in _served():
            real = re.sub(r"\{(\w+)\}", lambda match: seeded.for_path(match[1]), path)
            answer = await cluster.client.get(real, params=QUERY if "metric" in path or "time-series" in path else {})
            if answer.status_code in (404, 409):  # a deleted experiment is no longer served
                continue
            assert answer.status_code == 200, (real, states, answer.text)
            problems = itertools.chain.from_iterable(faults(name, body) for body in bodies(answer.text))
            wrong |= {f"{fault} ({real})" for fault in problems}
    assert wrong == set()


def _served() -> Iterator[tuple[str, str]]:
    skipped = {*LATER, *WAITING}
    return ((name, path) for _tier, method, path, name in operations() if method == "GET" and name not in skipped)


async def _stop_loops() -> None:
    loops = [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__qualname__", "") == "Loop.run"]
    assert loops
    for task in loops:
        task.cancel()
    await asyncio.wait(loops)
