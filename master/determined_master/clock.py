"""The clock, which is passed as an argument."""

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
