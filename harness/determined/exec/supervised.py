"""Runs an entrypoint with this process beside it: for a pause by a signal, and to keep its outputs at its end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from determined.exec.pausable import PausableScript, Pause
from determined_launch import environment, process, processes
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
        at_end: called when no process of the entrypoint is left, before this one ends.
    """
    processes.adopt_orphans()
    if pause is not None:
        environ = {**environ, environment.PAUSE_SIGNAL: pause.signal}
    with process.SignalForwarder() as signals:
        try:
            # The script ends with its shim, as one that has taken the place of this process does.
            child = subprocess.Popen(list(argv), env=dict(environ), preexec_fn=processes.end_with_parent)
        except OSError as error:
            return process.start_failure(argv, error)
        signals.send_to(child.send_signal)
        if pause is None:
            status = child.wait()
        else:
            status = PausableScript(child, environ, pause, facts).attend(has_peers=has_peers)
    if at_end is not None:
        processes.kill_below(os.getpid())
        at_end()
    if status < 0:
        _end_by(-status)
    return process.exit_code(status)


def _end_by(number: int) -> None:
    """Ends this process as the script has ended, for the words and the records that depend on the signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
