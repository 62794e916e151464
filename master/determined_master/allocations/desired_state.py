"""The desired state of one agent: which containers it should run or stop, from committed rows."""

import logging
from collections.abc import Callable
from typing import Literal

from determined.link.isolation import Isolation
from determined.link.messages import ContainerSpec, DesiredContainer
from determined_launch import environment as names
from determined_master.allocations import agent_containers_repository
from determined_master.allocations.agent_containers_repository import SpecifiedContainer, WantedContainer
from determined_master.allocations.ports import ports_of
from determined_master.auth.principal import Principal
from determined_master.auth.secrets import Secrets
from determined_master.db.session import Database

logger = logging.getLogger(__name__)

KeepTask = Callable[[str, Principal], None]


async def desired_containers(
    database: Database,
    secrets: Secrets,
    cluster_id: str,
    agent_id: str,
    items: Isolation | None = None,
    known: dict[str, DesiredContainer] | None = None,
    task_keeper: Callable[[], KeepTask] | None = None,
) -> list[DesiredContainer]:
    """Returns the containers that the agent should run or stop.

    ``items`` remembers across calls which containers failed, so that each failure is logged once, and ``known`` the
    containers to be run by their ids: they do not change, and their specs are large. ``task_keeper`` returns what keeps
    the token and the principal of each task for its first request.
    """
    keep: KeepTask = task_keeper() if task_keeper is not None else lambda _token, _principal: None
    items = items or Isolation("desired state", logger)
    known = {} if known is None else known
    async with database.read() as session:
        wanted = [
            each for each in await agent_containers_repository.wanted_on_agent(session, agent_id) if each.state.is_live
        ]
        unknown = [each.id for each in wanted if each.kill_requested_at is None and each.id not in known]
        rows = await agent_containers_repository.with_specs(session, unknown) if unknown else []
    for container in rows:
        with items.attempt("container", container.id):
            token = secrets.task_token(container.allocation_id)
            known[container.id] = _desired(container, secrets, cluster_id, token)
            keep(token, container.principal)
    for gone in known.keys() - {each.id for each in wanted}:
        del known[gone]
    # Without a spec a running container continues, and one that does not run is not started.
    return [known[each.id] if each.id in known and each.kill_requested_at is None else _bare(each) for each in wanted]


def _bare(wanted: WantedContainer) -> DesiredContainer:
    state: Literal["running", "stopped"] = "running" if wanted.kill_requested_at is None else "stopped"
    return DesiredContainer(container_id=wanted.id, allocation_id=wanted.allocation_id, state=state)


def _desired(container: SpecifiedContainer, secrets: Secrets, cluster_id: str, token: str) -> DesiredContainer:
    spec = ContainerSpec.model_validate(container.spec)
    ports = {} if container.port_block is None else ports_of(container.port_block)
    environment = spec.environment | {
        **{name: str(port) for name, port in ports.items()},
        names.CLUSTER_ID: cluster_id,
        names.SESSION_TOKEN: token,
        names.USER_TOKEN: token,
        names.ALLOCATION_KEY: secrets.allocation_key(container.allocation_id),
        names.RESOURCES_ID: container.id,
    }
    return DesiredContainer(
        container_id=container.id,
        allocation_id=container.allocation_id,
        state="running",
        spec=spec.model_copy(
            update={
                "environment": environment,
                "slots": container.slot_ids,
                "rank": container.rank,
                "is_distributed": len(container.slot_ids) < container.slots,
                "is_alone": len(container.slot_ids) == container.slots,
            }
        ),
    )
