"""Inserts the rows of a long queue directly into a database: experiments with trials that wait for slots."""

import json
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, update

from determined.states import AllocationState, ContainerState, ExperimentState, TaskKind, TokenScope, TrialState
from determined_master.allocations import task_groups
from determined_master.db.models import (
    AllocationRow,
    ContainerRow,
    ExperimentRow,
    JobRow,
    SlotHoldRow,
    TaskRow,
    TrialRow,
)
from determined_master.db.models.base import table_of
from determined_master.scheduling.view import TaskGroup

START = datetime(2026, 1, 1, tzinfo=UTC)
TRIALS_A_JOB = 500
BATCH = 5000
SLOTS = (1, 1, 1, 2, 4)
CONFIG: Mapping[str, Any] = {
    "name": "queued",
    "hyperparameters": {},
    "searcher": {"name": "custom", "metric": "loss"},
    "resources": {"slots_per_trial": 1, "resource_pool": "default"},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/nowhere"},
}


def fill(
    connection: Connection, count: int, *, first: int = 1, pool: str = "default", trials: int = TRIALS_A_JOB
) -> None:
    """Adds ``count`` waiting trials, ``trials`` in each experiment. ``first``: the number of the first experiment."""
    experiments = range(first, first + (count + trials - 1) // trials)
    _insert(connection, JobRow, (_job(number, pool) for number in experiments))
    _insert(connection, ExperimentRow, (_experiment(number, pool) for number in experiments))
    places = [(first + n // trials, n) for n in range(count)]
    _insert(connection, TaskRow, (_task(number, _name(number, n)) for number, n in places))
    _insert(connection, TrialRow, (_trial(number, _name(number, n)) for number, n in places))
    _insert(connection, AllocationRow, (_allocation(number, n, pool) for number, n in places))


def use_config_of(connection: Connection, experiment_id: int) -> None:
    """Gives all experiments the configuration of an experiment that was created, so that their searches and trials
    continue."""
    table = table_of(ExperimentRow)
    names = ("config", "original_config", "searcher_type")
    own = connection.execute(select(*(table.c[name] for name in names)).where(table.c.id == experiment_id)).one()
    connection.execute(update(table).values(dict(zip(names, own, strict=True))))


def end_all(connection: Connection) -> None:
    """Ends all experiments, trials and allocations, as if they had been killed."""
    connection.execute(update(table_of(AllocationRow)).values(state=AllocationState.TERMINATED, settled=True))
    ended = {"state": TrialState.CANCELED, "closed": True, "end_time": START}
    connection.execute(update(table_of(TrialRow)).values(ended))
    connection.execute(update(table_of(ExperimentRow)).values(state=ExperimentState.CANCELED, end_time=START))


def run_all(connection: Connection, agent_id: str) -> None:
    """Makes all allocations run on an agent, each in a container with one slot."""
    allocations = table_of(AllocationRow)
    ids = list(connection.scalars(select(allocations.c.id).order_by(allocations.c.id)))
    running = {"state": AllocationState.RUNNING, "placed_at": START, "ready_at": START}
    connection.execute(update(allocations).values(running))
    _insert(connection, ContainerRow, (_container(n, name, agent_id) for n, name in enumerate(ids)))
    _insert(connection, SlotHoldRow, (_hold(n, name, agent_id) for n, name in enumerate(ids)))


def _container(n: int, allocation_id: str, agent_id: str) -> dict[str, Any]:
    state = ContainerState.RUNNING
    of_it = {"allocation_id": allocation_id, "agent_id": agent_id, "slot_ids": [n], "state": state}
    return {"id": str(uuid.UUID(int=n)), "rank": 0, **of_it}


def _hold(n: int, allocation_id: str, agent_id: str) -> dict[str, Any]:
    of_it = {"allocation_id": allocation_id, "agent_id": agent_id, "slot_id": n, "held_at": START}
    return {"container_id": str(uuid.UUID(int=n)), **of_it}


def _insert(connection: Connection, model: Any, rows: Iterator[dict[str, Any]]) -> None:  # a mapped class
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            connection.execute(insert(table_of(model)), batch)
            batch.clear()
    if batch:
        connection.execute(insert(table_of(model)), batch)


def _name(number: int, n: int) -> str:
    return f"{number}.{uuid.UUID(int=n)}"


def _job(number: int, pool: str) -> dict[str, Any]:
    position = START + timedelta(seconds=number)
    return {"id": f"job-{number}", "pool": pool, "priority": 1 + number % 99, "weight": 1.0, "position": position}


def _experiment(number: int, pool: str) -> dict[str, Any]:
    return {
        "id": number,
        "job_id": f"job-{number}",
        "name": f"queued {number}",
        "description": "",
        "notes": "",
        "labels": [],
        "state": ExperimentState.ACTIVE,
        "config": dict(CONFIG),
        "original_config": json.dumps(CONFIG),
        "context_size": 0,
        "user_id": 1,
        "project_id": 1,
        "archived": False,
        "progress": 0.0,
        "start_time": START + timedelta(seconds=number),
        "pool": pool,
        "searcher_type": "custom",
        "searcher_metric": "loss",
        "smaller_is_better": True,
        "searcher_snapshot": {},
        "searcher_cursor": 0,
        "values_stale": False,
    }


def _task(number: int, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "kind": TaskKind.TRIAL,
        "job_id": f"job-{number}",
        "user_id": 1,
        "experiment_id": number,
        "token_scope": TokenScope.TRIAL,
        "created_at": START,
    }


def _trial(number: int, name: str) -> dict[str, Any]:
    return {
        "experiment_id": number,
        "request_id": name.partition(".")[2],
        "task_id": name,
        "state": TrialState.ACTIVE,
        "hparams": {},
        "seed": 0,
        "run_id": 1,
        "closed": False,
        "start_time": START,
        "values_stale": False,
    }


def _allocation(number: int, n: int, pool: str) -> dict[str, Any]:
    slots = SLOTS[n % len(SLOTS)]
    name = _name(number, n)
    return {
        "id": f"{name}.1",
        "task_id": name,
        "run_id": 1,
        "state": AllocationState.PENDING,
        "slots": slots,
        "groups": [task_groups.to_json(TaskGroup("trial", slots=slots))],
        "single_agent": False,
        "pool": pool,
        "priority": 1 + number % 99,
        "owner": "admin",
        "user_id": 1,
        "submitted_at": START + timedelta(seconds=number),
        "created_at": START + timedelta(seconds=number),
        "spec": {},
        "waiting": "waiting for the scheduler",
        "preemption_timeout": 60,
    }
