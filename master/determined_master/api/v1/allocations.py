"""Routes that a task calls for its allocation: rendezvous, preemption, readiness."""

import time
from typing import Annotated, Any

from fastapi import APIRouter, Query

from determined.errors import Unauthenticated
from determined_master import notifications
from determined_master.api.dependencies import (
    AllocationsDep,
    DatabaseDep,
    NotificationsDep,
    Read,
    RendezvousDep,
    TaskOrOwner,
    TrialAccessDep,
    Write,
)
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas.base import Empty, Wire

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
    allocation_id: str, resources_id: str, principal: TaskOrOwner, meetings: RendezvousDep
) -> RendezvousAnswer:
    """Waits until every container of the allocation runs; then the allocation is ready."""
    meeting = await meetings.of(principal, allocation_id, resources_id)
    return RendezvousAnswer(rendezvous_info=RendezvousInfo(**meeting._asdict()))


@router.get("/allocations/{allocation_id}/signals/preemption")
async def preemption(
    allocation_id: str,
    principal: TaskOrOwner,
    access: TrialAccessDep,
    database: DatabaseDep,
    publisher: NotificationsDep,
    timeout_seconds: Annotated[int, Query(alias="timeoutSeconds")] = 0,
) -> PreemptionAnswer:
    """Long poll: returns when preemption is requested or the master stops. Once true it stays true."""
    seconds = max(0, min(timeout_seconds, MAX_POLL_SECONDS))
    async with publisher.subscribe(notifications.allocation(allocation_id)) as listener:
        deadline = time.monotonic() + seconds
        while True:
            async with database.read() as session:
                row = await access.checked_allocation(session, principal, allocation_id)
            if row.preempt_requested_at is not None:
                return PreemptionAnswer(preempt=True)
            if row.state.is_terminal:
                raise Unauthenticated(f"fenced: allocation {allocation_id} has ended")
            left = deadline - time.monotonic()
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
    await allocations.mark_ready(session, row.id, row.task_id)
    return Empty()


@router.post("/allocations/{allocation_id}/acceleratorData")
async def accelerator_data(
    allocation_id: str, body: dict[str, Any], principal: TaskOrOwner, session: Read, access: TrialAccessDep
) -> Empty:
    """Accepted and ignored: slots are known from the agent."""
    await access.checked_allocation(session, principal, allocation_id)
    return Empty()
