"""``det runner run`` as a process that tests stop, kill and restart."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import yaml
from tests.support.waiting import wait_until


class Runner:
    """A run in ``folder``. ``flags`` are those of ``det runner run``."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "determined_cli", "runner", "run", *flags],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def pids(self) -> list[int]:
        """Waits until two tasks run. Returns their pids."""

        def texts() -> list[str]:
            pid_texts = [path.read_text().strip() for path in self.folder.glob("pid.[12]")]
            return pid_texts if len(pid_texts) == 2 and all(pid_texts) else []

        return [int(text) for text in wait_until(texts)]

    def wait_for_file(self, name: str) -> None:
        """Waits until a command has made a file in the folder."""
        wait_until((self.folder / name).exists, what=name)

    def supervisor(self) -> int:
        """Waits for the process that supervises the commands. Returns its pid."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(wait_until(lambda: children.read_text().split())[0])

    def wait_for_signals_taken(self) -> None:
        """Waits until the run has read all signals that were sent to it and waits again."""
        status = Path(f"/proc/{self.process.pid}/status")
        wait_until(lambda: re.search(r"^ShdPnd:\t0+$", status.read_text(), re.MULTILINE))
        wait_until(lambda: process_state(self.process.pid) == "S")

    def end(self) -> tuple[int, str]:
        """Waits for the end. Returns the exit code and the output."""
        output, _ = self.process.communicate(timeout=120)
        return self.process.returncode, output

    def kill(self) -> None:
        """Kills the runner. Waits until its supervisor has ended too."""
        self.process.kill()
        if self.process.stdout and not self.process.stdout.closed:
            self.process.communicate()


def is_gone(pid: int) -> bool:
    """Returns True if a process has ended. A zombie has ended; only its parent has not noticed."""
    return process_state(pid) in ("", "Z")


def process_state(pid: int) -> str:
    """Returns the letter of the process's state, or "" if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def freeze(pid: int) -> None:
    """Suspends a process. Waits until it is suspended."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: process_state(pid) == "T")


def states(folder: Path) -> dict[str, dict[str, str]]:
    """Returns the stored states by task."""
    return {path.parent.name: yaml.safe_load(path.read_text()) for path in (folder / "output").glob("*/stat")}
