"""Decides what a cluster runs for a grid: the experiment's configuration and the commands of each trial."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined.errors import ConfigError
from determined_workflows.composed_experiment import completed, refuse_composed
from determined_workflows.runner.cluster.record import Record
from determined_workflows.runner.grid import Task
from determined_workflows.runner.task.run_task import METRIC
from determined_workflows.runner.task_files import FAILED, FINISHED, read_stat

TASK_FOLDER = ".detent_runner"
CONFIG_NAME = "grid.yaml"


@dataclass(frozen=True)
class GridPlan:
    """What is submitted: a configuration as YAML, and the content of the file that the trials read."""

    config: str
    trials: Mapping[str, Any]
    warnings: str = ""

    @property
    def tasks(self) -> list[str]:
        return list(self.trials["tasks"])

    def trials_file(self) -> str:
        return json.dumps(self.trials, indent=1, ensure_ascii=False, default=str)


def slots_of(resources: Sequence[str]) -> int:
    """Returns the slots of each trial: the number of ids of a worker.

    Raises ConfigError if workers have different numbers.

    >>> slots_of(["0,1", "2,3"])
    2
    """
    numbers = {len(entry.split(",")) for entry in resources}
    if len(numbers) > 1:
        raise ConfigError(
            f"resource has workers with {' and '.join(map(str, sorted(numbers)))} ids; on a cluster all tasks have the "
            "same number of slots: choose workers with -r, for example -r 0,1 2,3 for two tasks at once with two slots"
        )
    return numbers.pop()


def unfinished(tasks: Sequence[Task]) -> list[Task]:
    """Returns the tasks that have a command which has not finished, by the files of their output."""
    return [task for task in tasks if any(state != FINISHED for state in _states(task))]


def failed(tasks: Sequence[Task]) -> list[Task]:
    """Returns the tasks that have a command which failed, by the files of their output."""
    return [task for task in tasks if FAILED in _states(task)]


def _states(task: Task) -> list[str | None]:
    states = read_stat(task.output / "stat")
    return [states.get(template.name) for template in task.templates]


def plan(
    tasks: Sequence[Task],
    output: Path,
    resources: Sequence[str],
    time: str,
    *,
    name: str,
    changes: Sequence[str] = (),
    earlier: Record | None = None,
) -> GridPlan:
    """Returns the plan of ``tasks``, whose folders are below ``output`` also on the cluster.

    ``changes`` are settings of the experiment (``key.path=value``). A task that an ``earlier`` experiment has left
    unfinished goes on from what was fetched of it. Raises ConfigError if the configuration is wrong.
    """
    refuse_composed(changes, origin="the grid; change params.yaml instead")
    document = {
        "name": name,
        "entrypoint": f"python3 {TASK_FOLDER}/run_task.py",
        "hyperparameters": {},
        "searcher": {
            "name": "list",
            "metric": METRIC,
            "smaller_is_better": False,
            "max_concurrent_trials": len(resources),
            "trials": [{"_name": task.name, **_hyperparameters(task)} for task in tasks],
        },
        "resources": {"slots_per_trial": slots_of(resources)},
        "max_restarts": 0,
        "labels": ["grid"],
    }
    text, warnings = completed(document, changes, name=CONFIG_NAME, title="the grid")
    trials = {
        "output": output.name,
        "time": time,
        "tasks": {task.name: _trial(task, Path(output.name), time, earlier) for task in tasks},
    }
    return GridPlan(text, trials, warnings)


def _trial(task: Task, output: Path, time: str, earlier: Record | None) -> dict[str, Any]:
    """Returns the entry of one task in the file that the trials read."""
    there = Task(task.name, output / task.name, task.params, task.templates)
    entry: dict[str, Any] = {
        "commands": {template.name: there.command(template, time) for template in task.templates},
        "params": {**task.params, "_name": task.name, "_output": str(there.output)},
    }
    fetched = earlier.fetched.get(task.name) if earlier else None
    # A local run may have changed the folder since it was fetched.
    if fetched is not None and dict(fetched.states) == read_stat(task.output / "stat"):
        entry["checkpoint"] = fetched.checkpoint
    return entry


def _hyperparameters(task: Task) -> dict[str, object]:
    """Returns the parameters of a task; of a list or a mapping, which no command uses, the text."""
    return {name: value if isinstance(value, str | int | float) else str(value) for name, value in task.params.items()}
