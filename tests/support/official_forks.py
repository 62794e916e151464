"""Runs the official client's command line in forks of a process that has imported it: most of what one command computes
are its imports.

The official Python runs this file as a program. Each line of its input is an order: arguments, environment, folder, and
files for the input and the two outputs. For each it writes the exit code of a fork that calls the client's own ``main``.
"""

import json
import os
import sys
from typing import Any


def serve() -> None:
    """Handles orders until the input ends. Returns in a fork, which then has the order's environment and files."""
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            become(order)
            return
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    sys.exit(0)


def become(order: dict[str, Any]) -> None:
    """Gives this fork the arguments, environment, folder and files of the order."""
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    sys.argv = order["argv"]
    for number, (path, flags) in enumerate(zip(order["files"], (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)


if __name__ == "__main__":
    from determined.cli.__main__ import main  # the official one

    serve()
    sys.exit(main(sys.argv[1:]))  # its default are the arguments at the time of the import
