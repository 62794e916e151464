"""Supervisor of a master and an agent: starts and restarts them, and ends with them."""

import ctypes
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from determined_cli.up.data_folder import open_log

MAX_BACKOFF_SECONDS = 10.0
UPGRADING = "upgrading: "
WELL_SECONDS = 2.0
"""A child without an announcement counts as started after this time."""
AGAIN_SECONDS = 0.1
"""Delay before a child that had started well is restarted, except for the first time within STEADY_SECONDS."""
STEADY_SECONDS = 30.0
_PR_SET_PDEATHSIG = 1


@dataclass
class Child:
    """One supervised program. Its output goes to ``log``; with ``announced`` the supervisor reads its standard output
    first, until the program has announced itself."""

    name: str
    argv: Sequence[str]
    log: Path
    announced: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of this process."""
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    was_ready: bool = False
    """True if the child has announced itself since its last start."""
    failures: int = 0
    """Number of consecutive starts that ended before the child was ready."""
    died_at: float = -math.inf
    retry_at: float = 0.0
    exits: list[int] = field(default_factory=list)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        self.started_at = time.monotonic()
        self.was_ready = False
        with open_log(self.log) as log:
            self.process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if self.announced else log,
                stderr=log,
                env={**os.environ, **self.variables},
                start_new_session=True,
                preexec_fn=_die_with_parent(os.getpid()),
            )

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def announcement(
        self, prefix: str, seconds: float, on_upgrade: Callable[[str], None] = lambda _text: None
    ) -> str | None:
        """What follows ``prefix`` on its standard output; None where it ended or kept silent.

        A program that upgrades its database says so, which ``on_upgrade`` gets, and may then take as long as it needs.
        """
        assert self.process is not None
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        buffer = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                if not selector.select(0.1):
                    if self.process.poll() is not None:
                        return None
                    continue
                chunk = os.read(self.process.stdout.fileno(), 4096)
                if not chunk:
                    return None
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    if line.startswith(prefix.encode()):
                        self.was_ready = True
                        rest = os.dup(self.process.stdout.fileno())
                        threading.Thread(target=self._log_rest, args=(rest,), daemon=True).start()
                        return line[len(prefix) :].decode().strip()
                    if line.startswith(UPGRADING.encode()):
                        deadline = math.inf
                        on_upgrade(line.decode().strip())
        return None

    def _log_rest(self, output: int) -> None:
        """Moves what a program prints later to its log, so that it never waits for a reader."""
        with open(output, "rb", buffering=0) as source, open_log(self.log) as log:
            while data := source.read(4096):
                log.write(data)
                log.flush()

    def tend(self, say: Callable[[str], None]) -> bool:
        """Restarts the child after its death. Returns True if it was just started."""
        if self.is_running:
            return False
        now = time.monotonic()
        if self.process is not None:
            code = self.process.returncode
            self.exits.append(code)
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None
            delay = self.restart_delay(now)
            self.died_at, self.retry_at = now, now + delay
            say(f"the {self.name} ended ({_how(code)}); restarting in {delay:.1f} s; its log: {self.log}")
        if now < self.retry_at:
            return False
        self.start()
        return True

    def restart_delay(self, now: float) -> float:
        """Returns the seconds before the next start: none for the first end in a while of a child that was ready, more
        after each failed start."""
        if self.was_ready or (not self.announced and now - self.started_at >= WELL_SECONDS):
            self.failures = 0
            return 0.0 if now - self.died_at > STEADY_SECONDS else AGAIN_SECONDS
        self.failures += 1
        return float(min(MAX_BACKOFF_SECONDS, 0.25 * 2**self.failures))


def python(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs one of our modules with this Python, whatever the current folder contains."""
    return [sys.executable, "-P", "-m", module, *arguments]


def _how(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    return f"signal {signal.Signals(-code).name if -code in set(signal.Signals) else -code}"


def _die_with_parent(parent: int) -> Callable[[], None]:
    """The child dies with the supervisor, also on SIGKILL: tasks keep running, and the next start finds them."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return before_exec
