"""Life cycle of tasks that are not trials: create, request slots, kill, settle ended attempts."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from determined.config.masking import secret_values
from determined.link.messages import ContainerExit, ContainerSpec
from determined.states import ExitReason, TaskKind, TaskState
from determined_launch import environment as names
from determined_master import notifications
from determined_master.allocations import environment_wait_repository, exit_line
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.failures import ContainerEnd, cause_of
from determined_master.allocations.service import SlotRequest
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ContainerRow, TaskRow, UserRow
from determined_master.db.session import WriteSession, notify
from determined_master.events import repository as events
from determined_master.jobs import repository as jobs
from determined_master.logs import repository as logs
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.scheduling.view import Constraints, TaskGroup
from determined_master.tasks import repository
from determined_master.tasks.states import POLICIES, AttemptEnd, decide, sequel
from determined_master.users import repository as users
from determined_master.users.agent_user import run_as

PREEMPTION_TIMEOUT_SECONDS = 10
"""Such a task has no checkpoint to save: it is killed soon after a cluster that shuts down has asked it to end."""


@dataclass(frozen=True)
class NewTask:
    """A task to create. ``spec`` leaves out slots, rank, tokens, and the ids of task and attempt."""

    kind: TaskKind
    user_id: int
    owner: str
    description: str
    spec: ContainerSpec
    config: dict[str, Any]
    slots: int
    pool: str
    priority: int
    weight: float = 1.0
    workspace_id: int | None = None
    experiment_id: int | None = None
    agent_id: str | None = None
    """The only agent that may run it."""
    environment_key: str | None = None
    idle_timeout: float | None = None
    """Seconds without use after which it ends; None for never."""


class Tasks:
    """Every method works inside the caller's session."""

    def __init__(self, clock: Clock, managers: ResourceManagers) -> None:
        self._clock = clock
        self._managers = managers

    async def create(self, session: WriteSession, new: NewTask) -> TaskRow:
        """Adds the task and its job; the loop of tasks requests its slots."""
        now = self._clock.now()
        job_id, task_id = str(uuid.uuid4()), str(uuid.uuid4())
        await jobs.add(session, job_id, pool=new.pool, priority=new.priority, position=now, weight=new.weight)
        context = new.spec.context
        row = TaskRow(
            id=task_id,
            kind=new.kind,
            job_id=job_id,
            user_id=new.user_id,
            experiment_id=new.experiment_id,
            token_scope=POLICIES[new.kind].token_scope,
            created_at=now,
            state=TaskState.ACTIVE,
            description=new.description,
            config=new.config,
            context_hash=context.hash if context else None,
            context_size=context.size if context else 0,
            workspace_id=new.workspace_id,
            slots=new.slots,
            agent_id=new.agent_id,
            environment_key=new.environment_key,
            idle_timeout=new.idle_timeout,
            spec=new.spec.model_copy(update={"task_id": task_id, "task_type": new.kind.value}).model_dump(mode="json"),
        )
        await repository.add(session, row)
        await events.record(
            session,
            self._clock,
            actor=new.owner,
            kind="created",
            target_type="task",
            target_id=task_id,
            payload={"kind": new.kind.value, "description": new.description},
        )
        return row

    async def request_slots(self, session: WriteSession, row: TaskRow) -> None:
        """Requests slots for a new attempt."""
        job = await jobs.get(session, row.job_id)
        user = await users.get(session, row.user_id)
        run_id = row.run_id + 1
        built = (await environment_wait_repository.take_ended(session, [row.id])).get(row.id, [])
        request = SlotRequest(
            task_id=row.id,
            run_id=run_id,
            groups=(TaskGroup(row.kind.value.lower(), slots=row.slots, constraints=Constraints(True, row.agent_id)),),
            pool=job.pool,
            priority=job.priority,
            owner=user.username,
            user_id=row.user_id,
            submitted_at=job.position,
            spec=_attempt_spec(row, run_id, user) | {"built_environments": built},
            preemption_timeout=PREEMPTION_TIMEOUT_SECONDS,
        )
        await repository.change(session, row, run_id=run_id, retry_at=None)
        await self._managers.request(session, [request])

    async def kill(self, session: WriteSession, row: TaskRow, actor: str, reason: str = "") -> None:
        """Kills the task; no-op if it has ended or is stopping. ``reason``: why the master does so; empty if a user
        does."""
        if row.state is not TaskState.ACTIVE:
            return
        await repository.move(session, self._clock, row, TaskState.STOPPING, actor=actor, failure=reason or None)
        live = await allocation_rows.live_of_task(session, row.id)
        if live is not None:
            await self._managers.kill(session, live, why=reason or f"killed by {actor}")

    async def finish_stopped(self, session: WriteSession, row: TaskRow) -> None:
        """Ends a STOPPING task that has no attempt to settle."""
        if row.state is TaskState.STOPPING and not await repository.has_open(session, row.id):
            await repository.move(session, self._clock, row, TaskState.CANCELED, exit_reason=ExitReason.KILLED)

    async def settle(self, session: WriteSession, row: TaskRow, ended: AllocationRow) -> None:
        """Settles an ended allocation once: applies the outcome to its task."""
        reason = ended.exit_reason or ExitReason.SYSTEM
        containers = await allocation_rows.containers_of(session, ended.id)
        cause = _cause(reason, ended, containers, row)
        if row.state is not None and row.state.is_live and ended.run_id == row.run_id:
            await self._apply(session, row, row.state, reason, ended, cause)
        await exit_line.write(session, self._clock, ended, containers)
        values: dict[str, Any] = {"settled": True} if cause is None else {"settled": True, "failure": cause}
        await allocation_rows.change(session, ended, **values)

    async def _apply(
        self,
        session: WriteSession,
        row: TaskRow,
        state: TaskState,
        reason: ExitReason,
        ended: AllocationRow,
        cause: str | None,
    ) -> None:
        is_shut_out = ended.ready_at is not None and ended.agent_disabled
        outcome = decide(AttemptEnd(row.kind, state, reason, row.failures, is_shut_out))
        if outcome.state is None:
            retry_at = self._clock.now() + timedelta(seconds=outcome.backoff) if outcome.backoff else None
            await repository.change(session, row, failures=outcome.failures, retry_at=retry_at)
        else:
            is_failed = outcome.state is TaskState.ERROR
            if is_failed and cause is None:
                cause = f"{ended.message}; a {row.kind.value.lower()} that has begun does not start again"
            await repository.move(
                session,
                self._clock,
                row,
                outcome.state,
                exit_reason=outcome.reason,
                exit_code=ended.exit_code,
                failure=cause if is_failed else row.failure,
            )
        notify(session, notifications.TASKS)
        if cause is not None and state is not TaskState.STOPPING:
            text = sequel(row.kind, outcome, cause)
            await logs.say(session, row.id, ended.id, text, self._clock.now(), "ERROR")


def _attempt_spec(row: TaskRow, run_id: int, owner: UserRow) -> dict[str, Any]:
    """Returns the task's spec with the ids of one attempt."""
    spec = dict(row.spec or {})
    allocation_id = f"{row.id}.{run_id}"
    identity = run_as(owner.agent_user_group)
    return spec | {
        "run_as": None if identity is None else identity.model_dump(),
        "environment": spec["environment"]
        | {
            names.TASK_ID: row.id,
            names.TASK_TYPE: row.kind.value,
            names.ALLOCATION_ID: allocation_id,
            names.USER: owner.username,
            "DET_TASK_LOGGING_METADATA": json.dumps({"task_id": row.id, "allocation_id": allocation_id}),
            "DET_RESOURCES_TYPE": "docker-container",
            "DET_SEGMENT_ENABLED": "false",
        },
    }


def _cause(reason: ExitReason, ended: AllocationRow, containers: Sequence[ContainerRow], row: TaskRow) -> str | None:
    ends = [ContainerEnd(c.agent_id, ContainerExit.model_validate(c.exit)) for c in containers if c.exit]
    return cause_of(reason, ended.message, ends, secret_values(row.config or {}))
