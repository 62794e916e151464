"""Attempts of a trial: where each ran, how it ended, which rank failed first."""

from collections.abc import Sequence

from determined.link.messages import ContainerExit
from determined_master.allocations import repository as allocation_rows
from determined_master.api.schemas.base import Time, Wire
from determined_master.db.models import AllocationRow, ContainerRow, TrialRow
from determined_master.db.session import ReadSession


class RankShown(Wire):
    rank: int
    host: str
    code: int | None
    signal: int | None
    cause: str
    last_lines: list[str]


class ContainerShown(Wire):
    container_id: str
    rank: int
    agent_id: str
    address: str
    slots: list[int]
    state: str
    exit: str
    """``exited``, ``killed``, ``failed_to_start`` or ``system``; empty while it is live."""
    code: int | None
    signal: int | None
    ranks: list[RankShown]


class Attempt(Wire):
    """``message``: why it is to end or how it ended; for a failure with rank, host, exit code and last lines."""

    run_id: int
    allocation_id: str
    state: str
    started_at: Time | None
    ended_at: Time | None
    reason: str
    code: int | None
    message: str
    failure: str | None
    """One sentence about the cause; None if it has not failed."""
    containers: list[ContainerShown]


class Attempts(Wire):
    attempts: list[Attempt]


async def attempts_of(session: ReadSession, trial: TrialRow) -> list[Attempt]:
    """Returns the attempts, oldest first."""
    rows = await allocation_rows.of_task(session, trial.task_id)
    by_allocation: dict[str, list[ContainerRow]] = {}
    for container in await allocation_rows.containers_of_tasks(session, [trial.task_id]):
        by_allocation.setdefault(container.allocation_id, []).append(container)
    return [_attempt(row, by_allocation.get(row.id, [])) for row in rows]


def _attempt(row: AllocationRow, containers: Sequence[ContainerRow]) -> Attempt:
    return Attempt(
        run_id=row.run_id,
        allocation_id=row.id,
        state=row.state.value,
        started_at=row.placed_at,
        ended_at=row.ended_at,
        reason=row.exit_reason.value if row.exit_reason else "",
        code=row.exit_code,
        message=row.message,
        failure=row.failure,
        containers=[_container(c) for c in sorted(containers, key=lambda c: c.rank)],
    )


def _container(row: ContainerRow) -> ContainerShown:
    ended = ContainerExit.model_validate(row.exit) if row.exit else None
    return ContainerShown(
        container_id=row.id,
        rank=row.rank,
        agent_id=row.agent_id,
        address=row.address,
        slots=row.slot_ids,
        state=row.state.value,
        exit=ended.kind if ended else "",
        code=ended.code if ended else None,
        signal=ended.signal if ended else None,
        ranks=[RankShown(**rank.model_dump(exclude={"time"})) for rank in (ended.ranks if ended else [])],
    )
