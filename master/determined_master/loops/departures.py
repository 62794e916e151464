"""Asks trials to save before their agent ends at a known time, and ends what still runs just before: load, decide,
apply. Without a master nobody asks: the attempts are lost with their agents, and go on from their last checkpoints."""

import logging
from collections import defaultdict
from collections.abc import Mapping
from functools import partial

from determined.link.isolation import Isolation
from determined.states import TaskKind
from determined_master.agents.service import Agents
from determined_master.allocations import departure_queries, queue_repository, repository
from determined_master.allocations.departure_queries import KnownDeparture
from determined_master.allocations.departures import DepartureView, LeavingAgent, Occupant, decide, first_to_leave
from determined_master.allocations.service import Allocations
from determined_master.clock import Clock
from determined_master.db.session import Database, ReadSession

logger = logging.getLogger(__name__)


class DepartureLoop:
    def __init__(self, database: Database, clock: Clock, agents: Agents, allocations: Allocations) -> None:
        self._database = database
        self._clock = clock
        self._agents = agents
        self._allocations = allocations
        self._items = Isolation("departures", logger)

    async def tick(self) -> float | None:
        """Returns the seconds until something has to be done even if nothing changes."""
        async with self._database.read() as session:
            known = await departure_queries.agents(session)
            if not known:
                return None
            view = await self._view(session, known)
        decision = decide(view)
        # Agents close first: what was asked to leave must not come back to them.
        for agent_id in decision.close:
            await self._items.run("agent", agent_id, partial(self._set_leaving, agent_id, leaving=True))
        for agent_id in decision.reopen:
            await self._items.run("agent", agent_id, partial(self._set_leaving, agent_id, leaving=False))
        departures = {each.agent_id: each for each in known}
        for allocation_id, agent_id in decision.ask:
            await self._items.run("save", allocation_id, partial(self._ask, allocation_id, departures[agent_id]))
        for allocation_id, agent_id in decision.end:
            await self._items.run("end", allocation_id, partial(self._end, allocation_id, departures[agent_id]))
        return self._items.soonest(decision.wait_seconds)

    async def _view(self, session: ReadSession, known: list[KnownDeparture]) -> DepartureView:
        agents = {
            each.agent_id: LeavingAgent(
                each.agent_id,
                each.leaves_at,
                (each.leaves_at - each.registered_at).total_seconds() if each.has_time_limit else None,
                each.leaving,
            )
            for each in known
            if each.leaves_at is not None
        }
        return DepartureView(
            self._clock.now(),
            tuple(agents.values()),
            await _occupants(session, agents),
            await departure_queries.longest_save(session),
            tuple(each.agent_id for each in known if each.leaves_at is None),
        )

    async def _set_leaving(self, agent_id: str, *, leaving: bool) -> None:
        async with self._database.write() as session:
            await self._agents.set_leaving(session, agent_id, leaving=leaving)

    async def _ask(self, allocation_id: str, agent: KnownDeparture) -> None:
        async with self._database.write() as session:
            row = await repository.get(session, allocation_id)
            if row.state.is_live and row.preempt_requested_at is None and row.kill_requested_at is None:
                await repository.change(session, row, agent_left=True)
                why = f"agent {agent.agent_id} leaves at {_when(agent)}: {agent.leaves_why}"
                await self._allocations.preempt(session, row, why=why, ends_at=agent.leaves_at)

    async def _end(self, allocation_id: str, agent: KnownDeparture) -> None:
        async with self._database.write() as session:
            row = await repository.get(session, allocation_id)
            if row.state.is_live and row.kill_requested_at is None:
                await repository.change(session, row, agent_left=True)
                why = f"ended because agent {agent.agent_id} leaves at {_when(agent)}: {agent.leaves_why}"
                await self._allocations.kill(session, row, why=why, agent_disabled=True)


async def _occupants(session: ReadSession, agents: Mapping[str, LeavingAgent]) -> tuple[Occupant, ...]:
    occupants = defaultdict(list)
    for container in await departure_queries.on_agents(session, list(agents)):
        occupants[container.allocation_id].append(container)
    firsts = [some[0] for some in occupants.values()]
    saves = await departure_queries.last_saves(session, {each.task_id for each in firsts})
    experiments = {each.experiment_id for each in firsts if each.experiment_id is not None}
    of_experiment = await queue_repository.seconds_to_save(session, experiments)
    return tuple(
        Occupant(
            each.allocation_id,
            first_to_leave([agents[container.agent_id] for container in occupants[each.allocation_id]]).agent_id,
            each.preemption_timeout,
            _at_least(each.grace_seconds, saves.get(each.task_id, of_experiment.get(each.experiment_id or 0))),
            can_save=each.kind is TaskKind.TRIAL,
            is_asked=each.preempt_requested_at is not None,
            is_ending=each.kill_requested_at is not None,
        )
        for each in firsts
    )


def _at_least(grace: float | None, measured: float | None) -> float | None:
    """Returns the time that a save takes: for a script that is asked by a signal, the whole of its grace."""
    return measured if grace is None else max(grace, measured or 0.0)


def _when(agent: KnownDeparture) -> str:
    return f"{agent.leaves_at:%Y-%m-%d %H:%M:%S} UTC"
