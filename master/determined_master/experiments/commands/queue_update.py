"""Changes the place of jobs in the queue: order, priority, weight and pool, all of a batch or none."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from determined.errors import ApiError, BadRequest, Conflict, Forbidden, NotFound
from determined_master import notifications
from determined_master.auth.principal import Principal
from determined_master.clock import Clock
from determined_master.db.models import ExperimentRow
from determined_master.db.session import Database, ReadSession, WriteSession, notify
from determined_master.db.statements.batches import batched
from determined_master.events import repository as events
from determined_master.experiments import repository
from determined_master.jobs import queue_queries
from determined_master.jobs import repository as jobs
from determined_master.jobs.pool_moves import move_lot
from determined_master.jobs.queue_decision import JobChange, Place, QueueChange, QueueDecision, QueueRules, decide
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.settings.settings import Settings
from determined_master.tasks import repository as tasks
from determined_master.users import pool_account
from determined_master.users.authorization import Authorization

MAX_ATTEMPTS = 10
MAX_IDS_A_STATEMENT = 10_000


class _Outdated(Exception):
    """Somebody else has changed a job since it was read."""


@dataclass(frozen=True)
class QueueUpdates:
    """Reads the jobs and their queues, decides, and stores what was decided if nobody has changed these jobs since.

    A queue may be very long, so it is neither read nor searched while others wait to write.
    """

    database: Database
    clock: Clock
    authorization: Authorization
    managers: ResourceManagers
    settings: Settings

    async def apply(
        self, changes: Sequence[QueueChange], principal: Principal, *, dry_run: bool = False
    ) -> list[JobChange]:
        """Applies all changes in their order, or none. Returns what has changed, or would.

        Raises the error of a single wrong change, or BadRequest with the errors of all.
        """
        for _ in range(MAX_ATTEMPTS):
            async with self.database.read() as session:
                decision = await self._decided(session, changes, principal)
            if dry_run:
                return decision.done
            try:
                async with self.database.write() as session:
                    await self._store(session, decision, principal)
            except _Outdated:
                continue
            return decision.done
        raise Conflict("the queue changes faster than this change can be applied; try again")

    async def _decided(
        self, session: ReadSession, changes: Sequence[QueueChange], principal: Principal
    ) -> QueueDecision:
        ids = list(dict.fromkeys(change.job_id for change in changes))
        rows, owners = await jobs.get_many(session, ids), await queue_queries.owners(session, ids)
        refused: dict[int, ApiError] = {}
        pools: set[str] = set()
        for index, change in enumerate(changes):
            row, owner = rows.get(change.job_id), owners.get(change.job_id)
            if row is None or owner is None:
                refused[index] = NotFound(f"job '{change.job_id}' not found")
                continue
            try:
                await self.authorization.check_change(session, principal, owner, f"job {row.id}")
                if change.pool and change.pool != row.pool:
                    await pool_account.check(session, principal, self.settings.pools.get(change.pool))
            except ApiError as error:
                refused[index] = error
                continue
            if any(each.ahead_of or each.behind_of for each in changes if each.job_id == row.id):
                pools |= {row.pool, change.pool or row.pool}
        queues = {pool: await queue_queries.order(session, pool) for pool in pools}
        places = {job_id: Place.of(row) for job_id, row in rows.items()}
        may_improve = self.authorization.may_improve(principal)
        rules = QueueRules(self.settings.priority_in, list(self.settings.pools), is_admin=may_improve)
        decision = await asyncio.to_thread(decide, changes, refused, places, owners, queues, rules)
        _raise_all(decision.problems)
        return decision

    async def _store(self, session: WriteSession, decision: QueueDecision, principal: Principal) -> None:
        for batch in batched(list(decision.read), MAX_IDS_A_STATEMENT):
            rows = await jobs.get_many(session, batch)
            if any(job_id not in rows or decision.read[job_id] != Place.of(rows[job_id]) for job_id in batch):
                raise _Outdated
        await jobs.change_many(session, decision.values)
        experiments = await repository.find_by_jobs(session, [each.job_id for each in decision.done])
        for job_id, row in experiments.items():
            resources = decision.resources(job_id)
            if resources:
                config = dict(row.config) | {"resources": row.config["resources"] | resources}
                pool = resources.get("resource_pool", row.pool)
                await repository.change(session, row, config=config, pool=pool, values_stale=True)
                notify(session, notifications.COLUMNS)
        moved = [job_id for job_id, values in decision.values.items() if "pool" in values]
        if moved and not await move_lot(session, self.managers, moved):
            notify(session, notifications.JOBS)  # a loop goes on with the others (loops/job_followers.py)
        for pool in {place.pool for place in decision.read.values()}:
            await self.managers.reorder(session, pool)
        await self._record(session, decision.done, experiments, principal)

    async def _record(
        self,
        session: WriteSession,
        done: Sequence[JobChange],
        experiments: Mapping[str, ExperimentRow],
        principal: Principal,
    ) -> None:
        for kind in ("experiment", "task"):
            entries: list[tuple[str, object, Mapping[str, Any]]] = []
            for each in done:
                row = experiments.get(each.job_id)
                if (row is not None) == (kind == "experiment"):
                    id_ = row.id if row is not None else (await tasks.of_job(session, each.job_id))[0]
                    entries.append(("changed", id_, {"fields": list(each.fields)}))
            actor = principal.username
            await events.record_all(session, self.clock, actor=actor, target_type=kind, rows=entries)


def _raise_all(problems: Sequence[ApiError]) -> None:
    if len(problems) == 1:
        raise problems[0]
    if problems:
        kind = Forbidden if all(isinstance(each, Forbidden) for each in problems) else BadRequest
        raise kind("; ".join(each.message for each in problems))
