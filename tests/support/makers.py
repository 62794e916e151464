"""Inserts experiments and trials directly into a database, for tests of searches."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from determined.states import AllocationState, ExperimentState, TrialState
from determined_master.db.models import AllocationRow, ExperimentRow, ProjectRow, TaskRow, TrialRow
from determined_master.db.session import Database
from determined_master.experiments import repository
from determined_master.metrics.summary import summarise
from determined_master.trials import repository as trials

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def effective(hyperparameters: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "name": "made",
        "hyperparameters": dict(hyperparameters or {}),
        "searcher": {"name": "single", "metric": "loss"},
        "resources": {"slots_per_trial": 1, "resource_pool": "default"},
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/nowhere"},
        **more,
    }


async def add_experiment(session: AsyncSession, **values: Any) -> ExperimentRow:
    row = ExperimentRow(
        **{
            "job_id": str(uuid.uuid4()),
            "name": "made",
            "description": "",
            "notes": "",
            "labels": [],
            "state": ExperimentState.COMPLETED,
            "config": effective(),
            "original_config": "",
            "context_size": 0,
            "user_id": 1,
            "project_id": 1,
            "archived": False,
            "progress": 1.0,
            "start_time": NOON,
            "end_time": NOON + timedelta(hours=1),
            "pool": "default",
            "searcher_type": "single",
            "searcher_metric": "loss",
            "smaller_is_better": True,
            "searcher_snapshot": {},
            "searcher_cursor": 0,
        }
        | values
    )
    await repository.add(session, row, priority=42)
    return row


async def add_trial(
    session: AsyncSession,
    experiment: ExperimentRow,
    *,
    hparams: Mapping[str, Any] | None = None,
    reports: list[tuple[str, dict[str, Any]]] | None = None,
    **values: Any,
) -> TrialRow:
    """Adds a trial. ``reports``: (group, metrics) in order."""
    request = str(uuid.uuid4())
    row = TrialRow(
        **{
            "experiment_id": experiment.id,
            "request_id": request,
            "task_id": f"{experiment.id}.{request}",
            "state": TrialState.COMPLETED,
            "hparams": dict(hparams or {}),
            "seed": 0,
            "run_id": 1,
            "closed": True,
            "start_time": experiment.start_time,
            "summary_metrics": summarise(reports or []),
        }
        | values
    )
    session.add_all([row, TaskRow(**trials.task_of(experiment, vars(row)))])
    await session.flush()
    return row


async def add_project(session: AsyncSession, name: str = "elsewhere", **values: Any) -> int:
    row = ProjectRow(**{"name": name, "workspace_id": 1, "user_id": 1} | values)
    session.add(row)
    await session.flush()
    return row.id


async def add_allocation(
    session: AsyncSession, trial: TrialRow, state: AllocationState, run_id: int = 1, **values: Any
) -> None:
    session.add(
        AllocationRow(
            **values,
            id=f"{trial.task_id}.{run_id}",
            task_id=trial.task_id,
            run_id=run_id,
            state=state,
            slots=1,
            single_agent=False,
            pool="default",
            priority=42,
            owner="admin",
            user_id=1,
            submitted_at=NOON,
            created_at=NOON,
            spec={},
            waiting="",
            preemption_timeout=60,
        )
    )
    await session.flush()


class _Undo(Exception):
    pass


@contextlib.asynccontextmanager
async def rolled_back(database: Database) -> AsyncIterator[AsyncSession]:
    """Yields a write session whose changes are rolled back at its end."""
    with contextlib.suppress(_Undo):
        async with database.write() as session:
            yield session
            raise _Undo
