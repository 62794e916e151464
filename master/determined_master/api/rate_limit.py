"""Rate limit for failed sign-ins, per address and name. In memory."""

import contextlib
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta

from fastapi import Request

from determined.errors import TooManyRequests, Unauthenticated

MAX_FAILURES = 10
MAX_LINK_FAILURES = 100
"""Of an address at sign-in links, which nobody can guess."""
WINDOW = timedelta(minutes=1)
MAX_KEYS = 10_000
MAX_NAME = 255
"""Longer names belong to nobody; their first characters are counted."""

Key = tuple[str, str]


class RateLimit:
    """Counts failures of an address at one name: other people behind the same address are not held up.

    An attempt counts from its start, so that attempts at the same time cannot exceed the limit, and no longer once it
    has succeeded. Drops the oldest key beyond the limit, which bounds memory.
    """

    def __init__(self) -> None:
        self._attempts: dict[Key, deque[datetime]] = {}

    @contextlib.contextmanager
    def sign_in(self, address: str, name: str, now: datetime) -> Iterator[None]:
        """Counts the attempt as failed if the block raises Unauthenticated. Raises TooManyRequests at its start."""
        key = (address, name.lower()[:MAX_NAME])  # users are found whatever the case
        self._begin(key, now, MAX_FAILURES if name else MAX_LINK_FAILURES)
        try:
            yield
        except Unauthenticated:
            raise
        except BaseException:
            self._forget(key, now)
            raise
        self._forget(key, now)

    def _begin(self, key: Key, now: datetime, most: int) -> None:
        times = self._attempts.pop(key, None) or deque(maxlen=most)
        self._attempts[key] = times  # the newest key is the last
        if sum(now - at < WINDOW for at in times) >= most:
            raise TooManyRequests(
                f"{most} failed sign-ins {f'as {key[1]}' if key[1] else 'by links'} from {key[0]} in a minute; "
                "try again in a minute"
            )
        times.append(now)
        if len(self._attempts) > MAX_KEYS:
            del self._attempts[next(iter(self._attempts))]

    def _forget(self, key: Key, now: datetime) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._attempts[key].remove(now)


def limited_sign_in(request: Request, name: str, now: datetime) -> contextlib.AbstractContextManager[None]:
    """Returns the context in which a request tries to sign in with a name, limited per address; "" for a link."""
    limit: RateLimit = request.app.state.rate_limit
    return limit.sign_in(request.client.host if request.client else "", name, now)
