"""Ends the commands of a runner that is killed: a program that outlives it.

It reads ``+PID`` when a command starts and ``-PID`` when it has ended. At the end of its input the runner is gone, and
it kills the process groups that are left. It holds the lock of the output until then.
"""

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        # A line without its end was cut off by the runner's end; its command has not been let go.
        if line.endswith("\n"):
            (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
