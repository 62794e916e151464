"""Watches for preemption: a thread that keeps the master's long poll open."""

import logging
import threading
from collections.abc import Callable

from determined.client import allocations
from determined.client.session import Retry, Session
from determined.errors import ApiError, Conflict, Forbidden, MasterUnreachable, NotFound, Unauthenticated

logger = logging.getLogger(__name__)

LONG_POLL_SECONDS = 60
FIRST_ASK_SECONDS = 0.05
"""Time until the first request, unless somebody waits for its answer: a process that ends sooner needs none."""
_AGAIN = Retry(attempts=None, first_delay=0.1, longest_delay=2.0)


class Watcher:
    """Watches for preemption with a long poll in one thread; reading the flag ``preempted`` costs nothing."""

    def __init__(
        self,
        session: Session,
        allocation_id: str,
        *,
        on_gone: Callable[[str], object],
        on_preempted: Callable[[], object] = lambda: None,
    ) -> None:
        """``on_preempted`` is called once, in the thread, after the flag is set; ``on_gone`` if the attempt is over."""
        self._session = session
        self._allocation_id = allocation_id
        self._on_gone = on_gone
        self._on_preempted = on_preempted
        self._closed = threading.Event()
        self._may_ask = threading.Event()
        self._asked_once = threading.Event()
        self.preempted = False
        self._thread = threading.Thread(target=self._run, name="determined-preempt", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def first_answer(self) -> bool:
        """Returns the flag after the first answer has arrived or the first request has failed."""
        self._may_ask.set()
        self._asked_once.wait()
        return self.preempted

    def close(self) -> None:
        """Stops the thread. Closing the session, which belongs to this watcher alone, ends the poll in progress."""
        self._closed.set()
        self._may_ask.set()
        self._asked_once.set()  # for who waits for an answer that no longer comes
        self._session.close()
        self._thread.join(5.0)

    def _run(self) -> None:
        self._may_ask.wait(FIRST_ASK_SECONDS)
        wait, delays = 0, _AGAIN.delays()
        while not self._closed.is_set() and not self.preempted:
            try:
                self.preempted = allocations.preemption(
                    self._session, self._allocation_id, wait, retry=Retry(attempts=1)
                )
            except (Unauthenticated, Forbidden, NotFound, Conflict) as error:
                if not self._closed.is_set():
                    self._on_gone(f"this attempt has ended: {error}")
                self._asked_once.set()
                return
            except MasterUnreachable:
                self._asked_once.set()
                self._closed.wait(next(delays))
            except (ApiError, ValueError) as error:
                if not self._closed.is_set():
                    logger.warning("cannot ask the master for preemption: %s", error)
                self._asked_once.set()
                self._closed.wait(next(delays))
            else:
                wait, delays = LONG_POLL_SECONDS, _AGAIN.delays()
                self._asked_once.set()
        if self.preempted:
            self._on_preempted()
