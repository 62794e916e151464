"""Preemption: learns from the master that the trial has to give back its slots."""

import logging
import threading
from collections.abc import Callable
from enum import Enum

from determined.client import allocations
from determined.client.session import Retry, Session
from determined.core import _steps
from determined.core._distributed import DistributedContext
from determined.core._own_process import OwnProcess
from determined.errors import ApiError, Conflict, Forbidden, MasterUnreachable, NotFound, Unauthenticated

logger = logging.getLogger(__name__)

LONG_POLL_SECONDS = 60
FIRST_ASK_SECONDS = 0.05
"""Time until the first request, unless somebody waits for its answer: a process that ends sooner needs none."""
_AGAIN = Retry(attempts=None, first_delay=0.1, longest_delay=2.0)


class PreemptMode(Enum):
    """Selects which workers ask for preemption.

    ``WorkersAskChief``: every worker calls ``should_preempt`` at the same point and receives the chief's answer.
    ``ChiefOnly``: only the chief may call it. ``WorkersAskMaster``: each worker asks the master on its own.
    """

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class Watcher:
    """Watches for preemption with a long poll in one thread; reading the flag ``preempted`` costs nothing."""

    def __init__(self, session: Session, allocation_id: str, *, on_gone: Callable[[str], object]) -> None:
        self._session = session
        self._allocation_id = allocation_id
        self._on_gone = on_gone
        self._closed = threading.Event()
        self._may_ask = threading.Event()
        self._asked_once = threading.Event()
        self.preempted = False
        self._process = OwnProcess()
        self._thread = threading.Thread(target=self._run, name="determined-preempt", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def first_answer(self) -> bool:
        """Returns the flag after the first answer has arrived or the first request has failed."""
        self._process.require("should_preempt() is asked")
        self._may_ask.set()
        self._asked_once.wait()
        return self.preempted

    def close(self) -> None:
        """Stops the thread. Closing the session, which belongs to this watcher alone, ends the poll in progress."""
        self._closed.set()
        self._may_ask.set()
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


class PreemptContext:
    """Answers whether the trial must stop now: ``core_context.preempt``. Ask wherever stopping is cheap.

    :func:`determined.core.init` makes it.

    >>> if core_context.preempt.should_preempt():  # doctest: +SKIP
    ...     save_checkpoint()
    ...     return
    """

    def __init__(
        self,
        session: Session,
        allocation_id: str,
        distributed: DistributedContext,
        mode: PreemptMode,
        *,
        on_gone: Callable[[str], object],
        on_acknowledged: Callable[[], object] = lambda: None,
    ) -> None:
        self._on_acknowledged = on_acknowledged
        self._session = session
        self._allocation_id = allocation_id
        self._distributed = distributed
        self._mode = mode
        self._acknowledged = False
        asks = distributed.rank == 0 or mode is PreemptMode.WorkersAskMaster
        self._watcher = Watcher(session, allocation_id, on_gone=on_gone) if asks else None

    def start(self) -> "PreemptContext":
        """Starts to watch for preemption and returns this context; :func:`determined.core.init` calls it."""
        if self._watcher is not None:
            self._watcher.start()
        return self

    def should_preempt(self, auto_ack: bool = True) -> bool:
        """Returns True if the trial must save a checkpoint and exit now.

        Args:
            auto_ack: acknowledge the preemption immediately, so that exit code 0 means "not finished". With False,
                call :meth:`acknowledge_preemption_signal` before the process exits.

        Raises:
            RuntimeError: with ``PreemptMode.ChiefOnly``, if a worker that is not the chief calls it.
        """
        _steps.mark()
        if self._mode is PreemptMode.ChiefOnly and self._distributed.rank != 0:
            raise RuntimeError("with PreemptMode.ChiefOnly only the chief (rank 0) may call should_preempt()")
        answer = self._watcher.first_answer() if self._watcher is not None else False
        if self._mode is PreemptMode.WorkersAskChief and self._distributed.size > 1:
            answer = bool(self._distributed.broadcast(answer))
        if answer and auto_ack:
            self.acknowledge_preemption_signal()
        return answer

    def acknowledge_preemption_signal(self) -> None:
        """Tells the master that the trial will exit unfinished: exit code 0 then means "preempted", not "completed"."""
        if self._watcher is not None and not self._acknowledged:
            allocations.acknowledge_preemption(self._session, self._allocation_id)
            self._acknowledged = True
            self._on_acknowledged()

    def close(self) -> None:
        """Stops watching for preemption."""
        if self._watcher is not None:
            self._watcher.close()


class DummyPreemptContext(PreemptContext):
    """The preemption context off the cluster: never preempted."""

    def __init__(self) -> None:
        pass

    def start(self) -> "PreemptContext":
        return self

    def should_preempt(self, auto_ack: bool = True) -> bool:
        _steps.mark()
        return False

    def acknowledge_preemption_signal(self) -> None:
        pass

    def close(self) -> None:
        pass
