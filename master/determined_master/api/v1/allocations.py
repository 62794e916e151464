"""Routes that a task calls for its allocation: rendezvous, preemption, readiness."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query

from determined.errors import MasterUnreachable, NotFound, Unauthenticated
from determined.states import ContainerState
from determined_master import notifications
from determined_master.allocations import repository
from determined_master.allocations.rendezvous import LATE_SECONDS, addresses, missing
from determined_master.api.dependencies import (
    AllocationsDep,
    ClockDep,
    DatabaseDep,
    NotificationsDep,
    Read,
    RegistryDep,
    TaskOrOwner,
    TrialAccessDep,
    Write,
)
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas.base import Empty, Wire
from determined_master.clock import Clock
from determined_master.db.models import ContainerRow
from determined_master.db.session import Database
from determined_master.logs import repository as logs

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["allocations"])
MAX_POLL_SECONDS = 90


class RendezvousInfo(Wire):
    addresses: list[str]
    rank: int
    slots: list[int]


class RendezvousAnswer(Wire):
    rendezvous_info: RendezvousInfo


class PreemptionAnswer(Wire):
    preempt: bool


@router.get("/allocations/{allocation_id}/resources/{resources_id}/rendezvous")
async def rendezvous(
    allocation_id: str,
    resources_id: str,
    principal: TaskOrOwner,
    access: TrialAccessDep,
    allocations: AllocationsDep,
    clock: ClockDep,
    database: DatabaseDep,
    publisher: NotificationsDep,
    registry: RegistryDep,
) -> RendezvousAnswer:
    """Waits until every container of the allocation runs; then the allocation is ready."""
    late_at: float | None = clock.now().timestamp() + LATE_SECONDS
    async with publisher.subscribe(notifications.allocation(allocation_id)) as listener:
        while True:
            async with database.read() as session:
                row = await access.checked_allocation(session, principal, allocation_id)
                containers = await repository.containers_of(session, allocation_id)
            if row.state.is_terminal:
                raise Unauthenticated(f"fenced: allocation {allocation_id} has ended")
            if all(c.state is ContainerState.RUNNING for c in containers):
                break
            if publisher.closing:
                # not 404, after which the task would take itself for forgotten and fail
                raise MasterUnreachable("the master is shutting down; try again")
            left = 30.0 if late_at is None else late_at - clock.now().timestamp()
            if left <= 0:
                late_at = None
                await _name_the_late(database, clock, row.task_id, allocation_id, resources_id, containers)
                continue
            await listener.wait(min(left, 30.0))
    mine = next((c for c in containers if c.id == resources_id), None)
    if mine is None:
        raise NotFound(f"allocation {allocation_id} has no container {resources_id}")
    if row.ready_at is None:
        async with database.write() as session:
            await allocations.mark_ready(session, row)
    return RendezvousAnswer(
        rendezvous_info=RendezvousInfo(
            addresses=addresses(containers, registry.master_seen_at),
            rank=mine.rank,
            slots=[len(c.slot_ids) for c in containers],
        )
    )


async def _name_the_late(
    database: Database,
    clock: Clock,
    task_id: str,
    allocation_id: str,
    resources_id: str,
    containers: Sequence[ContainerRow],
) -> None:
    """Logs missing containers to the trial's log once, although every waiting container polls."""
    here = [c for c in containers if c.state is ContainerState.RUNNING]
    if here and here[0].id == resources_id:
        async with database.write() as session:
            text = f"rendezvous: {missing(containers)}"
            await logs.say(session, task_id, allocation_id, text, clock.now(), "WARNING")


@router.get("/allocations/{allocation_id}/signals/preemption")
async def preemption(
    allocation_id: str,
    principal: TaskOrOwner,
    access: TrialAccessDep,
    clock: ClockDep,
    database: DatabaseDep,
    publisher: NotificationsDep,
    timeout_seconds: Annotated[int, Query(alias="timeoutSeconds")] = 0,
) -> PreemptionAnswer:
    """Long poll: returns when preemption is requested or the master stops. Once true it stays true."""
    seconds = max(0, min(timeout_seconds, MAX_POLL_SECONDS))
    async with publisher.subscribe(notifications.allocation(allocation_id)) as listener:
        deadline = clock.now().timestamp() + seconds
        while True:
            async with database.read() as session:
                row = await access.checked_allocation(session, principal, allocation_id)
            if row.preempt_requested_at is not None:
                return PreemptionAnswer(preempt=True)
            if row.state.is_terminal:
                raise Unauthenticated(f"fenced: allocation {allocation_id} has ended")
            left = deadline - clock.now().timestamp()
            if left <= 0 or publisher.closing:
                return PreemptionAnswer(preempt=False)
            await listener.wait(left)


@router.post("/allocations/{allocation_id}/signals/ack_preemption")
async def acknowledge(
    allocation_id: str, principal: TaskOrOwner, session: Write, access: TrialAccessDep, allocations: AllocationsDep
) -> Empty:
    """Acknowledges preemption: from now on exit code 0 means that the trial has to be placed again."""
    row = await access.checked_allocation(session, principal, allocation_id)
    await allocations.acknowledge_preemption(session, row)
    return Empty()


@router.post("/allocations/{allocation_id}/ready")
async def ready(
    allocation_id: str, principal: TaskOrOwner, session: Write, access: TrialAccessDep, allocations: AllocationsDep
) -> Empty:
    row = await access.checked_allocation(session, principal, allocation_id)
    await allocations.mark_ready(session, row)
    return Empty()


@router.post("/allocations/{allocation_id}/acceleratorData")
async def accelerator_data(
    allocation_id: str, body: dict[str, Any], principal: TaskOrOwner, session: Read, access: TrialAccessDep
) -> Empty:
    """Accepted and ignored: slots are known from the agent."""
    await access.checked_allocation(session, principal, allocation_id)
    return Empty()
