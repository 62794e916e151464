"""The protocol of providers: they start and end the agents of a pool."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from determined_master.settings.pool_settings import ProviderSettings


@dataclass(frozen=True)
class Instance:
    """What a provider starts and ends at a time: an agent, or the agents of several nodes. ``settings`` are those with
    which it was started."""

    agent_id: str
    """Its name; that of its agent, or of several agents the part before the number."""
    pool: str
    settings: ProviderSettings

    @property
    def agents(self) -> tuple[str, ...]:
        """The ids of its agents, one for each node."""
        return agents_of(self.agent_id, self.settings.nodes)


def agents_of(name: str, nodes: int) -> tuple[str, ...]:
    """Returns the ids of the agents of an instance.

    >>> agents_of("gpu-1f", 1), agents_of("gpu-1f", 2)
    (('gpu-1f',), ('gpu-1f-0', 'gpu-1f-1'))
    """
    return (name,) if nodes == 1 else tuple(f"{name}-{number}" for number in range(nodes))


class ObservedState(StrEnum):
    """State of an agent as its provider sees it; an agent of the state ``gone`` is ended at once."""

    QUEUED = "queued"
    RUNNING = "running"
    GONE = "gone"


@dataclass(frozen=True)
class Observation:
    """What a provider knows of one agent. Times are UTC, by the master's clock."""

    state: ObservedState
    reason: str = ""
    """Of a queued one why it waits, of one that will leave why, of one that is gone why it ended: a clause such as
    ``Slurm job 550 was cancelled outside Detent``."""
    leaves_at: datetime | None = None
    """When a running one will end by itself; None if that is not known."""
    has_time_limit: bool = False
    """True if it leaves then by a limit that was known from its start; False for a notice or a preemption, which leaves
    no more than the time until then."""
    start_estimate: datetime | None = None
    """When a queued one will probably start; None if that is not known."""
    origin: str = ""
    """What people call what the agent runs in, such as ``Slurm job 550``; empty if it has no other name."""


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

    async def observe(self, instances: Sequence[Instance]) -> Mapping[str, Observation]:
        """Looks at all agents of the provider that have not ended, those that start or end included; returns by id what
        it knows of them. Agents of which it knows nothing are missing.

        Returns within milliseconds: a provider whose look takes time looks beside, and returns what it saw last. The
        first call also ends the agents of an earlier master that are not among ``instances``; later ones may.
        """
        ...


def how_ended(code: int) -> str:
    """Returns how a process ended. ``code``: its exit code, or the negative number of a signal.

    >>> how_ended(7), how_ended(-9), how_ended(-35)
    ('exit 7', 'signal SIGKILL', 'signal 35')
    """
    if code >= 0:
        return f"exit {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:  # most real-time signals have no name
        return f"signal {-code}"
