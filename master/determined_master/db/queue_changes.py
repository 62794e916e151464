"""The writes that change what a scheduler decides from: the queue, its running work, agents, slots and conditions.

The scheduler's state of a pool is kept between decisions and follows the commits. ``SCHEDULER_COLUMNS`` lists the
columns that it is made from. A function that writes one of them calls ``note`` with the changed rows; what a session
noted counts once it has committed. A transaction that wrote such a column and noted nothing of its kind is a defect: it
is logged, and every state is read anew, so that decisions stay right.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from sqlalchemy import Engine, event

logger = logging.getLogger(__name__)

Kind = Literal["allocations", "agents", "jobs", "pools"]
"""Kinds of rows that a session notes: by the id of an allocation, an agent or a job, or by the name of a pool."""


class SchedulerColumns(NamedTuple):
    """``columns``: those that the state is made from. ``inserts``: new rows change it too."""

    kind: Kind
    columns: frozenset[str]
    inserts: bool = True


def _columns(kind: Kind, columns: str, *, inserts: bool = True) -> SchedulerColumns:
    return SchedulerColumns(kind, frozenset(columns.split()), inserts)


SCHEDULER_COLUMNS: Mapping[str, SchedulerColumns] = {
    "allocations": _columns(
        "allocations",
        "state pool slots single_agent agent_id groups user_id preempt_requested_at kill_requested_at preempted_for",
    ),
    "containers": _columns("agents", "state agent_id slot_ids"),
    "slot_holds": _columns("agents", "agent_id slot_id released_at"),
    "agents": _columns("agents", "pool enabled draining leaving leaves_at leaves_why disconnected_at lost"),
    "agent_slots": _columns("agents", "enabled status status_reason"),
    "jobs": _columns("jobs", "priority weight position max_slots", inserts=False),  # a new job has no allocation yet
    "instances": _columns("pools", "pool state requested_at started_at failure end_failure waiting start_estimate"),
}


@dataclass
class QueueChanges:
    """Keys of what has changed. ``is_known`` is False if something else did: then everything has to be read anew."""

    allocations: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    jobs: set[str] = field(default_factory=set)
    pools: set[str] = field(default_factory=set)
    is_known: bool = True
    noted: set[Kind] = field(default_factory=set)
    """Kinds for which ``note`` was called, also without keys."""

    def __bool__(self) -> bool:
        return bool(self.allocations or self.agents or self.jobs or self.pools or not self.is_known)

    def of(self, kind: Kind) -> set[str]:
        keys: set[str] = getattr(self, kind)
        return keys

    def add(self, other: "QueueChanges") -> None:
        self.allocations |= other.allocations
        self.agents |= other.agents
        self.jobs |= other.jobs
        self.pools |= other.pools
        self.is_known = self.is_known and other.is_known

    def drain(self) -> "QueueChanges":
        """Returns the changes, and forgets them here."""
        taken = QueueChanges(self.allocations, self.agents, self.jobs, self.pools, self.is_known)
        self.allocations, self.agents, self.jobs, self.pools, self.is_known = set(), set(), set(), set(), True
        return taken

    def check(self, written: set[str]) -> None:
        """Says that not all changes are known if a table of ``written`` is of a kind that was not noted."""
        missing = sorted(table for table in written if SCHEDULER_COLUMNS[table].kind not in self.noted)
        if missing:
            self.is_known = False
            logger.error("a change of %s was not noted for the scheduler, which reads its state anew", missing)


def watch(engine: Engine, on_write: Callable[[str], None]) -> None:
    """Calls ``on_write`` with the table of each statement of ``engine`` that changes what the scheduler's state is made
    from."""

    @event.listens_for(engine, "before_cursor_execute")
    def _look(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        table = _scheduler_table(statement)
        if table is not None:
            on_write(table)


_CHANGE = re.compile(r"(INSERT) INTO (\w+)|(UPDATE) (\w+) SET (.*?)(?: WHERE |$)|(DELETE) FROM (\w+)", re.DOTALL)


@lru_cache(maxsize=2048)
def _scheduler_table(statement: str) -> str | None:
    found = None if statement.startswith("SELECT") else _CHANGE.search(statement)
    name = found and (found[2] or found[4] or found[7])
    fed = SCHEDULER_COLUMNS.get(name) if name else None
    if found is None or fed is None:
        return None
    if found[1]:
        return name if fed.inserts else None
    if found[3]:
        return name if fed.columns.intersection(re.findall(r"(\w+)\s*=", found[5])) else None
    return name
