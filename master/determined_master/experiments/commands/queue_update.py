"""Changes the place of jobs in the queue: order, priority, weight and pool, all of a batch or none."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from determined.errors import ApiError, BadRequest, Forbidden, NotFound
from determined.states import AllocationState
from determined_master import notifications
from determined_master.allocations import repository as allocation_rows
from determined_master.clock import Clock
from determined_master.db.base import from_micros
from determined_master.db.models import JobRow
from determined_master.db.session import Database, WriteSession, notify
from determined_master.events import repository as events
from determined_master.experiments import repository
from determined_master.jobs import queue_queries
from determined_master.jobs import repository as jobs
from determined_master.jobs.queue_order import check_passed, check_priority, move
from determined_master.pool_settings import unknown
from determined_master.principal import Principal
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.settings import Settings
from determined_master.tasks import repository as tasks
from determined_master.users.authorization import Authorization


@dataclass(frozen=True)
class QueueChange:
    """What is to change of one job. None and empty texts leave it as it is."""

    job_id: str
    ahead_of: str = ""
    behind_of: str = ""
    priority: int | None = None
    weight: float | None = None
    pool: str = ""


@dataclass(frozen=True)
class Changed:
    """What has changed of one job, or would change."""

    job_id: str
    fields: tuple[str, ...]
    passed: tuple[str, ...] = ()
    """Jobs that were ahead of it and are behind it now."""


class _DryRun(Exception):
    """Rolls the transaction back."""


@dataclass(frozen=True)
class QueueUpdates:
    database: Database
    clock: Clock
    authorization: Authorization
    managers: ResourceManagers
    settings: Settings

    async def apply(
        self, changes: Sequence[QueueChange], principal: Principal, *, dry_run: bool = False
    ) -> list[Changed]:
        """Applies all changes in their order, or none. Returns what has changed, or would.

        Raises the error of a single wrong change, or BadRequest with the errors of all.
        """
        done: list[Changed] = []
        problems: list[ApiError] = []
        try:
            async with self.database.write() as session:
                for change in changes:
                    try:
                        async with session.begin_nested():
                            done.append(await self._apply_one(session, change, principal))
                    except ApiError as error:
                        problems.append(error)
                if problems or dry_run:
                    raise _DryRun
        except _DryRun:
            pass
        if len(problems) == 1:
            raise problems[0]
        if problems:
            kind = Forbidden if all(isinstance(each, Forbidden) for each in problems) else BadRequest
            raise kind("; ".join(each.message for each in problems))
        return done

    async def _apply_one(self, session: WriteSession, change: QueueChange, principal: Principal) -> Changed:
        job = await jobs.get(session, change.job_id)
        owner = (await queue_queries.owners(session, [job.id])).get(job.id)
        if owner is None:
            raise NotFound(f"job {job.id} not found")
        await self.authorization.check_change(session, principal, owner, f"job {job.id}")
        fields: list[str] = []
        passed: tuple[str, ...] = ()
        if change.ahead_of and change.behind_of:
            raise BadRequest("give ahead_of or behind_of, not both")
        if change.pool and change.pool != job.pool:
            await self._to_pool(session, job, change.pool)
            fields.append("pool")
        if change.weight is not None:
            if not math.isfinite(change.weight) or change.weight <= 0:
                raise BadRequest("a weight must be greater than 0")
            await jobs.change(session, job.id, weight=change.weight)
            fields.append("weight")
        if change.priority is not None:
            await self._to_priority(session, job, change.priority, principal)
            fields.append("priority")
        anchor = change.ahead_of or change.behind_of
        if anchor:
            passed = await self._past(session, job, anchor, owner, principal, is_ahead=bool(change.ahead_of))
            fields.append("position")
        await self._record(session, job, fields, principal)
        await self.managers.reorder(session, job.pool)
        return Changed(job.id, tuple(fields), passed)

    async def _to_priority(self, session: WriteSession, job: JobRow, priority: int, principal: Principal) -> None:
        jobs.check_range(priority)
        default = self.settings.priority_in(job.pool)
        check_priority(
            new=priority, old=job.priority, default=default, is_admin=self.authorization.may_improve(principal)
        )
        await jobs.change(session, job.id, priority=priority)
        await session.refresh(job)
        await self._to_config(session, job, priority=priority)

    async def _past(
        self, session: WriteSession, job: JobRow, anchor: str, owner: int, principal: Principal, *, is_ahead: bool
    ) -> tuple[str, ...]:
        queue = await queue_queries.order(session, job.pool)
        if all(each.job_id != job.id for each in queue):
            raise BadRequest(f"job {job.id} neither waits nor runs, so it has no place in the queue")
        moved = move(queue, job.id, anchor=anchor, is_ahead=is_ahead)
        check_passed(moved, owner, is_admin=self.authorization.may_improve(principal))
        if moved.priority != job.priority:
            await self._to_priority(session, job, moved.priority, principal)
        for job_id, position in moved.positions.items():
            await jobs.change(session, job_id, position=from_micros(position))
        return tuple(each.job_id for each in moved.passed)

    async def _to_pool(self, session: WriteSession, job: JobRow, pool: str) -> None:
        """Moves a job: what waits is requested again in the other pool, what runs saves a checkpoint and follows."""
        if pool not in self.settings.pools:
            raise BadRequest("; ".join(unknown(pool, self.settings.pools)))
        old = job.pool
        await jobs.change(session, job.id, pool=pool)
        await session.refresh(job)
        await self._to_config(session, job, resource_pool=pool)
        why = f"its job was moved from pool {old} to pool {pool}"
        for row in await allocation_rows.live_of_tasks(session, await tasks.of_job(session, job.id)):
            if row.state is AllocationState.PENDING:
                await self.managers.withdraw(session, old, [row.id], why=why)
            else:
                await self.managers.preempt(session, row, why=why)
        notify(session, notifications.TRIALS, notifications.TASKS)

    async def _to_config(self, session: WriteSession, job: JobRow, **resources: Any) -> None:  # noqa: ANN401  # values of a configuration
        """Writes what has changed into the experiment's own row, which lists filter and sort by."""
        row = await repository.find_by_job(session, job.id)
        if row is None:
            return
        config = dict(row.config) | {"resources": row.config["resources"] | resources}
        await repository.change(session, row, config=config, pool=job.pool, values_stale=True)
        notify(session, notifications.COLUMNS)

    async def _record(self, session: WriteSession, job: JobRow, fields: Sequence[str], principal: Principal) -> None:
        row = await repository.find_by_job(session, job.id)
        kind, id_ = ("experiment", str(row.id)) if row else ("task", (await tasks.of_job(session, job.id))[0])
        await events.record(
            session,
            self.clock,
            actor=principal.username,
            kind="changed",
            target_type=kind,
            target_id=id_,
            payload={"fields": list(fields)},
        )
