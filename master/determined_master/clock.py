"""Clock as an argument, and a test clock that moves only when a test advances it."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of the time in UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The system clock."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)


class FixedClock:
    """A clock that does not move by itself."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at
