"""Applies registrations, reports and losses of agents to containers and allocations."""

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from determined.link.isolation import Isolation
from determined.link.messages import ContainerExit, ReportedContainer
from determined.states import ContainerState, ExitReason
from determined_master.allocations import agent_containers_repository
from determined_master.allocations.agent_containers_repository import LastReport
from determined_master.allocations.last_output import LastOutput
from determined_master.allocations.observe import declare_ended, end_output, observe
from determined_master.allocations.service import Allocations, AttemptFollower
from determined_master.clock import Clock
from determined_master.db.session import ReadSession, WriteSession
from determined_master.logs.store import Lines, LogStore

logger = logging.getLogger(__name__)


class Containers:
    """Implements the agents feature's callbacks. Every method uses the caller's session."""

    def __init__(self, clock: Clock, allocations: Allocations, follower: AttemptFollower, logs: LogStore) -> None:
        """``follower`` does what follows from each attempt that a report completes."""
        self._clock = clock
        self._allocations = allocations
        self._follower = follower
        self._logs = logs
        self._items = Isolation("reports of agents", logger)

    async def news(
        self, session: ReadSession, agent_id: str, reports: Sequence[ReportedContainer]
    ) -> list[ReportedContainer]:
        known = {each.id: each for each in await agent_containers_repository.reported_on_agent(session, agent_id)}
        return [report for report in reports if _is_news(report, known.get(report.container_id))]

    async def on_report(
        self,
        session: WriteSession,
        agent_id: str,
        reports: Sequence[ReportedContainer],
        last_output: Sequence[Lines] = (),
        *,
        is_isolated: bool = True,
    ) -> Mapping[str, int]:
        if not is_isolated:
            output = LastOutput(self._logs, last_output)
            await observe(session, self._clock, self._allocations, agent_id, reports, output, self._follower)
            return output.stored
        for report in reports:
            await self._items.run("container", report.container_id, partial(self._apply_one, session, agent_id, report))
        return {}

    async def _apply_one(self, session: WriteSession, agent_id: str, report: ReportedContainer) -> None:
        async with session.begin_nested():
            await observe(session, self._clock, self._allocations, agent_id, [report], None, self._follower)

    async def end_unknown(
        self, session: WriteSession, agent_id: str, known: Collection[str], most: int | None = None
    ) -> bool:
        """Ends containers past their assignment that the agent does not know: its data folder was lost. One that had
        ended is unknown once all of its output was sent, whose end this master may not have stored."""
        left = 0
        for container, _ in await agent_containers_repository.live_on_agent(session, agent_id):
            if container.id not in known and container.state is not ContainerState.ASSIGNED:
                left += 1
                if most is not None and left > most:
                    return False
                exit_ = ContainerExit(kind="system", message=f"agent {agent_id} reconnected without this container")
                await declare_ended(session, self._clock, self._allocations, container, exit_, ExitReason.SYSTEM)
        for container, allocation in await agent_containers_repository.with_output_on_agent(session, agent_id):
            if container.id not in known:
                await end_output(session, self._clock, container, allocation)
        return True

    async def lose(self, session: WriteSession, agent_id: str, *, why: str, most: int | None = None) -> bool:
        live = await agent_containers_repository.live_on_agent(session, agent_id, most=most)
        for container, _ in live:
            exit_ = ContainerExit(kind="system", message=why)
            await declare_ended(session, self._clock, self._allocations, container, exit_, ExitReason.AGENT_LOST)
        return len(live) != most

    async def kill(
        self, session: WriteSession, agent_id: str, slot_id: int | None = None, *, why: str, most: int | None = None
    ) -> bool:
        live = await agent_containers_repository.live_on_agent(session, agent_id, most=most, with_killed=False)
        for container, allocation in live:
            if slot_id is None or slot_id in container.slot_ids:
                await self._allocations.kill(session, allocation, why=why, agent_disabled=True)
        return len(live) != most


def _is_news(report: ReportedContainer, known: LastReport | None) -> bool:
    """Returns True if the report changes anything. After its end a container only reports the end of its output."""
    if known is None:
        return report.output_done
    is_other_need = report.needed_environment != known.needed_environment
    is_other_id = bool(report.runtime_id) and report.runtime_id != known.runtime_id
    return report.state is not known.state or report.output_done or is_other_need or is_other_id
