"""Runs the command of a job as one rank, and records how it ends. Needs Python 3.7 alone.

run_rank.py               runs command.sh of the record's folder with bash
run_rank.py -- PROGRAM…   runs this program
run_rank.py --clean       removes data that killed ranks of this node have left
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from types import FrameType
from typing import Any

import node_data  # type: ignore[import-not-found]  # it lies beside this file on the node
import wandb_key  # type: ignore[import-not-found]

COMMAND, PLAN = "command.sh", "task/job.json"
NOT_FOUND, NOT_EXECUTABLE, NO_DATA = 127, 126, 1
PREFACE = "trap 'exit $?' TERM; trap : USR1; "
"""Bash waits for its program before it obeys a signal, so that a program that saves its work on TERM can end."""
MARGIN_SECONDS = 2.0
"""This long before Slurm kills a job, the data is removed, even if the program still runs."""


class Rank:
    """One rank. Slurm sends signals to all processes of a step: this one notes them, and outlives the program."""

    def __init__(self, folder: str) -> None:
        with open(os.path.join(folder, PLAN), encoding="utf-8") as file:
            self._plan: dict[str, Any] = json.load(file)
        self._folder = folder
        self._signals: list[str] = []
        data = self._plan["data"] or {}
        self.data = node_data.NodeData(
            os.environ["SLURM_TMPDIR"],
            os.environ.get("DETENT_OWN_TMPDIR") == "1",
            data.get("archive"),
            data.get("digest", ""),
            data.get("paths", ()),
        )

    def run(self, argv: list[str]) -> int:
        """Runs the command, or ``argv``, and returns the code."""
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            signal.signal(number, self._note)
        try:
            self.data.enter()
            code, failure = self._run(argv or self._command())
        except node_data.DataError as error:
            code, failure = NO_DATA, str(error)
        self.data.leave()
        if failure:
            print(f"det batch: {os.environ.get('SLURMD_NODENAME', os.uname().nodename)}: {failure}", file=sys.stderr)
        self._record(code, failure)
        return code

    def _command(self) -> list[str]:
        with open(os.path.join(self._folder, COMMAND), encoding="utf-8") as file:
            return ["bash", "-c", PREFACE + file.read(), "command"]

    def _run(self, argv: list[str]) -> tuple[int, str]:
        if "SIGTERM" in self._signals:
            return 128 + signal.SIGTERM, "the job was ended before the program began"
        try:
            process = subprocess.Popen(argv, env=self._environment())
        except FileNotFoundError:
            return NOT_FOUND, f"{argv[0]}: command not found"
        except OSError as error:
            return NOT_EXECUTABLE, f"{argv[0]}: {error.strerror}"
        self._process = process
        code = process.wait()
        return (code if code >= 0 else 128 - code), ""

    def _environment(self) -> dict[str, str]:
        environ = dict(os.environ)
        key = wandb_key.find(environ)
        if key:
            environ["WANDB_API_KEY"] = key
        if self._plan["is_general"]:
            environ["WORLD_SIZE"] = environ["NNODES"]
            environ["NODE_RANK"] = environ.get("SLURM_NODEID", "0")
            environ.setdefault("PYTHON_EXEC", os.path.join(self._folder, "task", "run_worker.py"))
        return environ

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(signal.Signals(number).name)
        if number == signal.SIGTERM and self._signals.count("SIGTERM") == 1:
            seconds = max(self._plan["kill_wait"] - MARGIN_SECONDS, 0.5)
            timer = threading.Timer(seconds, self._give_up)
            timer.daemon = True
            timer.start()

    def _give_up(self) -> None:
        """Records the end and removes the data of a program that does not end before Slurm kills it."""
        self._record(128 + signal.SIGKILL, "the program did not end in time after SIGTERM")
        self.data.leave()

    def _record(self, code: int, failure: str) -> None:
        ends = os.environ["DETENT_ENDS"]
        rank = int(os.environ.get("SLURM_PROCID", "0"))
        end = {
            "rank": rank,
            "host": os.environ.get("SLURMD_NODENAME") or os.uname().nodename,
            "code": code,
            "failure": failure,
            "signals": self._signals,
            "time": time.time(),
        }
        path = os.path.join(ends, f"rank-{os.environ.get('SLURM_STEP_ID', '0')}-{rank}.json")
        try:
            draft = f"{path}.new-{os.getpid()}"
            with open(draft, "w", encoding="utf-8") as file:
                json.dump(end, file)
            os.replace(draft, path)
        except OSError as error:
            print(f"det batch: the end of rank {rank} cannot be recorded: {error}", file=sys.stderr)


def main(words: list[str]) -> int:
    rank = Rank(os.environ["DETENT_RECORD"])
    if words == ["--clean"]:
        rank.data.clean()
        return 0
    return rank.run(words[1:] if words[:1] == ["--"] else words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
