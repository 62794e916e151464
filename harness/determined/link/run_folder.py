"""The folder that holds one container's run on its agent: what lies where, under which format number.

An agent that was restarted knows its containers by these folders alone, so an agent reads every earlier format. The
shim is told each path in its order file and imports nothing from here.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined_launch.atomic_file import write_atomic
from determined_launch.regular_files import read_regular

FORMAT = 1
"""Raised when a name or a meaning below changes."""

READABLE = frozenset({1})
MAX_RECORD_BYTES = 64 << 20


@dataclass(frozen=True)
class RunFolder:
    """One container's folder. It is private to its user (0700), since the order file holds the task's secrets."""

    path: Path

    @property
    def record(self) -> Path:
        """What the master wished and what the agent decided; written before anything else."""
        return self.path / "record.json"

    @property
    def order(self) -> Path:
        """What the shim is to do; where it is missing, no process was ever started."""
        return self.path / "shim.json"

    @property
    def lock(self) -> Path:
        """Locked by the shim for as long as it lives."""
        return self.path / "shim.lock"

    @property
    def pid(self) -> Path:
        """``{pid, started}`` of the shim, ``started`` in clock ticks since boot, so that a reused pid is told apart."""
        return self.path / "shim.pid"

    @property
    def shim_log(self) -> Path:
        """What the shim itself complained about."""
        return self.path / "shim.log"

    @property
    def stop(self) -> Path:
        """Exists from the moment on at which the master's wish to stop was heard."""
        return self.path / "stop"

    @property
    def exit(self) -> Path:
        """How the task ended; the last file that the shim writes."""
        return self.path / "exit.json"

    @property
    def wake(self) -> Path:
        """A fifo: a byte in it says that there is new output."""
        return self.path / "wake"

    @property
    def output(self) -> Path:
        """Segments of framed output, each named by the offset at which it begins."""
        return self.path / "output"

    @property
    def acknowledged(self) -> Path:
        """The offset up to which the master has the output; a hint, the master's own word counts."""
        return self.path / "acknowledged"

    @property
    def root(self) -> Path:
        """Where a private root file system is put together, seen in the task's mount namespace only."""
        return self.path / "root"

    @property
    def run(self) -> Path:
        """The task's ``DET_RUN_DIR``."""
        return self.path / "run"

    @property
    def info(self) -> Path:
        return self.run / "info"

    @property
    def workdir(self) -> Path:
        return self.run / "workdir"

    @property
    def exits(self) -> Path:
        """``rank-N.json`` of every worker that has ended."""
        return self.run / "exits"

    @property
    def spool(self) -> Path:
        return self.run / "spool"

    @property
    def reports(self) -> Path:
        """Metric reports that the task has not sent yet, one JSON object per line."""
        return self.spool / "metrics.jsonl"

    @property
    def reports_sent(self) -> Path:
        """The offset in ``reports`` up to which the master has accepted them, in 20 digits."""
        return self.spool / "metrics.sent"

    def make(self) -> None:
        """Makes the folders and the fifo; what is there already stays."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.output, self.run, self.info, self.workdir, self.exits, self.spool):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not self.wake.exists():
            os.mkfifo(self.wake, 0o600)

    def read_record(self) -> dict[str, Any]:
        """The record. Raises OSError, or ValueError for a broken record or one of a format not readable here."""
        value = json.loads(read_regular(self.record, MAX_RECORD_BYTES))
        if not isinstance(value, dict) or value.get("format") not in READABLE:
            raise ValueError(f"{self.record} is of no format that this agent can read")
        return value

    def write_record(self, value: dict[str, Any]) -> None:
        write_atomic(self.record, json.dumps({**value, "format": FORMAT}))
