"""Places pending allocations: a frozen view of each pool, a plan, guarded updates."""

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import partial

from sqlalchemy.exc import IntegrityError

from determined.errors import Conflict
from determined.link.isolation import Isolation
from determined_master.agents import repository as agent_rows
from determined_master.allocations import repository as allocation_rows
from determined_master.scheduling.plan import Placement, Plan, Refusal
from determined_master.scheduling.scheduler import plan
from determined_master.scheduling.view import AgentView, Constraints, PoolView, RequestView, TaskGroup
from determined_master.services import Services

logger = logging.getLogger(__name__)


class Schedule:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._database = services.database
        self._allocations = services.allocations
        self._items = Isolation("schedule", logger)

    async def tick(self) -> float | None:
        if self._services.draining.is_set():
            return None
        for pool in await self.views():
            await self._items.run("pool", pool.name, partial(self._place, pool))
        return self._items.seconds_left()

    async def views(self) -> list[PoolView]:
        """Returns a view of each pool that has pending allocations."""
        async with self._database.read() as session:
            # An allocation whose placement failed must not block others: it is left out of the plan for a while.
            waiting = [r for r in await allocation_rows.pending(session) if self._items.is_due("allocation", r.id)]
            if not waiting:
                return []
            agents = await agent_rows.present(session)
            slots = await agent_rows.slots(session)
            zero_slots = Counter(await allocation_rows.agents_of_zero_slot_containers(session))
            held = {(h.agent_id, h.slot_id) for h in await allocation_rows.held_slots(session)}
        by_agent: dict[str, list[int]] = defaultdict(list)
        total: dict[str, int] = defaultdict(int)
        unusable: dict[str, list[str]] = defaultdict(list)
        for slot in slots:
            total[slot.agent_id] += 1
            if not slot.enabled or (slot.agent_id, slot.slot_id) in held:
                continue
            if slot.status in ("free", "idle"):
                by_agent[slot.agent_id].append(slot.slot_id)
            else:
                unusable[slot.agent_id].append(f"slot {slot.slot_id} of {slot.agent_id}: {slot.status_reason}")
        pools = sorted({row.pool for row in waiting})
        return [
            PoolView(
                name=name,
                agents=tuple(
                    AgentView(
                        a.id,
                        tuple(by_agent[a.id]),
                        total[a.id],
                        a.enabled and a.disconnected_at is None,
                        max(0, self._services.settings.max_zero_slot_containers - zero_slots[a.id]),
                        tuple(unusable[a.id]),
                        is_connected=a.disconnected_at is None,
                    )
                    for a in agents
                    if a.pool == name
                ),
                waiting=tuple(
                    RequestView(
                        r.id,
                        job_id=r.id,
                        groups=(TaskGroup(slots=r.slots, constraints=Constraints(r.single_agent, r.agent_id)),),
                        priority=r.priority,
                        weight=1.0,
                        position=r.submitted_at,
                        submitted_at=r.submitted_at,
                        user_id=0,
                        preemptible=False,
                    )
                    for r in waiting
                    if r.pool == name
                ),
            )
            for name in pools
        ]

    async def _place(self, pool: PoolView) -> None:
        await self._apply(plan(pool))

    async def _apply(self, wanted: Plan) -> None:
        for placement in wanted.placements:
            await self._items.run("allocation", placement.allocation_id, partial(self._place_one, placement))
        for refusal in wanted.refusals:
            await self._items.run("allocation", refusal.allocation_id, partial(self._refuse_one, refusal))
        await self._say_why(wanted.waiting)

    async def _place_one(self, placement: Placement) -> None:
        try:
            async with self._database.write() as session:
                await self._allocations.place(session, placement)
        except (Conflict, IntegrityError) as error:
            logger.info("a placement is no longer valid: %s", error)

    async def _refuse_one(self, refusal: Refusal) -> None:
        async with self._database.write() as session:
            await self._allocations.refuse(session, refusal)

    async def _say_why(self, waiting: Mapping[str, str]) -> None:
        async with self._database.read() as session:
            found = await allocation_rows.pending(session)
        stale = {each: waiting[each.id] for each in found if waiting.get(each.id, each.waiting) != each.waiting}
        if stale:
            async with self._database.write() as session:
                await allocation_rows.set_waiting(session, stale)
