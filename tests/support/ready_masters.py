"""Masters that are forked from a process that has already imported the master's modules.

They are for tests that kill and start dozens of masters one after another. Each start saves its imports, and each
master is still a whole process. Run as a program, it reads a line of JSON with ``argv`` and ``log`` for each master,
writes the master's pid, and writes its exit code after it has ended.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Forked:
    """The child of another process, with the methods of ``subprocess.Popen`` that tests use."""

    def __init__(self, parent: subprocess.Popen[bytes], order: dict[str, object]) -> None:
        assert parent.stdin is not None
        assert parent.stdout is not None
        self._answers = parent.stdout
        self._code: int | None = None
        parent.stdin.write(json.dumps(order).encode() + b"\n")
        self.pid = int(self._answers.readline())

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked master", timeout or 0)
            self._code = int(self._answers.readline())
        return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ReadyMasters:
    """Starts a master when called, like ``spawned``. Start the next one only after the last has ended."""

    def __init__(self, environment: dict[str, str]) -> None:
        # Unbuffered, so that ``select`` reports all unread data.
        self._parent = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )
        self._last: Forked | None = None

    def __call__(self, argv: list[str], log: Path, environment: dict[str, str]) -> Forked:
        arguments = argv[argv.index("determined_master") + 1 :]
        self._last = Forked(self._parent, {"argv": arguments, "log": str(log), "environment": environment})
        return self._last

    def close(self) -> None:
        if self._last is not None:
            self._last.kill()
            self._last.wait(60)
        with self._parent as parent:  # closes its pipes, which ends it
            pass
        assert parent.returncode == 0


@contextlib.contextmanager
def ready_masters(environment: dict[str, str]) -> Iterator[ReadyMasters]:
    created = ReadyMasters(environment)
    try:
        yield created
    finally:
        created.close()


def main() -> None:
    import determined_master.__main__ as master

    def serve(order: dict[str, Any]) -> int:
        os.setsid()
        os.chdir(Path(order["log"]).parent)
        log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for file, number in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(file, number)
        os.environ.clear()
        os.environ.update(order["environment"])
        try:
            return master.main(order["argv"])
        except BaseException:
            traceback.print_exc()
            return 1

    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if not pid:
            os._exit(serve(order))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
