"""``status``: the states of a grid's commands, read from the files of its output."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from determined_workflows.runner import output_folder
from determined_workflows.runner.errors import NotFoundError
from determined_workflows.runner.task_files import FAILED, FINISHED, RUNNING, read_stat

INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class TaskStatus:
    """The states of one task's commands. A command that no living run executes is interrupted, not running."""

    name: str
    commands: dict[str, str]

    @property
    def state(self) -> str:
        found = set(self.commands.values())
        return next((state for state in (RUNNING, FAILED, INTERRUPTED) if state in found), FINISHED)


def read(output: Path) -> list[TaskStatus]:
    """Returns the tasks of an output, sorted by name."""
    is_running = output_folder.runner(output) is not None
    rows = []
    for path in sorted([*output.glob("*/stat"), *output.glob("stat.*")]):
        name = path.parent.name if path.name == "stat" else path.name.removeprefix("stat.")
        states = read_stat(path)
        if not is_running:
            states = {command: INTERRUPTED if state == RUNNING else state for command, state in states.items()}
        rows.append(TaskStatus(name, states))
    return rows


def show(output: Path) -> None:
    """Prints one line for each task, and a summary. Raises NotFoundError if nothing has run."""
    tasks = read(output)
    if not tasks:
        raise NotFoundError(f"no task has run in {output}")
    for task in tasks:
        commands = ", ".join(f"{command}: {state}" for command, state in task.commands.items())
        print(f"{task.state:<12}{task.name}  ({commands})")
    counts = Counter(task.state for task in tasks)
    print(f"Tasks: {len(tasks)} ({', '.join(f'{count} {state}' for state, count in sorted(counts.items()))})")
