"""Runs an entrypoint with this process beside it: for a pause by a signal, and to keep its outputs at its end."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from determined.errors import StorageError
from determined.exec.pausable import PausableScript, Pause
from determined_launch import end_request, environment, process, processes
from determined_launch.environment import TaskFacts


def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    pause: Pause | None,
    facts: TaskFacts,
    *,
    has_peers: bool,
    at_end: Callable[[], object] | None = None,
) -> int:
    """Returns the exit code of the entrypoint, and 0 however it ends after the signal of a pause was sent.

    The master has the acknowledgement by then, so that code 0 means "not finished". An entrypoint that a signal ends
    without a pause ends this process in the same way.

    Parameters:
        pause: None if the entrypoint is asked by nothing here.
        has_peers: there are containers beside this one.
        at_end: called when no process of the entrypoint is left, before this one ends; also after a kill, with a
            limited time.
    """
    processes.adopt_orphans()
    if pause is not None:
        environ = {**environ, environment.PAUSE_SIGNAL: pause.signal}
    last_step = None if at_end is None else _LastStep(at_end)
    with process.SignalForwarder() as signals:
        try:
            # The script ends with its shim, as one that has taken the place of this process does.
            child = subprocess.Popen(list(argv), env=dict(environ), preexec_fn=processes.end_with_parent)
        except OSError as error:
            return process.start_failure(argv, error)
        signals.send_to(child.send_signal)
        if last_step is not None:
            last_step.listen(environ)
        if pause is None:
            status = child.wait()
        else:
            status = PausableScript(child, environ, pause, facts).attend(has_peers=has_peers)
        if last_step is not None:
            last_step.run()  # a signal for the script, which has ended, does not end it
    if status < 0:
        _end_by(-status)
    return process.exit_code(status)


class _LastStep:
    """The last step of an attempt, which has a limited time once the attempt is killed."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self._lock = threading.Lock()
        self._has_begun = False
        signal.signal(signal.SIGALRM, self._give_up)

    def listen(self, environ: Mapping[str, str]) -> None:
        """Lets the shim end the script through this process."""
        end_request.listen(environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR), self._end_script)

    def run(self) -> None:
        with self._lock:
            self._has_begun = True
            processes.kill_below(os.getpid())
        self._act()
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _end_script(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, end_request.STORE_SECONDS)
        with self._lock:
            if not self._has_begun:  # later, only what stores the outputs is below this process
                processes.kill_below(os.getpid())

    def _give_up(self, *_: object) -> None:
        if self._has_begun:
            raise StorageError(f"the attempt was killed, and they were not stored in {end_request.STORE_SECONDS:g} s")


def _end_by(number: int) -> None:
    """Ends this process as the script has ended, for the words and the records that depend on the signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
