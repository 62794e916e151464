"""Reconnecting calls: commands that follow something wait while the master is unreachable, and report that once."""

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from determined.client.session import Session
from determined.errors import MasterUnreachable
from determined_cli.terminal.messages import say

GIVE_UP_SECONDS = 600.0
RETRY_SECONDS = 0.5

Result = TypeVar("Result")


class Reconnector:
    """Repeats calls while the master does not answer. Until one has succeeded, they fail at once, as in any other
    command.

    Args:
        session: the session of the command.
        tell: prints a line for people.
        give_up_after: seconds without an answer after which MasterUnreachable is raised.
    """

    def __init__(
        self,
        session: Session,
        *,
        tell: Callable[[str], object] = say,
        give_up_after: float = GIVE_UP_SECONDS,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = session
        self.outages = 0
        self._tell = tell
        self._give_up_after = give_up_after
        self._sleep = sleep
        self._clock = clock
        self._was_connected = False
        self._away_since: float | None = None

    def call(self, function: Callable[[], Result], *, until: float | None = None) -> Result:
        """Returns what ``function`` returns, which may be called again.

        Raises MasterUnreachable if there was no connection before, after ``give_up_after`` seconds without one, or if
        the clock has passed ``until``.
        """
        while True:
            try:
                result = function()
            except MasterUnreachable as error:
                self.wait(error, until=until)
                continue
            self.connected()
            return result

    def connected(self) -> None:
        """Notes that the master has answered."""
        self._was_connected = True
        self._away_since = None

    def wait(self, error: MasterUnreachable, *, until: float | None = None) -> None:
        """Sleeps before the next attempt, or raises ``error``."""
        now = self._clock()
        if not self._was_connected:
            raise error
        if self._away_since is None:
            self._away_since = now
            self.outages += 1
            self._tell(f"connection to {self.session.master} lost; waiting for the master")
        if until is not None and now >= until:
            raise error
        if now - self._away_since >= self._give_up_after:
            raise MasterUnreachable(f"{error.message}; gave up after {self._give_up_after / 60:.0f} minutes") from error
        self.pause(RETRY_SECONDS if until is None else min(RETRY_SECONDS, until - now))

    def pause(self, seconds: float = RETRY_SECONDS) -> None:
        """Sleeps."""
        self._sleep(seconds)


def follow_log(
    reconnector: Reconnector, is_over: Callable[[], bool], lines: Callable[[], Iterator[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """Yields each line of the log of a trial or task once, in order, until ``is_over`` returns True.

    ``lines`` opens the stream. A stream that ends before the task does is opened again. It begins with the first line
    each time, so lines up to the last one that was yielded are dropped by their ids.
    """
    last = -1
    reconnector.call(is_over)  # an unknown trial or address is an error at once
    while True:
        outages = reconnector.outages
        try:
            for line in lines():
                reconnector.connected()
                number = int(line.get("id", last + 1))
                if number > last:
                    last = number
                    yield line
        except MasterUnreachable as error:
            reconnector.wait(error)
            continue
        except ValueError as error:  # an incomplete line: the connection broke
            reconnector.wait(MasterUnreachable(f"the log stream was interrupted: {error}"))
            continue
        if not reconnector.call(is_over):
            reconnector.pause()
        elif reconnector.outages == outages:
            return
