"""Ships metric reports to the master from one thread, in order. Each is kept on disk until the master accepts it.

If a process dies, its remaining reports are sent by the next process of the same container before its own reports;
after the end of the container the agent sends them before it reports the end. The next *attempt* does not send them.
It continues from the newest checkpoint and reports the later steps itself; the master refuses reports of a replaced
attempt.
"""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined.client import trials
from determined.client.session import FOR_EVER, Session
from determined.core._own_process import OwnProcess
from determined.core._spool import Spool, SpooledReport
from determined.errors import ApiError, Conflict, Forbidden, MasterUnreachable, NotFound, Unauthenticated

logger = logging.getLogger(__name__)

GONE = (Unauthenticated, Forbidden, NotFound, Conflict)
"""HTTP statuses that mean that the allocation lost its trial; another allocation may already be running."""


LAST_SECONDS = 10.0
"""Time for which a failing process still tries to deliver its reports."""
MAX_REPORTS = 100
MAX_BYTES = 1 << 20
"""A request with reports that waited together takes no more after so many of them, or so many bytes."""


@dataclass(frozen=True)
class _Flush:
    done: threading.Event


@dataclass(frozen=True)
class _Item:
    report: SpooledReport
    is_leftover: bool = False


class Shipper:
    """Accepts reports without waiting. A refusal is raised by the next report of the user, ``flush`` or ``close``; the
    loss of the allocation ends the process."""

    def __init__(
        self, session: Session, trial_id: int, *, spool: Path | None = None, on_gone: Callable[[str], object]
    ) -> None:
        self._session = session
        self._trial_id = trial_id
        self._spool = Spool(spool)
        self._order = threading.Lock()
        self._on_gone = on_gone
        self._queue: queue.SimpleQueue[_Item | _Flush | Callable[[], object] | None] = queue.SimpleQueue()
        self._ahead: deque[_Flush | Callable[[], object] | None] = deque()
        """What was taken from the queue behind the reports of one request."""
        self._failure: Exception | None = None
        self._broken: Exception | None = None
        """What ended the thread, which then delivers nothing any more."""
        self._stopping = threading.Event()
        self._process = OwnProcess()
        self._thread = threading.Thread(target=self._run, name="determined-metrics", daemon=True)

    def start(self) -> None:
        """Starts the thread. The thread first sends the reports that an earlier process of this container left."""
        for report in self._spool.open():
            self._queue.put(_Item(report, is_leftover=True))
        self._thread.start()

    def put(self, body: dict[str, Any]) -> None:
        """Writes one report to disk and queues it. Raises the failure of an earlier report.

        Raises TypeError or ValueError if the report has no JSON form.
        """
        self._process.require("metrics are reported")
        self._raise()
        self.put_quietly(body)

    def put_quietly(self, body: dict[str, Any]) -> None:
        """Like ``put``, for reports that the user does not make: leaves the failure for the user's next report."""
        with self._order:  # keeps the order on disk and in the queue equal
            self._queue.put(_Item(self._spool.append(body)))

    def put_lossy(self, call: Callable[[], object]) -> None:
        """Queues a call whose loss is harmless. The call is made once, and a failure is only logged."""
        self._process.require("progress and status are reported")
        self._queue.put(call)

    def flush(self) -> None:
        """Waits until the master has answered everything queued so far. Raises the failure of a report."""
        self._process.require("reports are flushed")
        done = threading.Event()
        self._queue.put(_Flush(done))
        while self._thread.is_alive() and not done.wait(0.5):
            pass
        self._raise()

    def close(self, *, deliver: bool) -> None:
        """Stops the thread: with ``deliver`` when the master has answered everything, else after a grace period."""
        if self._thread.ident is not None:
            self._queue.put(None)
            if not deliver:
                self._thread.join(LAST_SECONDS)
                self._stopping.set()
            self._thread.join()
        self._spool.close()
        self._session.close()
        if deliver:
            self._raise()

    def _raise(self) -> None:
        failure, self._failure = self._broken or self._failure, None
        if failure is not None:
            raise failure

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            logger.exception("metric reports are no longer delivered")
            self._broken = error

    def _work(self) -> None:
        while True:
            item = self._next()
            if item is None:
                return
            if isinstance(item, _Flush):
                item.done.set()
            elif self._stopping.is_set():
                continue
            elif isinstance(item, list):
                self._deliver(item)
            else:
                try:
                    item()
                except ApiError as error:
                    logger.debug("cannot send the status or progress: %s", error)

    def _next(self) -> list[_Item] | _Flush | Callable[[], object] | None:
        """Waits for what was queued next. Reports that wait already come together, as many as fit into a request."""
        first = self._ahead.popleft() if self._ahead else self._queue.get()
        if not isinstance(first, _Item):
            return first
        items, size = [first], first.report.size
        while len(items) < MAX_REPORTS and size < MAX_BYTES:
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                break
            if not isinstance(following, _Item):
                self._ahead.append(following)
                break
            items.append(following)
            size += following.report.size
        return items

    def _deliver(self, items: list[_Item]) -> None:
        answers = self._send_until_answered(items)
        if answers is None:
            return
        for item, error in zip(items, answers, strict=True):
            if isinstance(error, GONE):
                self._on_gone(f"this attempt has ended, so the master rejects its reports: {error}")
                return
            if error is not None and item.is_leftover:
                logger.warning("the master rejected a report of an earlier process: %s", error)
            elif error is not None:
                self._failure = self._failure or error
        self._spool.remove(items[-1].report)

    def _send_until_answered(self, items: list[_Item]) -> list[ApiError | None] | None:
        """Returns the master's answer to each report; None if this process ends before there is one."""
        delays = FOR_EVER.delays()
        away = False
        while True:
            try:
                return self._send(items)
            except MasterUnreachable as error:
                if not away:
                    away = True
                    logger.warning("metric reports wait until the master answers: %s", error)
                if self._stopping.wait(next(delays)):
                    return None

    def _send(self, items: list[_Item]) -> list[ApiError | None]:
        """Returns an answer for each report, none behind one of GONE. Raises MasterUnreachable. A report that arrived
        before counts as stored when it is sent again."""
        bodies = [item.report.body for item in items]
        try:
            if len(items) > 1:
                return trials.report_batch(self._session, self._trial_id, bodies)
            trials.report_metrics(self._session, self._trial_id, bodies[0])
        except MasterUnreachable:
            raise
        except ApiError as error:
            if len(items) == 1:
                return [error]
            return self._send_one_by_one(items)
        return [None]

    def _send_one_by_one(self, items: list[_Item]) -> list[ApiError | None]:
        """Sends what was refused as a whole, or by a master that only takes single reports: each has its own answer.
        Nothing follows the one that says that the allocation lost its trial."""
        answers: list[ApiError | None] = []
        for item in items:
            answers += self._send([item])
            if isinstance(answers[-1], GONE):
                break
        return answers
