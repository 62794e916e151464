"""Ships reports to the master from one thread, in order, kept on disk while the master is away."""

import json
import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined.client import trials
from determined.client.session import FOR_EVER, Session
from determined.errors import ApiError, Conflict, Forbidden, MasterUnreachable, NotFound, Unauthenticated

logger = logging.getLogger(__name__)

GONE = (Unauthenticated, Forbidden, NotFound, Conflict)
"""Answers that mean: this allocation is no longer the trial's own, another one may be running already."""


LAST_SECONDS = 10.0
"""How long a failing process still tries to deliver what it reported."""


@dataclass(frozen=True)
class _Flush:
    done: threading.Event


class Shipper:
    """Accepts reports without waiting; a refusal is raised at the next call, a lost allocation ends the process."""

    def __init__(
        self, session: Session, trial_id: int, *, spool: Path | None = None, on_gone: Callable[[str], object]
    ) -> None:
        self._session = session
        self._trial_id = trial_id
        self._spool = spool
        self._on_gone = on_gone
        self._queue: queue.SimpleQueue[dict[str, Any] | _Flush | Callable[[], object] | None] = queue.SimpleQueue()
        self._failure: ApiError | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="determined-metrics", daemon=True)

    def start(self) -> None:
        """Begins with what an earlier process of this run could not deliver."""
        if self._spool is not None and self._spool.exists():
            for line in self._spool.read_text(encoding="utf-8").splitlines():
                self._queue.put(json.loads(line))
            self._spool.unlink()
        self._thread.start()

    def put(self, body: dict[str, Any]) -> None:
        """Queues one report. Raises what became of an earlier one."""
        self._raise()
        self._queue.put(body)

    def put_lossy(self, call: Callable[[], object]) -> None:
        """Queues a call whose loss is harmless; it is made once, and its failure only logged."""
        self._queue.put(call)

    def flush(self) -> None:
        """Waits until the master has accepted everything queued so far."""
        done = threading.Event()
        self._queue.put(_Flush(done))
        while self._thread.is_alive() and not done.wait(0.5):
            pass
        self._raise()

    def close(self, *, deliver: bool) -> None:
        """Ends the thread; with ``deliver`` when everything is accepted, else after a short while at most."""
        if self._thread.ident is not None:
            self._queue.put(None)
            if not deliver:
                self._thread.join(LAST_SECONDS)
                self._stopping.set()
            self._thread.join()
        self._session.close()
        if deliver:
            self._raise()

    def _raise(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, _Flush):
                item.done.set()
            elif self._stopping.is_set():
                continue
            elif isinstance(item, dict):
                self._deliver(item)
            else:
                try:
                    item()
                except ApiError as error:
                    logger.debug("not told: %s", error)

    def _deliver(self, body: dict[str, Any]) -> None:
        delays = FOR_EVER.delays()
        away = False
        while True:
            try:
                trials.report_metrics(self._session, self._trial_id, body)
            except MasterUnreachable as error:
                if not away:
                    away = True
                    self._keep(body)
                    logger.warning("reports wait: %s", error)
                if self._stopping.wait(next(delays)):
                    return
            except GONE as error:
                self._on_gone(f"this attempt is over, the master refuses its reports: {error}")
                return
            except ApiError as error:
                self._failure = self._failure or error
                return
            else:
                break
        if away and self._spool is not None:
            self._spool.unlink(missing_ok=True)

    def _keep(self, body: dict[str, Any]) -> None:
        if self._spool is None:
            return
        try:
            self._spool.parent.mkdir(parents=True, exist_ok=True)
            with self._spool.open("a", encoding="utf-8") as file:
                file.write(json.dumps(body) + "\n")
        except OSError as error:
            logger.warning("reports are kept in memory only: %s", error)
