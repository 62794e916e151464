"""Applies the reported state of agents to containers and allocations."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from determined.link.messages import ContainerExit, RankExit, ReportedContainer
from determined.states import AllocationState, ContainerState, ExitReason
from determined_master import notifications
from determined_master.agents import repository as agent_rows
from determined_master.allocations import exit_line, repository
from determined_master.allocations.last_output import LastOutput
from determined_master.allocations.service import PEER_ENDED, Allocations, AttemptFollower
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ContainerRow
from determined_master.db.session import WriteSession, notify
from determined_master.events.state_machine import Event

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


def end_of(exits: Sequence[ContainerExit], *, killed: bool, acknowledged: bool, asked: str = "") -> End:
    """Returns why an allocation ended, from how all its containers ended (semantics 2.3).

    ``killed``: somebody asked to kill it, other than because of one of these exits. ``asked`` says why it was asked to
    end. A container that failed by itself gives the reason, also if its peers were
    killed because of it. One that failed while it was leaving has failed all the same; its last checkpoint holds.
    """
    failed = first_failed(exits)
    if failed is not None:
        is_started = failed.kind == "exited"
        message = failed.message or _words(failed) if is_started else failed.message
        return End(ExitReason.ERRORED, _code(failed) if is_started else failed.code, message)
    system = next((exit_ for exit_ in exits if exit_.kind == "system"), None)
    if system is not None and not killed:
        return End(ExitReason.SYSTEM, None, system.message)
    if killed or any(exit_.kind == "killed" for exit_ in exits):
        return End(ExitReason.KILLED, None, asked or "stopped by its agent")
    return End(ExitReason.PREEMPTED, 0, asked) if acknowledged else End(ExitReason.COMPLETED, 0, "")


def first_failed(exits: Sequence[ContainerExit]) -> ContainerExit | None:
    """Returns the exit that caused the others, or None if no container failed by itself.

    That is one that could not start, else the one whose worker failed first: its peers mostly fail because of it.
    """
    unfit = next((each for each in exits if each.kind == "failed_to_start"), None)
    return unfit or min((e for e in exits if e.kind == "exited" and has_failed(e)), key=_failed_at, default=None)


async def observe(
    session: WriteSession,
    clock: Clock,
    allocations: Allocations,
    agent_id: str,
    reports: Iterable[ReportedContainer],
    last_output: LastOutput | None = None,
    follower: AttemptFollower | None = None,
) -> None:
    """Applies the reported state of one agent. Containers of other agents are ignored. ``follower`` does what follows
    from attempts that have completed; without one the loops do."""
    for report in reports:
        attempt = await repository.attempt_of(session, report.container_id)
        if attempt is None:
            continue
        row, containers = attempt
        container = next(each for each in containers if each.id == report.container_id)
        if container.agent_id != agent_id:
            continue
        values = _changed_values(session, row, container, report)
        state = further(container.state, report.state)
        if state is container.state:
            if values:
                await repository.change_container(session, container, **values)
            if values.get("output_done"):
                await exit_line.write_after_output(session, clock, row)
            continue
        values["address"] = report.address
        if state is ContainerState.TERMINATED:
            ended = report.exit or ContainerExit(kind="system", message="ended without an exit record")
            values["exit"] = ended.model_dump(mode="json")
            if last_output is not None and (stored := await last_output.store(session, container)):
                values |= stored
                _notify_logs(session, row)
        await repository.move_container(session, clock, container, state, **values)
        await _follow(session, clock, allocations, follower, row, containers, is_ready=report.is_ready)


def _changed_values(
    session: WriteSession, row: AllocationRow, container: ContainerRow, report: ReportedContainer
) -> dict[str, Any]:
    """Returns the columns, other than the state, that the report changes."""
    values: dict[str, Any] = {}
    if report.output_done and not container.output_done:
        values["output_done"] = True
        _notify_logs(session, row)
    if report.needed_environment != container.needed_environment:
        values["needed_environment"] = report.needed_environment
        notify(session, notifications.ENVIRONMENTS)
    if report.runtime_id and report.runtime_id != container.runtime_id:
        values["runtime_id"] = report.runtime_id
    if report.start_note and report.start_note != container.start_note:
        values["start_note"] = report.start_note
    return values


async def declare_ended(
    session: WriteSession,
    clock: Clock,
    allocations: Allocations,
    container: ContainerRow,
    exit_: ContainerExit,
    reason: ExitReason,
) -> None:
    """Marks a container as ended that its agent does not know any more, or whose agent is lost."""
    values = {"exit": exit_.model_dump(mode="json"), "output_done": True}
    if not await repository.move_container(session, clock, container, ContainerState.TERMINATED, **values):
        return
    row = await repository.get(session, container.allocation_id)
    notify(session, notifications.task(row.task_id))
    if row.state.is_live:
        await allocations.end(session, row, reason, message=exit_.message)


async def end_output(session: WriteSession, clock: Clock, container: ContainerRow, row: AllocationRow) -> None:
    """Marks the output of an ended container as complete that its agent does not know any more."""
    await repository.change_container(session, container, output_done=True)
    await exit_line.write_after_output(session, clock, row)
    _notify_logs(session, row)


async def _follow(
    session: WriteSession,
    clock: Clock,
    allocations: Allocations,
    follower: AttemptFollower | None,
    row: AllocationRow,
    containers: list[ContainerRow],
    *,
    is_ready: bool,
) -> None:
    """Brings the allocation into the state that follows from its containers. ``is_ready``: they need no rendezvous."""
    notify(session, notifications.task(row.task_id))
    if row.state.is_terminal:
        return
    if all(c.state is ContainerState.TERMINATED for c in containers):
        if is_ready and row.ready_at is None:
            # It ran for too short a time to be reported as running.
            await allocations.mark_ready(session, row.id, row.task_id)
        agents = {c.agent_id for c in containers}
        # Times of one clock are compared with each other only.
        skews = await agent_rows.clock_skews(session, agents) if len(agents) > 1 else {}
        exits = [by_our_clock(ContainerExit.model_validate(c.exit), skews.get(c.agent_id, 0)) for c in containers]
        killed = row.kill_requested_at is not None and row.message != PEER_ENDED
        acknowledged = row.preempt_acked_at is not None
        end = end_of(exits, killed=killed, acknowledged=acknowledged, asked=row.message)
        await allocations.end(
            session, row, end.reason, code=end.code, message=end.message, agent_ids=agents, follower=follower
        )
        return
    ended = [ContainerExit.model_validate(c.exit) for c in containers if c.state is ContainerState.TERMINATED]
    if any(exit_.kind != "exited" or has_failed(exit_) for exit_ in ended):
        # A failed container ends its peers.
        await allocations.kill(session, row, why=PEER_ENDED)
        return
    lives = (c.state for c in containers if c.state is not ContainerState.TERMINATED)
    shown = _SHOWN[max(lives, key=_ORDER.index)]
    if _ALLOCATION_ORDER.index(shown) > _ALLOCATION_ORDER.index(row.state):
        is_ready = is_ready and all(c.state is ContainerState.RUNNING for c in containers)
        event, values = (Event(kind="ready"), {"ready_at": clock.now()}) if is_ready else (Event(), {})
        await repository.move(session, clock, row, shown, event, **values)
    # Published also if the allocation's state is unchanged: its containers wait for each other.
    notify(session, notifications.allocation(row.id))


def _notify_logs(session: WriteSession, row: AllocationRow) -> None:
    notify(session, notifications.logs(row.task_id))
    if row.state.is_terminal and not row.settled:
        # Trials with log policies are settled once all output of their attempt is stored.
        notify(session, notifications.TRIALS)


def by_our_clock(exit_: ContainerExit, skew: int) -> ContainerExit:
    """Returns the exit with the times of its workers as the master's clock would show them. ``skew``: of its agent.

    Otherwise the agent whose clock is behind would seem to have failed first.
    """
    ranks = [rank.model_copy(update={"time": rank.time - skew}) if rank.time else rank for rank in exit_.ranks]
    return exit_.model_copy(update={"ranks": ranks}) if skew else exit_


def has_failed(exit_: ContainerExit | RankExit) -> bool:
    return bool(exit_.code or exit_.signal)


def _failed_at(exit_: ContainerExit) -> float:
    return min((r.time for r in exit_.ranks if r.time and has_failed(r)), default=math.inf)


def _code(exit_: ContainerExit) -> int | None:
    return exit_.code if exit_.code is not None else (128 + exit_.signal if exit_.signal else None)


def _words(exit_: ContainerExit) -> str:
    if exit_.signal:
        return f"killed by signal {exit_.signal}"
    return f"exited with code {exit_.code}"
