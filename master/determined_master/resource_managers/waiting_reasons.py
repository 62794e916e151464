"""Why the requests of a pool wait, as stored in their rows: which of the texts are out of date, and in which order they
are computed again. A decision may change all of them, so that a long queue has them in turn."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator

DELAY_SECONDS = 0.5
"""What is stored is stored at the latest after this time, or together with a placement after half of it."""
MAX_BATCH = 500
"""So many texts are looked at each time."""
MAX_BATCH_SECONDS = 0.05
SLICE_SECONDS = 0.002


class WaitingReasons:
    def __init__(self) -> None:
        self._stored: dict[str, str | None] = {}
        """By the ids of the requests that wait, and None for those that have ended, until their turn."""
        self._turns: deque[str] = deque()
        """Each of them once. New ones come first."""
        self._left = 0
        """How many of the first ones may be out of date."""
        self._since: float | None = None
        """Since when, by the clock of the event loop."""

    def add(self, allocation_id: str, stored: str) -> None:
        if allocation_id not in self._stored:
            self._turns.appendleft(allocation_id)
        self._stored[allocation_id] = stored

    def discard(self, allocation_id: str) -> None:
        if allocation_id in self._stored:
            self._stored[allocation_id] = None

    def dismantle(self, page: int) -> Iterator[None]:
        """Removes everything, ``page`` texts before each of the values that it yields."""
        self._turns, self._left = deque(), 0
        while self._stored:
            for _ in range(min(page, len(self._stored))):
                self._stored.popitem()
            yield

    def outdate(self) -> None:
        """Says that the pool has changed."""
        self._left = len(self._turns)

    def seconds_left(self) -> float | None:
        """Returns for how long the texts may stay as they are, or None if none is out of date. In a queue that moves,
        most of them would change again at once."""
        if not self._left:
            return None
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
        return self._since + DELAY_SECONDS - now

    def are_due(self, *, with_placement: bool) -> bool:
        """Returns whether the next batch is to be stored now. ``with_placement``: in the transaction of one."""
        left = self.seconds_left()
        return left is not None and left <= (DELAY_SECONDS / 2 if with_placement else 0.0)

    async def batch(self, reason_for: Callable[[str], str | None]) -> dict[str, str]:
        """Returns the texts that have changed, of those whose turn it is. ``reason_for`` returns None where the text
        is to stay."""
        self._since = None
        changed: dict[str, str] = {}
        began = slice_began = time.perf_counter()
        for _ in range(min(self._left, MAX_BATCH)):
            allocation_id = self._turns.popleft()
            self._left -= 1
            stored = self._stored[allocation_id]
            if stored is None:
                del self._stored[allocation_id]
                continue
            self._turns.append(allocation_id)
            text = reason_for(allocation_id)
            if text is not None and text != stored:
                changed[allocation_id] = text
            now = time.perf_counter()
            if now - began > MAX_BATCH_SECONDS:
                break
            if now - slice_began > SLICE_SECONDS:
                await asyncio.sleep(0)
                slice_began = time.perf_counter()
        return changed

    def stored(self, texts: dict[str, str]) -> None:
        """Says that these have been stored."""
        self._stored.update((name, text) for name, text in texts.items() if self._stored.get(name) is not None)
