"""Agents and slots: list, enable, disable."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from determined.errors import NotFound
from determined_master.agents import repository
from determined_master.agents.service import Agents
from determined_master.allocations import agent_containers_repository
from determined_master.api.dependencies import Admin, AgentsDep, Anyone, DatabaseDep, Read
from determined_master.api.json_body import JsonRoute
from determined_master.api.pagination import Window
from determined_master.api.schemas import agents as schemas
from determined_master.api.schemas.base import BoundedInt
from determined_master.api.schemas.enums import is_descending
from determined_master.api.sorting import column_of
from determined_master.db.models import AgentRow, AgentSlotRow
from determined_master.db.session import Database, ReadSession

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["agents"])


@router.get("/agents")
async def list_agents(
    _principal: Anyone,
    session: Read,
    exclude_slots: Annotated[bool, Query(alias="excludeSlots")] = False,
    exclude_containers: Annotated[bool, Query(alias="excludeContainers")] = False,
    sort_by: Annotated[str, Query(alias="sortBy")] = "",
    order_by: Annotated[str, Query(alias="orderBy")] = "",
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> schemas.AgentsAnswer:
    by: repository.Order = column_of(sort_by, _ORDERS, "id")
    descending = is_descending(order_by)
    total = await repository.count(session)
    window = Window.of(offset, limit, total)
    rows = await repository.page(session, by=by, descending=descending, offset=window.offset, limit=window.limit)
    pagination = window.pagination(total, len(rows), limit)
    shown = await _show(session, rows)
    hidden = [name for name, is_hidden in (("slots", exclude_slots), ("containers", exclude_containers)) if is_hidden]
    shown = [agent.model_copy(update={name: {} for name in hidden}) for agent in shown]
    return schemas.AgentsAnswer(agents=shown, pagination=pagination)


@router.get("/agents/{agent_id}")
async def get_agent(agent_id: str, _principal: Anyone, session: Read) -> schemas.AgentAnswer:
    return schemas.AgentAnswer(agent=await _one(session, agent_id))


@router.post("/agents/{agent_id}/enable")
async def enable_agent(agent_id: str, admin: Admin, agents: AgentsDep, database: DatabaseDep) -> schemas.AgentAnswer:
    await agents.set_enabled(agent_id, enabled=True, drain=False, principal=admin)
    return await _answer(database, agent_id)


@router.post("/agents/{agent_id}/disable")
async def disable_agent(
    agent_id: str, body: schemas.DisableBody, admin: Admin, agents: AgentsDep, database: DatabaseDep
) -> schemas.AgentAnswer:
    await agents.set_enabled(agent_id, enabled=False, drain=body.drain, principal=admin)
    return await _answer(database, agent_id)


@router.get("/agents/{agent_id}/slots")
async def list_slots(agent_id: str, _principal: Anyone, session: Read) -> schemas.SlotsAnswer:
    return schemas.SlotsAnswer(slots=list((await _one(session, agent_id)).slots.values()))


@router.get("/agents/{agent_id}/slots/{slot_id}")
async def get_slot(agent_id: str, slot_id: str, _principal: Anyone, session: Read) -> schemas.SlotAnswer:
    return schemas.SlotAnswer(slot=_slot(await _one(session, agent_id), _slot_name(slot_id)))


@router.post("/agents/{agent_id}/slots/{slot_id}/enable")
async def enable_slot(
    agent_id: str, slot_id: str, admin: Admin, agents: AgentsDep, database: DatabaseDep
) -> schemas.SlotAnswer:
    return await _set_slot(agents, database, agent_id, slot_id, admin, enabled=True, drain=False)


@router.post("/agents/{agent_id}/slots/{slot_id}/disable")
async def disable_slot(
    agent_id: str, slot_id: str, body: schemas.DisableBody, admin: Admin, agents: AgentsDep, database: DatabaseDep
) -> schemas.SlotAnswer:
    return await _set_slot(agents, database, agent_id, slot_id, admin, enabled=False, drain=body.drain)


async def _set_slot(
    agents: Agents, database: Database, agent_id: str, slot_id: str, admin: Admin, *, enabled: bool, drain: bool
) -> schemas.SlotAnswer:
    name = _slot_name(slot_id)
    await agents.set_slot_enabled(agent_id, int(name), enabled=enabled, drain=drain, principal=admin)
    return schemas.SlotAnswer(slot=_slot((await _answer(database, agent_id)).agent, name))


async def _answer(database: Database, agent_id: str) -> schemas.AgentAnswer:
    async with database.read() as session:
        return schemas.AgentAnswer(agent=await _one(session, agent_id))


async def _one(session: ReadSession, agent_id: str) -> schemas.Agent:
    return (await _show(session, [await repository.get(session, agent_id)]))[0]


async def _show(session: ReadSession, rows: Sequence[AgentRow]) -> list[schemas.Agent]:
    ids = [row.id for row in rows]
    slots: dict[str, list[AgentSlotRow]] = defaultdict(list)
    for slot in await repository.slots(session, agent_ids=ids):
        slots[slot.agent_id].append(slot)
    live = await agent_containers_repository.live_on_agents(session, ids)
    return [schemas.agent(row, slots[row.id], live.get(row.id, [])) for row in rows]


def _slot_name(slot_id: str) -> str:
    """Returns the id of a slot as it is shown: ``0`` and ``000``, as earlier versions said, name the first slot."""
    if not slot_id.isascii() or not slot_id.isdecimal() or len(slot_id) > 9:
        raise NotFound(f"slot '{slot_id[:60]}' not found")
    return str(int(slot_id))


def _slot(agent: schemas.Agent, name: str) -> schemas.Slot:
    slot = agent.slots.get(schemas.slot_key(agent.id, name))
    if slot is None:
        raise NotFound(f"slot '{name}' not found on agent '{agent.id}'")
    return slot


_ORDERS: dict[str, repository.Order] = {"SORT_BY_ID": "id", "SORT_BY_TIME": "registered_at"}
