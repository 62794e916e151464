"""Why work waits, and what would start it now."""

from collections.abc import Sequence
from typing import Literal

from fastapi import APIRouter

from determined_master.allocations import queue_repository
from determined_master.api.dependencies import Anyone, ManagersDep, Read
from determined_master.api.schemas.base import RowId, Wire
from determined_master.db.models import AllocationRow
from determined_master.db.session import ReadSession
from determined_master.experiments import repository as experiment_rows
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.scheduling.explain import Blocker, Explanation
from determined_master.scheduling.what_if import Changes
from determined_master.tasks import repository as task_rows
from determined_master.tasks import search_task_repository
from determined_master.trials import repository as trial_rows

MAX_JOBS = 20
router = APIRouter(prefix="/detent", tags=["detent"])


class WaitBlocker(Wire):
    """``name``: the trial or task that is in the way. ``why``: it counts for the same limit, comes first, is leaving,
    or holds slots that could be used."""

    allocation_id: str
    name: str
    why: Literal["limit", "ahead", "leaving", "running"]
    seconds_left: float | None


class AgentSlot(Wire):
    agent_id: str
    slot_id: int


class PausableJob(Wire):
    job_id: str
    name: str


class StartingChanges(Wire):
    """Changes each of which, alone, starts it now; None or empty where no value does."""

    slots: int | None
    priority: int | None
    max_slots: int | None
    pools: list[str]
    agents: list[str]
    slot_ids: list[AgentSlot]
    paused_jobs: list[PausableJob]


class WaitExplanation(Wire):
    """``ahead``: requests before it in the queue of its pool. ``unknown``: why ``starts_in_seconds`` is None."""

    allocation_id: str
    task_id: str
    trial_id: int | None
    pool: str
    slots: int
    priority: int
    reason: str
    ahead: int
    blockers: list[WaitBlocker]
    starts_in_seconds: float | None
    unknown: str
    changes: StartingChanges


class WhyAnswer(Wire):
    """``waiting``: number of allocations that wait; ``first``: the one that is expected to start first.

    ``notes``: why starts of what does not wait are slow.
    """

    waiting: int
    first: WaitExplanation | None
    notes: list[str]


@router.get("/experiments/{experiment_id}/why")
async def why_experiment(experiment_id: RowId, _principal: Anyone, session: Read, managers: ManagersDep) -> WhyAnswer:
    """Explains why the trials of an experiment wait, or the task that runs its search."""
    row = await experiment_rows.get(session, experiment_id)
    search = await search_task_repository.find_active(session, experiment_id)
    return await _why(session, managers, [search.task_id] if search else [], row.job_id)


@router.get("/trials/{trial_id}/why")
async def why_trial(trial_id: RowId, _principal: Anyone, session: Read, managers: ManagersDep) -> WhyAnswer:
    """Explains why a trial waits."""
    return await _why(session, managers, [(await trial_rows.get(session, trial_id)).task_id])


@router.get("/tasks/{task_id}/why")
async def why_task(task_id: str, _principal: Anyone, session: Read, managers: ManagersDep) -> WhyAnswer:
    """Explains why a task of any kind waits."""
    return await _why(session, managers, [(await task_rows.get(session, task_id)).id])


async def _why(
    session: ReadSession, managers: ResourceManagers, task_ids: Sequence[str], job_id: str | None = None
) -> WhyAnswer:
    count, row = await queue_repository.first_pending(session, job_id=job_id, task_ids=task_ids)
    notes = await queue_repository.start_notes(session, job_id=job_id, task_ids=task_ids)
    if row is None:
        return WhyAnswer(waiting=0, first=None, notes=notes)
    explanation = await managers.explain(session, row)
    return WhyAnswer(waiting=count, first=await _shown(session, row, explanation), notes=notes)


async def _shown(session: ReadSession, row: AllocationRow, explanation: Explanation) -> WaitExplanation:
    names = await _names(session, [each.allocation_id for each in explanation.blockers])
    trial = await trial_rows.find_by_task(session, row.task_id)
    return WaitExplanation(
        allocation_id=row.id,
        task_id=row.task_id,
        trial_id=trial.id if trial else None,
        pool=row.pool,
        slots=row.slots,
        priority=row.priority,
        reason=explanation.reason or row.waiting,
        ahead=explanation.ahead,
        blockers=[_blocker(each, names) for each in explanation.blockers],
        starts_in_seconds=explanation.starts_in_seconds,
        unknown=explanation.unknown,
        changes=await _changes(session, explanation.changes),
    )


def _blocker(found: Blocker, names: dict[str, str]) -> WaitBlocker:
    name = names.get(found.allocation_id, found.allocation_id)
    return WaitBlocker(allocation_id=found.allocation_id, name=name, why=found.why, seconds_left=found.seconds_left)


async def _changes(session: ReadSession, changes: Changes) -> StartingChanges:
    return StartingChanges(
        slots=changes.slots,
        priority=changes.priority,
        max_slots=changes.max_slots,
        pools=list(changes.pools),
        agents=list(changes.agents),
        slot_ids=[AgentSlot(agent_id=agent, slot_id=slot) for agent, slot in changes.slot_ids],
        paused_jobs=[
            PausableJob(job_id=job_id, name=await _name_of_job(session, job_id))
            for job_id in changes.paused_jobs[:MAX_JOBS]
        ],
    )


async def _name_of_job(session: ReadSession, job_id: str) -> str:
    row = await experiment_rows.find_by_job(session, job_id)
    return f"experiment {row.id} ({row.name})" if row else f"job {job_id}"


async def _names(session: ReadSession, allocation_ids: Sequence[str]) -> dict[str, str]:
    """Returns what each allocation belongs to, in words."""
    tasks = {each: each.rpartition(".")[0] for each in allocation_ids}
    trials = await trial_rows.names_of_tasks(session, set(tasks.values()))
    others = await task_rows.names(session, set(tasks.values()) - trials.keys())
    names = {
        task_id: f"trial {each.trial_id} of experiment {each.experiment_id} ({each.experiment_name})"
        for task_id, each in trials.items()
    }
    names |= {task_id: f"task {task_id} ({each.description})" for task_id, each in others.items()}
    return {allocation_id: names.get(task_id, allocation_id) for allocation_id, task_id in tasks.items()}
