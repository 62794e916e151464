"""Runs the commands of one task of a grid as a trial: in order, up to the first failure.

The folder of the task is stored as a checkpoint after each command, and when the trial is paused. A trial that goes on
restores it, skips the commands that have finished, and runs the interrupted command again.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import determined
from determined import core

RUNNING, FINISHED, FAILED = "running", "finished", "failed"
METRIC = "finished_commands"
PLAN, METADATA = "plan.json", "metadata.json"
DRAIN_SECONDS = 2.0
"""Time for the last output after the end of a command."""
GRACE_SECONDS = 10.0
POLL_SECONDS = 0.2


class TaskRun:
    """One attempt of a trial. ``commands`` maps the name of a command to its script, in order."""

    def __init__(self, context: core.Context, folder: Path, commands: Mapping[str, str], time: str) -> None:
        self._context = context
        self._folder = folder
        self._commands = commands
        self._time = time
        self._states: dict[str, str] = {}
        self._scripts: dict[str, str] = {}
        self._stored = 0

    def restore(self, uuid: str) -> None:
        """Copies the files of a checkpoint into the task's folder."""
        with self._context.checkpoint.restore_path(uuid) as stored:
            shutil.copytree(stored / self._folder.name, self._folder, dirs_exist_ok=True)
            self._stored = json.loads((stored / METADATA).read_text(encoding="utf-8"))["steps_completed"]
        self._states = json.loads((self._folder / "stat").read_text(encoding="utf-8"))
        self._scripts = json.loads((self._folder / "param").read_text(encoding="utf-8"))["_scripts"]

    def run(self, params: Mapping[str, Any]) -> int:
        """Runs what has not finished. Returns 0 if all commands have finished or the trial is paused, else 1."""
        self._folder.mkdir(parents=True, exist_ok=True)
        own = {name: f"{script} > {self._log(name)} 2>&1" for name, script in self._commands.items()}
        self._write("param", {**params, "_time": self._time, "_scripts": self._scripts | own})
        for name, script in self._commands.items():
            if self._states.get(name) == FINISHED:
                print(f"SKIP    {name}: it has finished", flush=True)
                continue
            print(f"START   {name}", flush=True)
            self._set_state(name, RUNNING)
            code = self._run_command(name, script)
            if code is None:
                print(f"PAUSE   {name}: it runs again when the trial goes on", flush=True)
                self._store()
                return 0
            self._set_state(name, FAILED if code else FINISHED)
            self._store()
            self._report()
            if code:
                print(f"FAIL    {name}: exit code {code}", file=sys.stderr, flush=True)
                return 1
            print(f"SUCCEED {name}", flush=True)
        return 0

    def _run_command(self, name: str, script: str) -> int | None:
        """Returns the exit code, or None if the trial has to stop."""
        with open(self._log(name), "ab") as log:
            command = RunningCommand(script, log)
            while not command.ended.wait(POLL_SECONDS):
                if self._context.preempt.should_preempt():
                    command.stop()
                    command.close()
                    return None
            return command.close()

    def _log(self, name: str) -> Path:
        return self._folder / f"log.{name}.{self._time}"

    def _set_state(self, name: str, state: str) -> None:
        self._states[name] = state
        self._write("stat", self._states)

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        draft = self._folder / f".{name}.new"
        draft.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
        draft.replace(self._folder / name)

    def _finished(self) -> int:
        return sum(state == FINISHED for state in self._states.values())

    def _store(self) -> None:
        # A step of the trial is one stored checkpoint: the newest is the one with most steps, and retention keeps it.
        self._stored += 1
        self._context.checkpoint.upload(
            self._folder.parent,
            {"steps_completed": self._stored, "commands": self._states},
            selector=lambda name: name.startswith(f"{self._folder.name}/"),
        )

    def _report(self) -> None:
        self._context.train.report_validation_metrics(self._stored, {METRIC: self._finished()})
        self._context.train.report_progress(self._finished() / len(self._commands))


class RunningCommand:
    """A command in bash, in a process group of its own. Its output goes to ``log`` and to the log of the trial.

    ``ended`` is set when the command has ended.
    """

    def __init__(self, script: str, log: IO[bytes]) -> None:
        self.ended = threading.Event()
        self._log = log
        self._process = subprocess.Popen(
            ["bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._copying = threading.Thread(target=self._copy, daemon=True)
        self._waiting = threading.Thread(target=self._wait)
        self._copying.start()
        self._waiting.start()

    def stop(self) -> None:
        """Asks the processes of the command to end, within a grace period."""
        self._signal(signal.SIGTERM)
        self.ended.wait(GRACE_SECONDS)

    def close(self) -> int:
        """Kills what is left of the process group and returns the exit code."""
        # The process is reaped after its group is gone: until then no other process can have its id.
        self._signal(signal.SIGKILL)
        self._waiting.join()
        # What has left the group may hold the output open.
        self._copying.join(DRAIN_SECONDS)
        return self._process.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _wait(self) -> None:
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self.ended.set()

    def _copy(self) -> None:
        assert self._process.stdout is not None
        # The log is closed while a process that has left the group still writes.
        with self._process.stdout as output, suppress(ValueError):
            while chunk := os.read(output.fileno(), 1 << 16):
                self._log.write(chunk)
                self._log.flush()
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()


def main() -> int:
    info = determined.get_cluster_info()
    if info is None or info.trial is None:
        print("run_task.py is started by `det runner run --on det`", file=sys.stderr)
        return 2
    plan = json.loads(Path(__file__).with_name(PLAN).read_text(encoding="utf-8"))
    name = info.trial.hparams["_name"]
    task = plan["tasks"][name]
    with core.init() as context:
        run = TaskRun(context, Path(plan["output"], name), task["commands"], plan["time"])
        stored = info.latest_checkpoint or task.get("checkpoint")
        if stored:
            run.restore(stored)
        return run.run(task["params"])


if __name__ == "__main__":
    sys.exit(main())
