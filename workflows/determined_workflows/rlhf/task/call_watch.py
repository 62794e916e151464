"""Says which calls take long, so that a rollout of an hour and a worker that hangs can be told from a quiet one."""

import threading
from collections.abc import Callable
from types import TracebackType

FIRST_SECONDS = 60.0


class CallWatch:
    """Context manager that prints the calls that have no reply for a minute, then for two, four, and so on.

    Args:
        in_flight: returns names and seconds of the calls without a reply.
        first: seconds after which a call is named first.
        tell: prints a line.
    """

    def __init__(
        self,
        in_flight: Callable[[], list[tuple[str, float]]],
        first: float = FIRST_SECONDS,
        tell: Callable[[str], object] = lambda text: print(text, flush=True),
    ) -> None:
        self._in_flight = in_flight
        self._first = first
        self._tell = tell
        self._next: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="call-watch", daemon=True)

    def __enter__(self) -> "CallWatch":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Names the calls that are due."""
        calls = dict(self._in_flight())
        self._next = {name: limit for name, limit in self._next.items() if name in calls}
        for name, seconds in calls.items():
            limit = self._next.get(name, self._first)
            if seconds >= limit:
                self._tell(f"{name} has not answered for {seconds:.0f} s")
                while limit <= seconds:
                    limit *= 2
                self._next[name] = limit

    def _watch(self) -> None:
        while not self._ended.wait(self._first / 4):
            self.look()
