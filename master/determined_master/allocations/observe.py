"""Applies the reported state of agents to containers and allocations."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from determined.link.messages import ContainerExit, ReportedContainer
from determined.states import AllocationState, ContainerState, ExitReason
from determined_master import notifications
from determined_master.allocations import repository
from determined_master.allocations.service import Allocations
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ContainerRow
from determined_master.db.session import WriteSession, notify

_ORDER = list(ContainerState)
_SHOWN = {
    ContainerState.ASSIGNED: AllocationState.ASSIGNED,
    ContainerState.PULLING: AllocationState.PULLING,
    ContainerState.STARTING: AllocationState.STARTING,
    ContainerState.RUNNING: AllocationState.RUNNING,
}
_ALLOCATION_ORDER = list(AllocationState)


@dataclass(frozen=True)
class End:
    reason: ExitReason
    code: int | None
    message: str


def further(current: ContainerState, seen: ContainerState) -> ContainerState:
    """Returns the later state: containers only move forward, so an old report changes nothing."""
    return max(current, seen, key=_ORDER.index)


def end_of(exits: Sequence[ContainerExit], *, killed: bool, acknowledged: bool) -> End:
    """Why an allocation ended, from how all its containers did (semantics 2.3).

    A container that failed by itself says why, even where its peers were killed for it; of several the one whose
    worker failed first, since the others' workers mostly fail for want of it. One that broke while it was leaving has
    failed all the same; its last checkpoint holds.
    """
    for exit_ in exits:
        if exit_.kind == "failed_to_start":
            return End(ExitReason.ERRORED, exit_.code, exit_.message)
    failed = min((e for e in exits if e.kind == "exited" and _has_failed(e)), key=_failed_at, default=None)
    if failed is not None:
        return End(ExitReason.ERRORED, _code(failed), failed.message or _words(failed))
    if killed or any(exit_.kind == "killed" for exit_ in exits):
        return End(ExitReason.KILLED, None, "killed as asked")
    for exit_ in exits:
        if exit_.kind == "system":
            return End(ExitReason.SYSTEM, None, exit_.message)
    return End(ExitReason.PREEMPTED if acknowledged else ExitReason.COMPLETED, 0, "")


async def observe(
    session: WriteSession,
    clock: Clock,
    allocations: Allocations,
    agent_id: str,
    reports: Iterable[ReportedContainer],
) -> None:
    """Applies the reported state of one agent. Containers of other agents are ignored."""
    for report in reports:
        container = await repository.find_container(session, report.container_id)
        if container is None or container.agent_id != agent_id:
            continue
        if report.output_done and not container.output_done:
            container.output_done = True
            await session.flush()
            await _notify_logs(session, container)
        state = further(container.state, report.state)
        if state is container.state:
            continue
        values: dict[str, Any] = {"address": report.address}
        if state is ContainerState.TERMINATED:
            ended = report.exit or ContainerExit(kind="system", message="ended without an exit record")
            values["exit"] = ended.model_dump(mode="json")
        await repository.move_container(session, clock, container, state, **values)
        await _follow(session, clock, allocations, container)


async def declare_ended(
    session: WriteSession,
    clock: Clock,
    allocations: Allocations,
    container: ContainerRow,
    exit_: ContainerExit,
    reason: ExitReason,
) -> None:
    """Ends a container that its agent does not know any more, or whose agent is lost."""
    values = {"exit": exit_.model_dump(mode="json"), "output_done": True}
    if not await repository.move_container(session, clock, container, ContainerState.TERMINATED, **values):
        return
    row = await repository.get(session, container.allocation_id)
    notify(session, notifications.task(row.task_id))
    if row.state.is_live:
        await allocations.end(session, row, reason, message=exit_.message)


async def _follow(session: WriteSession, clock: Clock, allocations: Allocations, container: ContainerRow) -> None:
    """Brings the allocation into the state that follows from its containers."""
    row = await repository.get(session, container.allocation_id)
    notify(session, notifications.task(row.task_id))
    if row.state.is_terminal:
        return
    containers = await repository.containers_of(session, row.id)
    if all(c.state is ContainerState.TERMINATED for c in containers):
        exits = [ContainerExit.model_validate(c.exit) for c in containers]
        end = end_of(exits, killed=row.kill_requested_at is not None, acknowledged=row.preempt_acked_at is not None)
        await allocations.end(session, row, end.reason, code=end.code, message=end.message)
        return
    ended = [ContainerExit.model_validate(c.exit) for c in containers if c.state is ContainerState.TERMINATED]
    if any(exit_.kind != "exited" or _has_failed(exit_) for exit_ in ended):
        # One failed container ends its peers.
        await allocations.kill(session, row)
        return
    lives = (c.state for c in containers if c.state is not ContainerState.TERMINATED)
    shown = _SHOWN[max(lives, key=_ORDER.index)]
    if _ALLOCATION_ORDER.index(shown) > _ALLOCATION_ORDER.index(row.state):
        await repository.move(session, clock, row, shown)
    # Also where the allocation's own state stays: its containers wait for each other.
    notify(session, notifications.allocation(row.id))


async def _notify_logs(session: WriteSession, container: ContainerRow) -> None:
    row: AllocationRow = await repository.get(session, container.allocation_id)
    notify(session, notifications.logs(row.task_id))


def _has_failed(exit_: ContainerExit) -> bool:
    return bool(exit_.code or exit_.signal)


def _failed_at(exit_: ContainerExit) -> float:
    return min((r.time for r in exit_.ranks if r.time and (r.code or r.signal)), default=math.inf)


def _code(exit_: ContainerExit) -> int | None:
    return exit_.code if exit_.code is not None else (128 + exit_.signal if exit_.signal else None)


def _words(exit_: ContainerExit) -> str:
    if exit_.signal:
        return f"killed by signal {exit_.signal}"
    return f"exited with code {exit_.code}"
