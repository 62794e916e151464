"""What a trial of an RLHF experiment runs: its roles, and the configuration of the experiment that has them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from determined.errors import ConfigError
from determined_workflows.composed_experiment import completed
from determined_workflows.rlhf import project
from determined_workflows.rlhf.task.config import ExperimentConfig, Scheduling, TasksGroup
from determined_workflows.rlhf.task.role_place import DATA_WORKER, MASTER_WORKER, role_name

WORKER_MODULE = "determined_workflows.rlhf.task.run_worker"
METRIC = "reward"
NAME = "rlhf.yaml"
ROLES_FILE = "rlhf_roles.json"
_PRELOADED = ("torch", "transformers", "deepspeed")
_COMPOSED = ("entrypoint", "searcher.trials", "resources.slots_per_trial")
_WITHOUT_EFFECT = ("gpu_type", "nodelist", "exclude", "container_image")


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
    config: ExperimentConfig
    roles: tuple[Role, ...]
    notes: tuple[str, ...]
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
    built = project.find(experiment, folder)
    project.check_names(experiment, trial)
    try:
        scheduling = built.scheduling_setup()
        config = built.initial_setup()
        config.set_worker_information(experiment, trial)
        groups = {name: scheduling.groups(name) for name in (MASTER_WORKER, DATA_WORKER, "model_worker")}
        wanted = {MASTER_WORKER: 1, DATA_WORKER: len(config.data_worker), "model_worker": len(config.model_worker)}
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"experiment {experiment!r}: {project.describe(error, folder)}") from None
    for name, count in wanted.items():
        asked = sum(group.count for group in groups[name])
        if asked != count:
            raise ConfigError(
                f"experiment {experiment!r}: scheduling_setup asks for {asked} {name}s, and initial_setup configures "
                f"{count}; make both the same"
            )
    roles = (*_slotless(groups), *_models(config, groups["model_worker"]))
    every = [group for each in groups.values() for group in each]
    return Composition(
        experiment,
        trial,
        config,
        roles,
        notes=tuple(_notes([group.scheduling for group in every])),
        preload=_preload(),
        gpus=sum(group.count * int(group.scheduling.gpu) for group in groups["model_worker"]),
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


def _slotless(groups: Mapping[str, Sequence[TasksGroup]]) -> list[Role]:
    roles = []
    for name in (MASTER_WORKER, DATA_WORKER):
        count = sum(group.count for group in groups[name])
        environment = {key: str(value) for group in groups[name] for key, value in group.scheduling.env_vars.items()}
        roles.append(Role(name, count, 0, environment))
    return roles


def _models(config: ExperimentConfig, groups: Sequence[TasksGroup]) -> list[Role]:
    """Returns a role for each model, in the order of their first workers; its workers are its replicas."""
    each = [group.scheduling for group in groups for _ in range(group.count)]
    models: dict[str, str] = {}
    found: dict[str, Role] = {}
    for worker, scheduling in zip(config.model_worker, each, strict=True):
        name = role_name(worker.model_name)
        if name in (MASTER_WORKER, DATA_WORKER) or models.setdefault(name, worker.model_name) != worker.model_name:
            raise ConfigError(f"model {worker.model_name!r}: another worker is called {name}; choose another name")
        slots = max(1, int(scheduling.gpu))
        environment = {key: str(value) for key, value in scheduling.env_vars.items()}
        known = found.get(name)
        if known is not None and known.slots != slots:
            raise ConfigError(
                f"model {worker.model_name!r}: its replicas ask for {known.slots} and {slots} GPUs; give them the same"
            )
        found[name] = Role(name, 1 if known is None else known.count + 1, slots, environment)
    return list(found.values())


def _notes(schedulings: Sequence[Scheduling]) -> list[str]:
    """Returns one line with the settings of the document's time that have no effect here."""
    given = [name for name in _WITHOUT_EFFECT if any(_is_given(each, name) for each in schedulings)]
    if not given:
        return []
    verb = "has" if len(given) == 1 else "have"
    return [f"{', '.join(given)} of Scheduling {verb} no effect: the pool decides on machines and images"]


def _is_given(scheduling: Scheduling, name: str) -> bool:
    field = type(scheduling).__dataclass_fields__[name]
    return getattr(scheduling, name) not in (None, field.default)


def _preload() -> tuple[str, ...]:
    """Returns the modules that the project has imported and that take long: each container imports them once."""
    return tuple(name for name in _PRELOADED if name in sys.modules)
