"""The container of a task into which a stream goes."""

from collections.abc import Sequence
from typing import NamedTuple

from determined.errors import Conflict, NotFound
from determined.states import ContainerState
from determined_master.allocations import rendezvous_queries
from determined_master.allocations import repository as allocations
from determined_master.allocations.rendezvous_queries import MeetingContainer
from determined_master.auth.principal import Principal
from determined_master.db.session import ReadSession
from determined_master.tasks import repository as tasks
from determined_master.users.authorization import Authorization


class Target(NamedTuple):
    """A container that runs."""

    container_id: str
    agent_id: str
    task_id: str = ""


async def find(session: ReadSession, authorization: Authorization, user: Principal, task_id: str, rank: int) -> Target:
    """Returns the container of a task that runs ``rank``.

    Raises NotFound for a task or a rank that does not exist, Forbidden for anyone but the task's owner and admins, and
    Conflict if the task does not run.
    """
    task = await tasks.get(session, task_id)
    await authorization.check_enter(session, user, task.user_id, f"task {task_id}")
    return await container(session, task_id, rank)


async def container(session: ReadSession, task_id: str, rank: int) -> Target:
    """Returns the container of a task that runs ``rank``; the caller has checked who asks. Raises as ``find``."""
    allocation = await allocations.live_of_task(session, task_id)
    if allocation is None:
        raise Conflict(f"task {task_id} does not run: it is paused, waits to be retried, or has ended")
    meeting = await rendezvous_queries.meeting_of(session, allocation.id)
    containers = meeting[1] if meeting is not None else ()
    if not containers:
        raise Conflict(f"task {task_id} waits for slots; `det why` says for what")
    running = container_of(containers, rank)
    if running is None:
        ranks = sum(max(1, len(each.slot_ids)) for each in containers)
        raise NotFound(f"task {task_id} has no rank {rank}; its ranks are 0 to {ranks - 1}")
    if running.state is not ContainerState.RUNNING:
        state = running.state.value.lower()
        raise Conflict(f"the container of rank {rank} of task {task_id} does not run yet or any more: {state}")
    return Target(running.id, running.agent_id, task_id)


def container_of(containers: Sequence[MeetingContainer], rank: int) -> MeetingContainer | None:
    """Returns the container that runs a rank: one rank for each slot, in the order of the containers. Pure."""
    for container in containers:
        ranks = max(1, len(container.slot_ids))
        if rank < ranks:
            return container
        rank -= ranks
    return None
