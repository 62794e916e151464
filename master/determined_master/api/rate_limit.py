"""Rate limit for failed sign-ins, per address. In memory."""

from collections import deque
from datetime import datetime, timedelta

from determined.errors import TooManyRequests

MAX_FAILURES = 10
WINDOW = timedelta(minutes=1)
MAX_ADDRESSES = 1000


class RateLimit:
    """Forgets the oldest address first where there are too many: memory is bounded, whoever knocks."""

    def __init__(self) -> None:
        self._wrong: dict[str, deque[datetime]] = {}

    def check(self, address: str, now: datetime) -> None:
        """Raises TooManyRequests."""
        times = self._wrong.get(address, ())
        if sum(now - at < WINDOW for at in times) >= MAX_FAILURES:
            raise TooManyRequests(f"{MAX_FAILURES} wrong attempts from {address} in a minute; wait a minute")

    def note_wrong(self, address: str, now: datetime) -> None:
        times = self._wrong.pop(address, None) or deque(maxlen=MAX_FAILURES)
        times.append(now)
        self._wrong[address] = times
        if len(self._wrong) > MAX_ADDRESSES:
            del self._wrong[next(iter(self._wrong))]
