"""Decides what happens on agents that end by themselves at a known time. Pure: a frozen view in, a decision out.

Some time before, an agent is closed: nothing new is placed on it. Its trials are asked to save when the time that their
save takes is left. What still runs just before the agent ends is ended, so that no work is lost that nobody knows of.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

END_MARGIN_SECONDS = 5.0
"""What still runs is ended so long before its agent ends: agents report, and clocks agree, within seconds."""
SAVE_RESERVE_SECONDS = 60.0
"""Is added to the measured time of a save."""
UNMEASURED_SAVE_SECONDS = 600.0
"""Time for the first save of a trial of an experiment in which none was measured."""
MAX_SHARE = 1 / 3
"""Part of the time limit of an agent that may be spent on saving."""


@dataclass(frozen=True)
class LeavingAgent:
    """An agent that ends at ``leaves_at``. ``limit_seconds``: from its registration to that time; None if nobody knew
    of it from the start, as of a preemption: then all that is left may be spent on saving."""

    agent_id: str
    leaves_at: datetime
    limit_seconds: float | None
    is_closed: bool = False


@dataclass(frozen=True)
class Occupant:
    """An allocation with a container on an agent that leaves. ``agent_id``: the first of its agents to leave."""

    allocation_id: str
    agent_id: str
    preemption_timeout: float
    seconds_to_save: float | None = None
    """Measured duration of a save of its trial, or of another one of its experiment."""
    can_save: bool = True
    """False for commands and other tasks, which run to the end and are ended then."""
    is_asked: bool = False
    """True if it was asked to save and leave, whatever for."""
    is_ending: bool = False


@dataclass(frozen=True)
class DepartureView:
    """``longest_save``: the longest measured save of all experiments that have not ended; None if none was measured.
    ``staying``: agents that are closed although it is not known any more that they leave."""

    now: datetime
    agents: tuple[LeavingAgent, ...] = ()
    occupants: tuple[Occupant, ...] = ()
    longest_save: float | None = None
    staying: tuple[str, ...] = ()


@dataclass(frozen=True)
class Departures:
    """Agents to close and to open again; allocations to ask and to end, each with the agent that leaves."""

    close: tuple[str, ...] = ()
    reopen: tuple[str, ...] = ()
    ask: tuple[tuple[str, str], ...] = ()
    end: tuple[tuple[str, str], ...] = ()
    wait_seconds: float | None = None
    """Time until the decision changes although nothing else does; None if it will not."""


def decide(view: DepartureView) -> Departures:
    """Returns what to do now. Whatever runs on an agent is asked after the agent was closed, or at the same time."""
    agents = {agent.agent_id: agent for agent in view.agents}
    waits: list[float] = []

    def is_due(at: datetime) -> bool:
        left = (at - view.now).total_seconds()
        if left > 0:
            waits.append(left)
        return left <= 0

    closes = {name: is_due(_before(agent, closing_seconds(agent, view.longest_save))) for name, agent in agents.items()}
    ask, end = [], []
    for occupant in view.occupants:
        agent = agents[occupant.agent_id]
        if not occupant.is_ending and is_due(_before(agent, END_MARGIN_SECONDS)):
            end.append((occupant.allocation_id, occupant.agent_id))
        elif (
            occupant.can_save
            and not (occupant.is_asked or occupant.is_ending)
            and is_due(_before(agent, saving_seconds(agent, occupant.seconds_to_save, occupant.preemption_timeout)))
        ):
            ask.append((occupant.allocation_id, occupant.agent_id))
    return Departures(
        close=tuple(name for name, is_closing in closes.items() if is_closing and not agents[name].is_closed),
        reopen=view.staying + tuple(name for name, closing in closes.items() if not closing and agents[name].is_closed),
        ask=tuple(ask),
        end=tuple(end),
        wait_seconds=min(waits, default=None),
    )


def saving_seconds(agent: LeavingAgent, seconds_to_save: float | None, preemption_timeout: float) -> float:
    """Returns how long before the end of its agent a trial is asked to save.

    >>> day = LeavingAgent("a", datetime.max, 24 * 3600.0)
    >>> saving_seconds(day, 30.0, 3600.0), saving_seconds(day, None, 3600.0), saving_seconds(day, None, 120.0)
    (90.0, 600.0, 120.0)
    """
    return min(_reserved(seconds_to_save), preemption_timeout, _share(agent))


def closing_seconds(agent: LeavingAgent, longest_save: float | None) -> float:
    """Returns how long before its end an agent is closed: nothing may come that would need more time to save."""
    return min(max(_reserved(longest_save), UNMEASURED_SAVE_SECONDS), _share(agent))


def first_to_leave(agents: Sequence[LeavingAgent]) -> LeavingAgent:
    """Returns the agent that determines when a gang saves, which it does as a whole."""
    return min(agents, key=lambda agent: (agent.leaves_at, agent.agent_id))


def _reserved(seconds_to_save: float | None) -> float:
    return UNMEASURED_SAVE_SECONDS if seconds_to_save is None else seconds_to_save + SAVE_RESERVE_SECONDS


def _share(agent: LeavingAgent) -> float:
    return math.inf if agent.limit_seconds is None else agent.limit_seconds * MAX_SHARE


def _before(agent: LeavingAgent, seconds: float) -> datetime:
    return agent.leaves_at - timedelta(seconds=max(0.0, seconds))
