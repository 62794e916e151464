"""A clock that shows the same time until a test moves it."""

from datetime import datetime


class FixedClock:
    """``at`` is the time that it shows; a test sets it."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at
