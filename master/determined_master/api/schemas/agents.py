"""Wire models of agents and slots."""

from collections.abc import Sequence
from typing import Any

from determined_master.agents import clock_skew
from determined_master.api.schemas.base import WIRE_VERSION, Pagination, Time, Wire
from determined_master.api.schemas.enums import state
from determined_master.db.models import AgentRow, AgentSlotRow, AllocationRow, ContainerRow


class Device(Wire):
    id: int
    brand: str = ""
    uuid: str = ""
    type: str = "TYPE_CPU"


class Container(Wire):
    id: str
    state: str
    parent: str | None = None
    devices: list[Device] = []
    permission_denied: bool = False


class Slot(Wire):
    id: str
    device: Device
    enabled: bool
    draining: bool
    status: str = "free"
    """Of this product: ``free``, ``occupied`` by a program outside the cluster, or ``unhealthy``."""
    reason: str = ""
    container: Container | None = None


class Agent(Wire):
    id: str
    slot_stats: dict[str, Any]
    addresses: list[str] = []
    containers: dict[str, Container] = {}
    draining: bool = False
    enabled: bool = True
    connected: bool = True
    registered_time: Time | None = None
    resource_pools: list[str] = []
    slots: dict[str, Slot] = {}
    version: str = ""
    """Version that clients of the older product expect; ``/detent/cluster/overview`` has the agent's own."""
    warning: str = ""
    """Of this product: a sentence about a clock that differs from the master's."""
    origin: str = ""
    """Of this product: what it runs in, such as ``Slurm job 550``."""
    leaving: bool = False
    """Of this product: nothing new is placed on it, because it ends by itself soon."""
    leaves_at: Time | None = None
    """Of this product: when it ends by itself, if that is known."""
    leaves_why: str = ""
    """Of this product: why it ends then."""


class AgentAnswer(Wire):
    agent: Agent


class AgentsAnswer(Wire):
    agents: list[Agent]
    pagination: Pagination


class SlotAnswer(Wire):
    slot: Slot


class SlotsAnswer(Wire):
    slots: list[Slot]


class DisableBody(Wire):
    drain: bool = False


def slot_key(agent_id: str, slot_id: int | str) -> str:
    """Returns the key of a slot in ``Agent.slots``."""
    return f"/agents/{agent_id}/slots/{slot_id}"


def agent(row: AgentRow, slots: Sequence[AgentSlotRow], running: Sequence[tuple[ContainerRow, AllocationRow]]) -> Agent:
    devices = {s.slot_id: device(s) for s in slots}
    containers = {
        c.id: Container(
            id=c.id,
            state=state(c.state),
            parent=a.id,
            devices=[devices[i] for i in c.slot_ids if i in devices],
        )
        for c, a in running
    }
    holder = {slot_id: containers[c.id] for c, _ in running for slot_id in c.slot_ids}
    shown = {
        slot_key(row.id, s.slot_id): Slot(
            id=str(s.slot_id),
            device=devices[s.slot_id],
            enabled=s.enabled and row.enabled,
            draining=s.draining or row.draining,
            status=s.status,
            reason=s.status_reason,
            container=holder.get(s.slot_id),
        )
        for s in slots
    }
    return Agent(
        id=row.id,
        addresses=[row.hostname] if row.hostname else [],
        slot_stats=_stats(list(shown.values())),
        containers=containers,
        draining=row.draining,
        enabled=row.enabled,
        connected=row.disconnected_at is None,
        registered_time=row.registered_at,
        resource_pools=[row.pool],
        slots=shown,
        version=WIRE_VERSION,
        warning=clock_skew.warning(row.id, row.clock_skew),
        origin=row.origin,
        leaving=row.leaving,
        leaves_at=row.leaves_at,
        leaves_why=row.leaves_why,
    )


def device(row: AgentSlotRow) -> Device:
    return Device(id=row.slot_id, brand=row.brand, uuid=row.uuid, type=f"TYPE_{row.type.upper()}")


def _stats(slots: list[Slot]) -> dict[str, Any]:
    def count(keys: dict[str, list[Slot]]) -> dict[str, Any]:
        return {
            name: {
                "total": len(of_kind),
                "disabled": sum(not s.enabled for s in of_kind),
                "draining": sum(s.draining for s in of_kind),
                "states": _states(of_kind),
            }
            for name, of_kind in keys.items()
        }

    brands: dict[str, list[Slot]] = {}
    types: dict[str, list[Slot]] = {}
    for slot in slots:
        brands.setdefault(slot.device.brand, []).append(slot)
        types.setdefault(slot.device.type, []).append(slot)
    return {"brandStats": count(brands), "typeStats": count(types)}


def _states(slots: list[Slot]) -> dict[str, int]:
    found: dict[str, int] = {}
    for slot in slots:
        if slot.container is not None:
            found[slot.container.state] = found.get(slot.container.state, 0) + 1
    return found
