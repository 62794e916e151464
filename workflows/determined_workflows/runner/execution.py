"""Runs tasks: one worker for each resource; a task's commands in order, up to the first failure."""

import queue
import shlex
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from determined_workflows.runner.console import Console
from determined_workflows.runner.grid import Task
from determined_workflows.runner.params_file import Template
from determined_workflows.runner.processes import CommandProcesses
from determined_workflows.runner.task_files import FAILED, FINISHED, RUNNING, TaskFiles


@dataclass
class Outcome:
    """What became of the tasks, by their outputs."""

    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Execution:
    """The settings of one run."""

    time: str
    console: Console
    processes: CommandProcesses
    is_forced: bool = False
    is_debug: bool = False
    has_subfolders: bool = True

    def run(self, tasks: Sequence[Task], resources: Sequence[str]) -> Outcome:
        """Runs all tasks and returns those that failed or had nothing to run."""
        outcome = Outcome()
        waiting: queue.SimpleQueue[tuple[int, Task]] = queue.SimpleQueue()
        for number, task in enumerate(tasks, 1):
            waiting.put((number, task))

        def work(resource: str) -> None:
            while not self.processes.is_stopping:
                try:
                    number, task = waiting.get_nowait()
                except queue.Empty:
                    return
                self._run_task(number, task, resource, outcome)

        workers = [threading.Thread(target=work, args=(resource,)) for resource in resources]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return outcome

    def files(self, task: Task) -> TaskFiles:
        return TaskFiles(task.output, "" if self.has_subfolders else f".{task.name}")

    def _run_task(self, number: int, task: Task, resource: str, outcome: Outcome) -> None:
        files = self.files(task)
        files.load()
        title = str(task.output) if self.has_subfolders else f"{task.output} {task.name}"
        started = False
        for template in task.templates:
            if files.states.get(template.name) == FINISHED and not self.is_forced:
                self.console.event("SKIP", None, template.name, number, task.output)
                continue
            started = True
            self.console.event("START", resource, template.name, number, task.output)
            try:
                reason = self._run_command(task, template, files, resource)
            except OSError as error:
                reason = f"{error.filename or 'bash'}: {error.strerror}"
            except ValueError as error:
                reason = str(error)
            if reason is not None:
                self.console.event("FAIL", resource, template.name, number, task.output, reason)
                outcome.failed.append(title)
                return
            self.console.event("SUCCEED", resource, template.name, number, task.output)
        if not started:
            outcome.skipped.append(title)

    def _run_command(self, task: Task, template: Template, files: TaskFiles, resource: str) -> str | None:
        """Returns None if the command succeeded, else the reason, which is empty if the log has it."""
        command = task.command(template, self.time)
        log = files.log(template.name, self.time)
        files.folder.mkdir(parents=True, exist_ok=True)
        own = {"_name": task.name, "_output": str(task.output), "_time": self.time}
        files.write_param({**task.params, **own}, {template.name: script(command, resource, log)})
        files.set_state(template.name, RUNNING)
        if self.is_debug:
            code = self.processes.run(
                f"set -o pipefail; {{ {command}\n}} 2>&1 | tee -a {shlex.quote(str(log))}", resource
            )
        else:
            with open(log, "ab") as output:
                code = self.processes.run(command, resource, output)
        files.set_state(template.name, FAILED if code else FINISHED)
        return None if code == 0 else ""


def script(command: str, resource: str, log: Path) -> str:
    """Returns a line that does the same in a shell, for ``param``."""
    return f"CUDA_VISIBLE_DEVICES={resource} {command} > {shlex.quote(str(log))} 2>&1"
