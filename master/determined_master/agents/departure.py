"""When and why an agent will end by itself, as its provider says."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from determined_master.db.models import AgentRow

TOLERANCE = timedelta(seconds=3)
"""Times that differ by less are equal: a provider knows them to a second, and looks now and then."""


@dataclass(frozen=True)
class Departure:
    origin: str = ""
    """What people call what the agent runs in, such as ``Slurm job 550``."""
    leaves_at: datetime | None = None
    why: str = ""
    """A clause such as ``time limit of Slurm job 550``."""
    has_time_limit: bool = False
    """True if a time limit that was known when the agent started ends it; False for notices and preemptions."""


def differs(row: AgentRow, found: Departure) -> bool:
    """Returns True if the row says something else."""
    known, now = (row.origin, row.leaves_why, row.has_time_limit), (found.origin, found.why, found.has_time_limit)
    return known != now or not is_about(row.leaves_at, found.leaves_at)


def is_about(one: datetime | None, other: datetime | None) -> bool:
    """Returns True if two times are equal, give or take ``TOLERANCE``."""
    if one is None or other is None:
        return one is other
    return abs(one - other) < TOLERANCE


def in_words(found: Departure) -> str:
    """Returns the text of the event that records a change of an agent's departure.

    >>> in_words(Departure("", None))
    'it is not known any more when it leaves'
    """
    if found.leaves_at is None:
        return "it is not known any more when it leaves"
    return f"it leaves at {found.leaves_at:%Y-%m-%d %H:%M:%S} UTC: {found.why}"
