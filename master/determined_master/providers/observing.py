"""Applies what providers see of their agents: which have registered, which will leave and when, which are gone."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from determined.link.isolation import Isolation
from determined.states import InstanceState
from determined_master.agents import departure
from determined_master.agents import repository as agent_rows
from determined_master.db.models import AgentRow, InstanceRow
from determined_master.db.session import Database
from determined_master.providers import instances, repository
from determined_master.providers.instances import Instances, departure_of, waits_for
from determined_master.providers.provider import Instance, Observation, ObservedState, Provider
from determined_master.settings.pool_settings import ProviderSettings


class Observing:
    def __init__(
        self, database: Database, providers: Mapping[str, Provider], changes: Instances, items: Isolation
    ) -> None:
        """``providers``: by type."""
        self._database = database
        self._providers = providers
        self._changes = changes
        self._items = items
        self._is_first = True
        self.queued: set[str] = set()
        """Instances that wait in a queue outside the cluster: the time to register has not begun for them."""

    async def look(self, busy: Collection[str]) -> None:
        """Looks at all instances and records what has changed. ``busy``: those that a provider is starting or ending
        just now, of which it knows nothing certain."""
        async with self._database.read() as session:
            rows = await repository.live(session)
            present = instances.present(await agent_rows.present(session), rows)
        seen = await self._seen(rows)
        self.queued = {name for name, each in seen.items() if each.state is ObservedState.QUEUED}
        for row in rows:
            observation = None if row.agent_id in busy else seen.get(row.agent_id)
            if row.state is InstanceState.STARTING:
                await self._on_starting(row, present.get(row.agent_id), observation)
            elif row.state is InstanceState.RUNNING:
                await self._on_running(row, present.get(row.agent_id), observation)

    def by_type(self, rows: Sequence[InstanceRow]) -> dict[str, list[Instance]]:
        """Returns the instances by the type of their provider, without those whose stored settings are not valid."""
        instances_by_type: dict[str, list[Instance]] = defaultdict(list)
        for row in rows:
            with self._items.attempt("instance", row.agent_id):
                settings = ProviderSettings.model_validate(row.provider)
                instances_by_type[settings.type].append(Instance(row.agent_id, row.pool, settings))
        return instances_by_type

    async def _seen(self, rows: Sequence[InstanceRow]) -> dict[str, Observation]:
        """At first every provider is asked, also one without instances: it ends what an earlier master left."""
        observations: dict[str, Observation] = {}
        by_type = self.by_type(rows)
        for kind, provider in self._providers.items():
            if self._is_first or by_type.get(kind):
                observations |= await provider.observe(by_type.get(kind, []))
        self._is_first = False
        return observations

    async def _on_starting(self, row: InstanceRow, agents: Sequence[AgentRow] | None, seen: Observation | None) -> None:
        if agents is not None and all(agent.disconnected_at is None for agent in agents):
            await self._changes.started(row.agent_id)
        elif seen is not None and seen.state is ObservedState.GONE:
            await self._changes.not_started(row.agent_id, seen.reason, may_exist=True)
        elif seen is not None and (row.waiting, row.start_estimate) != waits_for(seen):
            await self._changes.observe(row.agent_id, seen)

    async def _on_running(self, row: InstanceRow, agents: Sequence[AgentRow] | None, seen: Observation | None) -> None:
        if seen is not None and seen.state is ObservedState.GONE:
            await self._changes.gone(row.agent_id, seen.reason)
        elif agents is None:
            await self._changes.end(row.agent_id, "it did not reconnect in time", is_idle=False)
        elif seen is not None and any(departure.differs(agent, departure_of(seen)) for agent in agents):
            await self._changes.observe(row.agent_id, seen)
