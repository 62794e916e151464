"""Runs tasks on this machine: one worker for each resource; a task's commands in order, up to the first failure."""

import itertools
import shlex
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from determined_workflows.runner.console import Console
from determined_workflows.runner.grid import Task
from determined_workflows.runner.params_file import Template
from determined_workflows.runner.processes import CommandProcesses, End
from determined_workflows.runner.signals import DRAIN, KILL, Signals
from determined_workflows.runner.task_files import FINISHED, TaskFiles

GRACE_SECONDS = 5.0
TICK_SECONDS = 1.0
"""How often the remaining time on a terminal is brought up to date."""


@dataclass
class Outcome:
    """What became of the tasks, by their outputs."""

    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    ended_by: int | None = None
    is_drained: bool = False


@dataclass(eq=False)
class Pipeline:
    """A task that is being run: the commands that are left."""

    number: int
    task: Task
    resource: str
    files: TaskFiles
    templates: Iterator[Template]
    current: Template
    is_started: bool = False
    has_param: bool = False


class Execution:
    """Runs the tasks of one run, one after the other on each resource."""

    def __init__(
        self,
        time: str,
        console: Console,
        processes: CommandProcesses,
        signals: Signals,
        *,
        is_forced: bool,
        is_debug: bool,
        has_subfolders: bool,
    ) -> None:
        self._time = time
        self._console = console
        self._processes = processes
        self._signals = signals
        self._is_forced = is_forced
        self._is_debug = is_debug
        self._has_subfolders = has_subfolders
        self._running: dict[str, Pipeline] = {}
        self._ids = map(str, itertools.count(1))
        self._outcome = Outcome()
        self._is_stopping = False
        self._kill_at: float | None = None

    def run(self, tasks: Sequence[Task], resources: Sequence[str]) -> Outcome:
        """Runs all tasks and returns those that failed or had nothing to run. Raises OSError."""
        free = deque(resources)
        waiting = enumerate(tasks, 1)
        while True:
            while free and not self._is_stopping and not self._processes.is_lost and (found := next(waiting, None)):
                pipeline = self._pipeline(*found, resource=free[0])
                if self._advance(pipeline):
                    free.popleft()
                self._heed()
            if not self._running:
                self._outcome.is_drained = self._is_stopping and next(waiting, None) is not None
                return self._outcome
            ready = wait([self._processes.fileno(), self._signals.fileno()], self._timeout())
            self._heed()
            self._console.tick()
            if self._processes.fileno() in ready:
                for end in self._processes.ends():
                    pipeline = self._running.pop(end.id)
                    if not self._ended(pipeline, end):
                        free.append(pipeline.resource)

    def _timeout(self) -> float:
        return TICK_SECONDS if self._kill_at is None else max(0.0, min(TICK_SECONDS, self._kill_at - time.monotonic()))

    def _heed(self) -> None:
        """Obeys the signals that have come: the first ends the commands, the second kills them."""
        for number in self._signals.read():
            self._is_stopping = True
            if number == DRAIN:
                continue
            if self._outcome.ended_by is None and number != KILL:
                self._processes.signal(signal.SIGTERM)
                self._kill_at = time.monotonic() + GRACE_SECONDS
            else:
                self._processes.signal(signal.SIGKILL)
            if self._outcome.ended_by is None:
                self._outcome.ended_by = signal.SIGTERM if number == KILL else number
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._processes.signal(signal.SIGKILL)
            self._kill_at = None

    def _pipeline(self, number: int, task: Task, *, resource: str) -> Pipeline:
        files = task_files(task, has_subfolders=self._has_subfolders)
        files.load()
        return Pipeline(number, task, resource, files, iter(task.templates), task.templates[0])

    def _advance(self, pipeline: Pipeline) -> bool:
        """Starts the next command of a task. Returns False if there is none, or it cannot be started."""
        for template in pipeline.templates:
            pipeline.current = template
            if pipeline.files.states.get(template.name) == FINISHED and not self._is_forced:
                self._print("SKIP", pipeline)
                continue
            if not pipeline.is_started:
                pipeline.is_started = True
                self._console.progress.running += 1
            self._print("START", pipeline)
            try:
                self._start(pipeline)
            except OSError as error:
                return self._failed(pipeline, f"{error.filename or 'bash'}: {error.strerror}")
            except ValueError as error:
                return self._failed(pipeline, str(error))
            return True
        if pipeline.is_started:
            self._console.progress.running -= 1
            self._console.progress.finished += 1
        else:
            self._outcome.skipped.append(self._title(pipeline))
            self._console.progress.skipped += 1
        return False

    def _start(self, pipeline: Pipeline) -> None:
        task, template, files = pipeline.task, pipeline.current, pipeline.files
        if not pipeline.has_param:
            self._write_param(pipeline)
            pipeline.has_param = True
        line = task.command(template, self._time)
        log = None if self._is_debug else files.log(template.name, self._time)
        if self._is_debug:
            line = (
                f"set -o pipefail; {{ {line}\n}} 2>&1 | tee -a {shlex.quote(str(files.log(template.name, self._time)))}"
            )
        id = next(self._ids)
        self._running[id] = pipeline
        self._processes.start(id, files.start(template.name, line, pipeline.resource, log))

    def _write_param(self, pipeline: Pipeline) -> None:
        """Writes the parameters of a task, and the scripts of the commands that it will run."""
        task, files = pipeline.task, pipeline.files
        files.folder.mkdir(parents=True, exist_ok=True)
        scripts = {
            template.name: script(
                task.command(template, self._time), pipeline.resource, files.log(template.name, self._time)
            )
            for template in task.templates
            if self._is_forced or files.states.get(template.name) != FINISHED
        }
        own = {"_name": task.name, "_output": str(task.output), "_time": self._time}
        files.write_param({**task.params, **own}, scripts)

    def _ended(self, pipeline: Pipeline, end: End) -> bool:
        """Returns True if the task continues with its next command."""
        if end.code != 0:
            again = "; it will run again" if end.code is None and self._processes.is_lost else ""
            return self._failed(pipeline, end.reason + again, end.code)
        pipeline.files.states[pipeline.current.name] = FINISHED
        self._print("SUCCEED", pipeline)
        if self._is_stopping:
            self._console.progress.running -= 1
            return False
        return self._advance(pipeline)

    def _failed(self, pipeline: Pipeline, reason: str, code: int | None = None) -> bool:
        """Returns False: the task does not continue. ``code``: that of the command, whose log is named with it."""
        self._console.progress.running -= 1
        self._console.progress.failed += 1
        self._print("FAIL", pipeline, reason=reason)
        if code is not None and not self._is_debug:
            log = pipeline.files.log(pipeline.current.name, self._time)
            self._console.say(f"{'':8}exit code {code}, log: {shlex.quote(str(log))}")
        self._outcome.failed.append(self._title(pipeline))
        return False

    def _print(self, word: str, pipeline: Pipeline, *, reason: str = "") -> None:
        gpu = None if word == "SKIP" else pipeline.resource
        self._console.event(word, gpu, pipeline.current.name, pipeline.number, pipeline.task.output, reason)

    def _title(self, pipeline: Pipeline) -> str:
        task = pipeline.task
        return str(task.output) if self._has_subfolders else f"{task.output} {task.name}"


def task_files(task: Task, *, has_subfolders: bool) -> TaskFiles:
    """Returns the files of a task. Without folders of their own the names of the files tell tasks apart."""
    return TaskFiles(task.output, "" if has_subfolders else f".{task.name}")


def script(command: str, resource: str, log: Path) -> str:
    """Returns a line that does the same in a shell, for ``param``."""
    return f"CUDA_VISIBLE_DEVICES={resource} {command} > {shlex.quote(str(log))} 2>&1"
