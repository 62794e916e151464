"""Rate limit for failed sign-ins, per address. In memory."""

import contextlib
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta

from fastapi import Request

from determined.errors import TooManyRequests, Unauthenticated

MAX_FAILURES = 10
WINDOW = timedelta(minutes=1)
MAX_ADDRESSES = 1000


class RateLimit:
    """Counts failures. Drops the oldest address beyond the limit, which bounds memory."""

    def __init__(self) -> None:
        self._wrong: dict[str, deque[datetime]] = {}

    @contextlib.contextmanager
    def sign_in(self, address: str, now: datetime) -> Iterator[None]:
        """Counts the attempt as failed if the block raises Unauthenticated. Raises TooManyRequests at its start."""
        self.check(address, now)
        try:
            yield
        except Unauthenticated:
            self.note_wrong(address, now)
            raise

    def check(self, address: str, now: datetime) -> None:
        """Raises TooManyRequests if the address has to wait."""
        times = self._wrong.get(address, ())
        if sum(now - at < WINDOW for at in times) >= MAX_FAILURES:
            raise TooManyRequests(f"{MAX_FAILURES} failed sign-ins from {address} in a minute; try again in a minute")

    def note_wrong(self, address: str, now: datetime) -> None:
        times = self._wrong.pop(address, None) or deque(maxlen=MAX_FAILURES)
        times.append(now)
        self._wrong[address] = times
        if len(self._wrong) > MAX_ADDRESSES:
            del self._wrong[next(iter(self._wrong))]


def limited_sign_in(request: Request, now: datetime) -> contextlib.AbstractContextManager[None]:
    """Returns the context in which a request tries to sign in, limited per address."""
    limit: RateLimit = request.app.state.rate_limit
    return limit.sign_in(request.client.host if request.client else "", now)
