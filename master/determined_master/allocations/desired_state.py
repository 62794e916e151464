"""The desired state of one agent: which containers it should run or stop, from committed rows."""

import logging

from determined.link.isolation import Isolation
from determined.link.messages import ContainerSpec, DesiredContainer
from determined_launch import environment as names
from determined_master.allocations import agent_containers_repository
from determined_master.allocations.ports import ports_of
from determined_master.db.models import AllocationRow, ContainerRow
from determined_master.db.session import Database
from determined_master.secrets import Secrets

logger = logging.getLogger(__name__)


async def desired_containers(
    database: Database, secrets: Secrets, cluster_id: str, agent_id: str, items: Isolation | None = None
) -> list[DesiredContainer]:
    """Returns the containers that the agent should run or stop.

    ``items`` remembers across calls which containers failed, so that each failure is logged once.
    """
    items = items or Isolation("desired state", logger)
    async with database.read() as session:
        rows = await agent_containers_repository.live_on_agent(session, agent_id)
    found = []
    for container, allocation in rows:
        if not allocation.state.is_live:
            continue
        # Without a spec a running container continues, and one that does not run is not started.
        desired = DesiredContainer(container_id=container.id, allocation_id=allocation.id, state="running")
        with items.attempt("container", container.id):
            desired = _desired(container, allocation, secrets, cluster_id)
        found.append(desired)
    return found


def _desired(container: ContainerRow, allocation: AllocationRow, secrets: Secrets, cluster_id: str) -> DesiredContainer:
    if allocation.kill_requested_at is not None:
        return DesiredContainer(container_id=container.id, allocation_id=allocation.id, state="stopped")
    spec = ContainerSpec.model_validate(allocation.spec)
    token = secrets.task_token(allocation.id)
    ports = {} if allocation.port_block is None else ports_of(allocation.port_block)
    environment = spec.environment | {
        **{name: str(port) for name, port in ports.items()},
        names.CLUSTER_ID: cluster_id,
        names.SESSION_TOKEN: token,
        names.USER_TOKEN: token,
        names.ALLOCATION_KEY: secrets.allocation_key(allocation.id),
        names.RESOURCES_ID: container.id,
    }
    return DesiredContainer(
        container_id=container.id,
        allocation_id=allocation.id,
        state="running",
        spec=spec.model_copy(
            update={
                "environment": environment,
                "slots": container.slot_ids,
                "rank": container.rank,
                "is_distributed": len(container.slot_ids) < allocation.slots,
            }
        ),
    )
