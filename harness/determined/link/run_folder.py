"""The folder of one container's run on its agent: the paths of its files and the format number.

A restarted agent knows its containers only by these folders, so an agent reads every earlier format. The shim receives
each path in its order file and imports nothing from here.
"""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined_launch.atomic_file import write_atomic
from determined_launch.end_request import FIFO
from determined_launch.environment import KEPT_OUTPUTS
from determined_launch.regular_files import read_regular, write_regular

FORMAT = 1
"""Format number; increased after every change of a name or a meaning below."""

READABLE = frozenset({1})
MAX_RECORD_BYTES = 64 << 20


@dataclass(frozen=True)
class RunFolder:
    """The folder of one container. It is private to its user (0700) because the order file has the task's secrets."""

    path: Path

    @property
    def record(self) -> Path:
        """Returns the path of the desired container and the agent's decisions; written before anything else."""
        return self.path / "record.json"

    @property
    def order(self) -> Path:
        """Returns the path of the shim's order; if it is missing, no process was ever started."""
        return self.path / "shim.json"

    @property
    def lock(self) -> Path:
        """Returns the path of the file that the shim locks while it lives."""
        return self.path / "shim.lock"

    @property
    def pid(self) -> Path:
        """Returns the path of ``{pid, started}`` of the shim.

        ``started``, in clock ticks since boot, detects a reused pid.
        """
        return self.path / "shim.pid"

    @property
    def shim_log(self) -> Path:
        """Returns the path of the shim's own error output."""
        return self.path / "shim.log"

    @property
    def stop(self) -> Path:
        """Returns the path of a file that exists after the master has requested a stop."""
        return self.path / "stop"

    @property
    def exit(self) -> Path:
        """Returns the path of the task's exit record, the last file that the shim writes."""
        return self.path / "exit.json"

    @property
    def wake(self) -> Path:
        """Returns the path of a fifo; a byte in it announces new output."""
        return self.path / "wake"

    @property
    def output(self) -> Path:
        """Returns the folder of the output's segments, each named by its first offset."""
        return self.path / "output"

    @property
    def acknowledged(self) -> Path:
        """Returns the path of the acknowledged offset; only a hint, the master's own value counts."""
        return self.path / "acknowledged"

    @property
    def root(self) -> Path:
        """Returns the folder for a private root file system, visible only in the task's mount namespace."""
        return self.path / "root"

    @property
    def shim(self) -> Path:
        """Returns the folder of the shim's own files in a container of another user than the agent."""
        return self.path / "shim"

    @property
    def temporary(self) -> Path:
        """Returns the folder of the private ``/tmp`` of a process of another user than the agent."""
        return self.path / "tmp"

    @property
    def run(self) -> Path:
        """Returns the task's ``DET_RUN_DIR``."""
        return self.path / "run"

    @property
    def owner(self) -> int | None:
        """Returns the uid of a task that runs as another user than this process; None for the same user.

        Such a task cannot replace or remove the folder ``run`` itself.
        """
        try:
            uid = os.lstat(self.run).st_uid
        except FileNotFoundError:
            return None
        return None if uid == os.geteuid() else uid

    @property
    def info(self) -> Path:
        return self.run / "info"

    @property
    def workdir(self) -> Path:
        return self.run / "workdir"

    @property
    def ignored(self) -> Path:
        """Returns the path of the lines of the context's ``.detignore``; missing if it had none."""
        return self.path / "ignored"

    @property
    def exits(self) -> Path:
        """Returns the folder of ``rank-N.json`` for every worker that has ended."""
        return self.run / "exits"

    @property
    def spool(self) -> Path:
        return self.run / "spool"

    @property
    def end_request(self) -> Path:
        """Returns the path of the fifo in which a task that keeps its outputs is asked to end."""
        return self.run / FIFO

    @property
    def outputs(self) -> Path:
        """Returns the path of the list of folders that the task has kept."""
        return self.run / KEPT_OUTPUTS

    @property
    def reports(self) -> Path:
        """Returns the path of the unsent metric reports, one JSON object per line."""
        return self.spool / "metrics.jsonl"

    @property
    def reports_sent(self) -> Path:
        """Returns the path of the offset in ``reports`` up to which the master has accepted them, in 20 digits."""
        return self.spool / "metrics.sent"

    def make(self) -> None:
        """Creates the folders and the fifo; existing ones stay."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.output, self.run, self.info, self.workdir, self.exits, self.spool):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not self.wake.exists():
            os.mkfifo(self.wake, 0o600)

    def request_stop(self) -> None:
        """Creates the file ``stop``; does nothing on a full disk, which must not prevent the end of a task."""
        with contextlib.suppress(OSError):
            write_regular(self.path, self.stop.name, b"", owner=None)

    def read_record(self) -> dict[str, Any]:
        """Returns the record. Raises OSError, or ValueError for a broken record or an unreadable format."""
        value = json.loads(read_regular(self.record, MAX_RECORD_BYTES))
        if not isinstance(value, dict) or value.get("format") not in READABLE:
            raise ValueError(f"{self.record} has a format that this agent cannot read")
        return value

    def write_record(self, value: dict[str, Any]) -> None:
        write_atomic(self.record, json.dumps({**value, "format": FORMAT}))
