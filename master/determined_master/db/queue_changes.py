"""The writes that change what a scheduler decides from: the queue, its running work, agents, slots and conditions.

The scheduler's state of a pool is kept between decisions and follows the commits. ``FED`` lists the columns that it is
made from. A function that writes one of them says by ``note`` which rows changed; what a session noted counts once it
has committed. A session that wrote such a column and noted nothing of its kind is a defect: it is logged, and every
state is read anew, so that decisions stay right.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import Delete, Insert, Update
from sqlalchemy.orm import ORMExecuteState, Session

if TYPE_CHECKING:
    from determined_master.db.session import ReadSession, WriteSession

logger = logging.getLogger(__name__)

Kind = Literal["allocations", "agents", "jobs", "pools"]
"""What the keys are of that a session notes: ids of allocations, agents and jobs, and names of pools."""
_KEY = "queue changes"


class Fed(NamedTuple):
    """``columns``: those that the state is made from. ``inserts``: new rows change it too."""

    kind: Kind
    columns: frozenset[str]
    inserts: bool = True


def _fed(kind: Kind, columns: str, *, inserts: bool = True) -> Fed:
    return Fed(kind, frozenset(columns.split()), inserts)


FED: Mapping[str, Fed] = {
    "allocations": _fed(
        "allocations",
        "state pool slots single_agent agent_id groups user_id preempt_requested_at kill_requested_at preempted_for",
    ),
    "containers": _fed("agents", "state agent_id slot_ids"),
    "slot_holds": _fed("agents", "agent_id slot_id released_at"),
    "agents": _fed("agents", "pool enabled draining leaving leaves_at leaves_why disconnected_at lost"),
    "agent_slots": _fed("agents", "enabled status status_reason"),
    "jobs": _fed("jobs", "priority weight position max_slots", inserts=False),  # a new job has no allocation yet
    "instances": _fed("pools", "pool state requested_at started_at failure end_failure waiting start_estimate"),
}


@dataclass
class QueueChanges:
    """Keys of what has changed. ``is_known`` is False if something else did: then everything has to be read anew."""

    allocations: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    jobs: set[str] = field(default_factory=set)
    pools: set[str] = field(default_factory=set)
    is_known: bool = True
    written: set[str] = field(default_factory=set)
    """Tables of ``FED``."""
    noted: set[Kind] = field(default_factory=set)
    """Kinds of which somebody noted keys, or that there are none."""

    def __bool__(self) -> bool:
        return bool(self.allocations or self.agents or self.jobs or self.pools or not self.is_known)

    def of(self, kind: Kind) -> set[str]:
        keys: set[str] = getattr(self, kind)
        return keys

    def add(self, other: QueueChanges) -> None:
        self.allocations |= other.allocations
        self.agents |= other.agents
        self.jobs |= other.jobs
        self.pools |= other.pools
        self.is_known = self.is_known and other.is_known

    def take(self) -> QueueChanges:
        """Returns the changes, and forgets them here."""
        taken = QueueChanges(self.allocations, self.agents, self.jobs, self.pools, self.is_known)
        self.allocations, self.agents, self.jobs, self.pools, self.is_known = set(), set(), set(), set(), True
        return taken

    def check(self) -> None:
        """Makes the changes unknown if a table was written of whose kind nothing was noted."""
        missing = sorted(table for table in self.written if FED[table].kind not in self.noted)
        if missing:
            self.is_known = False
            logger.error("a change of %s was not noted for the scheduler, which reads its state anew", missing)


def note(session: WriteSession, kind: Kind, keys: Iterable[str]) -> None:
    """Says which rows the session changes; the scheduler reads them once it has committed."""
    changes = _of(session)
    changes.noted.add(kind)
    changes.of(kind).update(keys)


def changes_of(session: WriteSession) -> QueueChanges | None:
    """Returns what the session has noted; None if it has written nothing that counts."""
    changes: QueueChanges | None = session.info.get(_KEY)
    if changes is not None:
        changes.check()
    return changes


def table_fed_by(statement: Any) -> str | None:  # noqa: ANN401  # of any kind
    """Returns the table of ``FED`` that a statement changes in a way that counts; None if it does not."""
    if not isinstance(statement, Insert | Update | Delete):
        return None
    name: str = getattr(statement.table, "name", "")
    fed = FED.get(name)
    if fed is None:
        return None
    if isinstance(statement, Insert):
        return name if fed.inserts else None
    if isinstance(statement, Update):
        values = str(statement).partition(" SET ")[2].partition(" WHERE ")[0]
        return name if fed.columns.intersection(re.findall(r"(\w+)=", values)) else None
    return name


def wrote(session: ReadSession | Session, table: str) -> None:
    """Records that a session changed a table of ``FED``."""
    _of(session).written.add(table)


def on_execute(state: ORMExecuteState) -> None:
    """Listens to the statements that SQLAlchemy executes."""
    if not state.is_select:
        table = table_fed_by(state.statement)
        if table is not None:
            wrote(state.session, table)


def on_flush(session: Session, _context: object) -> None:
    """Listens to the objects that SQLAlchemy stores."""
    for row in (*session.new, *session.dirty, *session.deleted):
        table = row.__tablename__
        if table in FED and (FED[table].inserts or row not in session.new):
            wrote(session, table)


def _of(session: ReadSession | Session) -> QueueChanges:
    changes: QueueChanges = session.info.setdefault(_KEY, QueueChanges())
    return changes
