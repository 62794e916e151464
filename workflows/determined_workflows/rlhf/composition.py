"""What a trial of an RLHF experiment runs: its roles, and the configuration of the experiment that has them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from determined.errors import ConfigError
from determined_workflows.composed_experiment import completed
from determined_workflows.rlhf import project
from determined_workflows.rlhf.task import experiment_check
from determined_workflows.rlhf.task.prepare import PreparedExperiment
from determined_workflows.rlhf.task.role_place import DATA_WORKER, MASTER_WORKER, role_name
from determined_workflows.rlhf.task.worker_config import ExperimentScheduling, Scheduling

WORKER_MODULE = "determined_workflows.rlhf.task.run_worker"
METRIC = "reward"
NAME = "rlhf.yaml"
ROLES_FILE = "rlhf_roles.json"
_PRELOADED = ("torch", "transformers")
_COMPOSED = ("entrypoint", "searcher.trials", "resources.slots_per_trial")


@dataclass(frozen=True)
class Role:
    """Processes with one name. ``slots``: of each of them. ``environment``: what its scheduling sets."""

    name: str
    count: int
    slots: int
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Composition:
    """An experiment that has been built and checked. ``roles``: in the order in which they take slots."""

    experiment: str
    trial: str
    built: PreparedExperiment
    roles: tuple[Role, ...]
    preload: tuple[str, ...]
    gpus: int
    """GPUs, cores and memory that the workers ask for, together; only a job of Slurm without a master gets these."""
    cpus: int
    memory_mib: int

    @property
    def slots(self) -> int:
        return sum(role.count * role.slots for role in self.roles)

    @property
    def workers(self) -> int:
        return sum(role.count for role in self.roles)

    def summary(self) -> str:
        """Returns the workers in words."""
        counts = ", ".join(f"{role.count} {role.name}" for role in self.roles)
        slots = f"{self.slots} slot{'' if self.slots == 1 else 's'}"
        return f"{self.workers} workers on {slots}: {counts}"

    def roles_file(self, variables: Mapping[str, str]) -> dict[str, Any]:
        """Returns the content of the file that the launch layer reads; ``python3`` there is the layer's own Python.

        ``variables`` are set for every worker, unless its scheduling sets them.
        """
        command = ["python3", "-m", WORKER_MODULE, self.experiment, self.trial]
        roles = [
            {
                "name": role.name,
                "count": role.count,
                "slots": role.slots,
                "command": command,
                "environment": {**variables, **role.environment},
            }
            for role in self.roles
        ]
        return {"preload": list(self.preload), "roles": roles}


def compose(experiment: str, trial: str, folder: Path) -> Composition:
    """Builds and checks an experiment of a project that has been loaded. Raises ConfigError for whatever is wrong."""
    built = project.build(experiment, trial, folder)
    scheduling = built.scheduling
    every = [group for kind in experiment_check.KINDS for group in scheduling.groups(kind)]
    return Composition(
        experiment,
        trial,
        built,
        roles=(*_slotless(scheduling), *_models(built)),
        preload=_preload(),
        gpus=sum(group.count * group.scheduling.gpu for group in every),
        cpus=sum(group.count * group.scheduling.cpu for group in every),
        memory_mib=sum(group.count * group.scheduling.mem for group in every),
    )


def experiment_config(
    composition: Composition,
    *,
    changes: Sequence[str] = (),
    pool: str | None = None,
    image: str | None = None,
    max_restarts: int,
) -> tuple[str, str]:
    """Returns the configuration of the experiment as YAML, with ``changes``, and warnings as lines, or "".

    Raises ConfigError if the configuration is wrong, or a change is of what the composition decides.
    """
    for change in changes:
        key = change.partition("=")[0].strip()
        if any(key == each or key.startswith(f"{each}.") for each in _COMPOSED):
            raise ConfigError(f'--config "{change}": {key} follows from experiment {composition.experiment!r}')
    document: dict[str, Any] = {
        "name": f"{composition.experiment}_{composition.trial}",
        "entrypoint": f"python3 -m determined.launch.roles {ROLES_FILE}",
        "hyperparameters": {},
        "searcher": {"name": "single", "metric": METRIC, "smaller_is_better": False},
        "resources": {"slots_per_trial": composition.slots} | ({"resource_pool": pool} if pool else {}),
        "environment": {"image": image or f"venv:{sys.prefix}"},
        "max_restarts": max_restarts,
        "labels": ["rlhf"],
    }
    return completed(document, changes, name=NAME, title=f"{composition.experiment} {composition.trial}")


def _slotless(scheduling: ExperimentScheduling) -> list[Role]:
    roles = []
    for name in (MASTER_WORKER, DATA_WORKER):
        groups = scheduling.groups(name)
        environment = {key: value for group in groups for key, value in group.scheduling.env_vars.items()}
        roles.append(Role(name, sum(group.count for group in groups), 0, environment))
    return roles


def _models(built: PreparedExperiment) -> list[Role]:
    """Returns a role for each model, in the order of their first workers. Replicas have equal resources."""
    groups = built.scheduling.groups("model_worker")
    each = [group.scheduling for group in groups for _ in range(group.count)]
    first: dict[str, Scheduling] = {}
    for worker, scheduling in zip(built.config.model_worker, each, strict=True):
        first.setdefault(worker.model_name, scheduling)
    return [
        Role(role_name(model), len(workers), max(1, first[model].gpu), first[model].env_vars)
        for model, workers in experiment_check.replicas_of(built.config).items()
    ]


def _preload() -> tuple[str, ...]:
    """Returns the modules that the project has imported and that take long: each container imports them once.

    Not deepspeed: transformers imports it where it is installed, and the environment of the tasks may be without it.
    """
    return tuple(name for name in _PRELOADED if name in sys.modules)
