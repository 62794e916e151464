"""How often one address may be wrong about a token or a password before it has to wait. Pure but for its memory."""

from collections import deque
from datetime import datetime, timedelta

from determined.errors import TooManyRequests

MOST = 10
WITHIN = timedelta(minutes=1)
ADDRESSES = 1000


class RateLimit:
    """Forgets the oldest address first where there are too many: memory is bounded, whoever knocks."""

    def __init__(self) -> None:
        self._wrong: dict[str, deque[datetime]] = {}

    def check(self, address: str, now: datetime) -> None:
        """Raises TooManyRequests."""
        times = self._wrong.get(address, ())
        if sum(now - at < WITHIN for at in times) >= MOST:
            raise TooManyRequests(f"{MOST} wrong attempts from {address} in a minute; wait a minute")

    def note_wrong(self, address: str, now: datetime) -> None:
        times = self._wrong.pop(address, None) or deque(maxlen=MOST)
        times.append(now)
        self._wrong[address] = times
        if len(self._wrong) > ADDRESSES:
            del self._wrong[next(iter(self._wrong))]
