"""Moves the allocations of a job into its pool: those that wait are withdrawn, those that run save a checkpoint.

Their tasks request slots again, in the new pool.
"""

from collections import defaultdict
from collections.abc import Sequence

from determined_master import notifications
from determined_master.allocations import repository as allocation_rows
from determined_master.db.session import WriteSession, notify
from determined_master.jobs import followers_repository
from determined_master.resource_managers.managers import ResourceManagers


async def move_lot(
    session: WriteSession, managers: ResourceManagers, job_ids: Sequence[str], among: Sequence[str] = ()
) -> bool:
    """Moves a lot of the allocations of jobs; with ``among`` only of these. Returns False if there may be more."""
    allocations_found = await followers_repository.misplaced(session, job_ids, among)
    waiting: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in allocations_found:
        if each.is_pending:
            waiting[each.pool, each.to].append(each.allocation_id)
    for (pool, to), ids in waiting.items():
        await managers.withdraw(session, pool, ids, why=_why(pool, to))
    for each in allocations_found:
        if not each.is_pending:
            row = await allocation_rows.get(session, each.allocation_id)
            await managers.preempt(session, row, why=_why(each.pool, each.to))
    notify(session, notifications.TRIALS, notifications.TASKS)
    return not followers_repository.may_be_more(allocations_found)


def _why(old: str, new: str) -> str:
    return f"its job was moved from pool {old} to pool {new}"
