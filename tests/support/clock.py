"""A clock that shows the same time until a test moves it."""

from datetime import datetime


class FixedClock:
    """Always shows ``at``, which a test sets."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at
