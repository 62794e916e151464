"""Lets the containers of an allocation wait for each other."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from determined.errors import MasterUnreachable, NotFound, Unauthenticated
from determined.states import ContainerState
from determined_master import notifications
from determined_master.allocations.rendezvous import LATE_SECONDS, addresses, missing
from determined_master.allocations.rendezvous_queries import MeetingAllocation, MeetingContainer, meeting_of
from determined_master.allocations.service import Allocations
from determined_master.auth.principal import Principal
from determined_master.clock import Clock
from determined_master.db.session import Database, ReadSession
from determined_master.logs import repository as logs
from determined_master.notifications import Notifications

LOOK_SECONDS = 30.0
"""A lost notification costs at most this time."""


class Meeting(NamedTuple):
    """The containers of an allocation, in rank order, and which of them asks."""

    addresses: list[str]
    rank: int
    slots: list[int]
    """Number of slots of each."""


class Access(Protocol):
    def check_task(self, principal: Principal, allocation_id: str) -> None: ...

    async def check_user(
        self, session: ReadSession, principal: Principal, allocation_id: str, owner_id: int
    ) -> None: ...

    async def check_exists(self, session: ReadSession, task_id: str) -> None: ...


class RendezvousWait:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        publisher: Notifications,
        allocations: Allocations,
        access: Access,
        master_seen_at: Callable[[], Mapping[str, str]],
    ) -> None:
        """``master_seen_at`` returns agent id → the address at which that agent reaches the master."""
        self._database = database
        self._clock = clock
        self._publisher = publisher
        self._allocations = allocations
        self._access = access
        self._master_seen_at = master_seen_at

    async def of(self, principal: Principal, allocation_id: str, container_id: str) -> Meeting:
        """Waits until every container of the allocation runs; then the allocation is ready.

        Raises Forbidden, NotFound, Unauthenticated where the allocation has ended, and MasterUnreachable where the
        master stops.
        """
        self._access.check_task(principal, allocation_id)
        row, containers = await self._until_all_run(principal, allocation_id, container_id)
        mine = next((c for c in containers if c.id == container_id), None)
        if mine is None:
            raise NotFound(f"allocation {allocation_id} has no container {container_id}")
        if row.ready_at is None:
            async with self._database.write() as session:
                await self._allocations.mark_ready(session, row.id, row.task_id)
        return Meeting(addresses(containers, self._master_seen_at()), mine.rank, [len(c.slot_ids) for c in containers])

    async def _until_all_run(
        self, principal: Principal, allocation_id: str, container_id: str
    ) -> tuple[MeetingAllocation, Sequence[MeetingContainer]]:
        late_at: float | None = self._clock.now().timestamp() + LATE_SECONDS
        async with self._publisher.subscribe(notifications.allocation(allocation_id)) as listener:
            while True:
                async with self._database.read() as session:
                    found = await meeting_of(session, allocation_id)
                    if found is None:
                        raise NotFound(f"allocation '{allocation_id}' not found")
                    row, containers = found
                    await self._access.check_user(session, principal, allocation_id, row.user_id)
                    if row.state.is_terminal:
                        await self._access.check_exists(session, row.task_id)
                if row.state.is_terminal:
                    raise Unauthenticated(f"fenced: allocation {allocation_id} has ended")
                if all(c.state is ContainerState.RUNNING for c in containers):
                    return row, containers
                if self._publisher.closing:
                    # not 404, after which the task would take itself for forgotten and fail
                    raise MasterUnreachable("the master is shutting down; try again")
                left = LOOK_SECONDS if late_at is None else late_at - self._clock.now().timestamp()
                if left <= 0:
                    late_at = None
                    await self._name_the_late(row, container_id, containers)
                    continue
                await listener.wait(min(left, LOOK_SECONDS))

    async def _name_the_late(
        self, row: MeetingAllocation, container_id: str, containers: Sequence[MeetingContainer]
    ) -> None:
        """Logs missing containers to the trial's log once, although every waiting container polls."""
        here = [c for c in containers if c.state is ContainerState.RUNNING]
        if here and here[0].id == container_id:
            async with self._database.write() as session:
                text = f"rendezvous: {missing(containers)}"
                await logs.say(session, row.task_id, row.id, text, self._clock.now(), "WARNING")
