"""Gives an entrypoint a signal and a period of grace when its trial has to leave (``pause`` of the configuration). Its
own processes need to know nothing of Detent."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from determined.client import allocations
from determined.client.preemption_watch import Watcher
from determined.client.session import Retry, Session
from determined.errors import ApiError, DeterminedError
from determined_launch import pause_signal, processes
from determined_launch.environment import TaskFacts

DEFAULT_GRACE_SECONDS = 60.0
TICK_SECONDS = 0.2
"""Pause between two looks for ranks that have started since the signal was sent."""


@dataclass(frozen=True)
class Pause:
    """The section ``pause`` of a configuration."""

    signal: str = pause_signal.DEFAULT
    grace: float = DEFAULT_GRACE_SECONDS

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Pause | None":
        """Returns None if the configuration has no such section."""
        section = config.get("pause")
        if not isinstance(section, Mapping):
            return None
        return cls(section.get("signal") or cls.signal, float(section.get("grace") or cls.grace))


class PausableScript:
    """The running entrypoint, the master's long poll beside it, and what was sent to its processes."""

    def __init__(
        self, child: "subprocess.Popen[bytes]", environ: Mapping[str, str], pause: Pause, facts: TaskFacts
    ) -> None:
        self._child = child
        self._environ = environ
        self._pause = pause
        self._facts = facts
        self._number = pause_signal.number_of(pause.signal)
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._signalled: set[int] = set()

    def attend(self, *, has_peers: bool) -> int:
        """Waits for the end of the script or a pause; returns the status of ``subprocess``, 0 after a pause."""
        threading.Thread(target=self._wait, name="entrypoint", daemon=True).start()
        watcher = Watcher(
            self._session(), self._facts.allocation_id, on_gone=lambda _: None, on_preempted=self._changed.set
        )
        watcher.start()
        self._changed.wait()
        if not self._ended.is_set():
            self._leave()
            return 0
        watcher.close()
        status = self._child.returncode
        # A rank elsewhere may have left on the signal before the word of it came here, and this one failed without it.
        if status and has_peers and self._must_leave():
            _say(f"the script ended with {_how(status)} while the trial was asked to leave: it continues later")
            self._acknowledge()
            return 0
        return status

    def _wait(self) -> None:
        self._child.wait()
        self._ended.set()
        self._changed.set()

    def _leave(self) -> None:
        """Sends the signal to each rank once, and ends what is left after the period of grace."""
        began = time.monotonic()
        pause_signal.mark_as_sent(self._environ)
        self._send()
        acknowledgement = threading.Thread(target=self._acknowledge, name="acknowledgement", daemon=True)
        acknowledgement.start()
        while not self._ended.wait(TICK_SECONDS) and time.monotonic() - began < self._pause.grace:
            self._send()
        seconds = time.monotonic() - began
        if self._ended.is_set():
            how = _how(self._child.returncode)
            _say(f"the script ended {seconds:.1f} s after {self._pause.signal} with {how}; the trial continues later")
        else:
            _say(f"the script still ran {self._pause.grace:g} s after {self._pause.signal} (pause.grace) and is ended")
            processes.kill_below(os.getpid())
        # Without it, code 0 would mean "completed". It waits for a master that is away.
        acknowledgement.join()

    def _send(self) -> None:
        """Sends the signal to ranks that did not get it yet."""
        new = [pid for pid in pause_signal.roots(self._child.pid, os.getpid()) if pid not in self._signalled]
        if not new:
            return
        savers = pause_signal.savers(self._environ)
        sent = [pid for root in new for pid in pause_signal.receivers(root, self._number, savers)]
        self._signalled.update(new)
        for pid in sent:
            processes.send(pid, self._number)
        grace = f"what still runs in {self._pause.grace:g} s is ended"
        if sent:
            _say(f"the trial has to leave: {self._pause.signal} to {_processes(sent)}; {grace}")
        else:
            _say(f"the trial has to leave: the script has asked for it itself (Core API); {grace}")

    def _must_leave(self) -> bool:
        try:
            with self._session() as session:
                return allocations.preemption(session, self._facts.allocation_id, 0, retry=Retry(attempts=1))
        except DeterminedError:
            return False

    def _acknowledge(self) -> None:
        try:
            with self._session() as session:
                allocations.acknowledge_preemption(session, self._facts.allocation_id)
        except ApiError as error:
            _say(f"the master does not take the acknowledgement: {error}")

    def _session(self) -> Session:
        return Session(self._facts.master, allocation_token=self._facts.session_token)


def _processes(pids: Sequence[int]) -> str:
    shown = ", ".join(map(str, pids[:8])) + (", …" if len(pids) > 8 else "")
    return f"process {shown}" if len(pids) == 1 else f"processes {shown}"


def _how(status: int) -> str:
    """Describes a status of ``subprocess``.

    >>> _how(3), _how(-10)
    ('code 3', 'signal 10 (SIGUSR1)')
    """
    if status >= 0:
        return f"code {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"


def _say(text: str) -> None:
    print(f"determined: {text}", flush=True)
