"""The protocol of providers: they start and end the agents of a pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from determined_master.pool_settings import ProviderSettings


@dataclass(frozen=True)
class Instance:
    """One agent of a provider. ``settings`` are those with which it was started."""

    agent_id: str
    pool: str
    settings: ProviderSettings


class LaunchFailed(Exception):
    """An agent could not be started; the text is shown to those who wait for it. ``may_exist``: True if something may
    have been started all the same, so that it has to be ended."""

    def __init__(self, text: str, *, may_exist: bool = False) -> None:
        super().__init__(text)
        self.may_exist = may_exist


class ReleaseFailed(Exception):
    """An agent could not be ended, or it is not known whether it was. The text is shown to admins."""


class Provider(Protocol):
    """Starts and ends agents. The master names each agent and stores the name before it asks for it, so that none is
    lost if the master dies meanwhile.

    Methods that fail raise one of the errors above. They may be cancelled, and called at the same time for different
    agents.
    """

    async def want(self, instance: Instance) -> None:
        """Starts an agent. Returns when its start is ordered; it registers later. Raises LaunchFailed."""
        ...

    async def release(self, instance: Instance) -> None:
        """Ends an agent, and what it left behind. Called again after it failed or after the master has died, so it
        succeeds for an agent that is not there. Raises ReleaseFailed."""
        ...

    async def gone(self, instances: Sequence[Instance]) -> Mapping[str, str]:
        """Returns those of the agents that the provider knows to have ended by themselves, each with the reason."""
        ...

    async def adopt(self, instances: Sequence[Instance]) -> None:
        """Takes over the agents that an earlier master started, and ends those that are not among ``instances``.
        Called once, before all other methods."""
        ...
