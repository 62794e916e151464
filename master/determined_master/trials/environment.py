"""Builds the container spec of a trial: its environment, resources and files."""

import json
from typing import Any

from determined.link.messages import ContainerSpec, ContextRef
from determined_launch import environment as names
from determined_master.db.models import ExperimentRow, TrialRow

_IGNORED = ("add_capabilities", "drop_capabilities", "ports")


def container_spec(
    experiment: ExperimentRow,
    trial: TrialRow,
    *,
    run_id: int,
    owner: str,
    steps: int,
    checkpoint: str | None,
    pool_hook: str,
    interface: str,
) -> dict[str, Any]:
    """Returns the spec without slots, rank, ports and tokens, which the desired state adds; as a JSON dictionary."""
    config = experiment.config
    env = config["environment"]
    variables = {
        names.TASK_ID: trial.task_id,
        names.TASK_TYPE: "TRIAL",
        names.ALLOCATION_ID: f"{trial.task_id}.{run_id}",
        names.USER: owner,
        names.EXPERIMENT_ID: str(experiment.id),
        names.TRIAL_ID: str(trial.id),
        names.TRIAL_RUN_ID: str(run_id),
        names.TRIAL_SEED: str(trial.seed),
        names.STEPS_COMPLETED: str(steps),
        names.EXPERIMENT_CONFIG: json.dumps(config),
        names.HPARAMS: json.dumps(trial.hparams),
        "DET_TASK_LOGGING_METADATA": json.dumps(
            {"task_id": trial.task_id, "allocation_id": f"{trial.task_id}.{run_id}"}
        ),
        "DET_RESOURCES_TYPE": "docker-container",
        "DET_SEGMENT_ENABLED": "false",
    }
    if interface:
        variables[names.NETWORK_INTERFACE] = interface
    if checkpoint:
        variables[names.LATEST_CHECKPOINT] = checkpoint
    ignored = [name for name in _IGNORED if env.get(name)]
    ignored += [name for name in ("shm_size", "devices") if config["resources"].get(name)]
    return ContainerSpec(
        task_id=trial.task_id,
        owner=owner,
        slots=[],
        environment=variables,
        user_environment=_user_variables(env.get("environment_variables")),
        entrypoint=config["entrypoint"],
        image=_image(env.get("image")),
        harness=env.get("harness") or "auto",
        context=ContextRef(hash=experiment.context_hash, size=experiment.context_size)
        if experiment.context_hash
        else None,
        bind_mounts=config.get("bind_mounts") or [],
        checkpoint_storage=config.get("checkpoint_storage") or {},
        proxy_ports=[int(port["proxy_port"]) for port in env.get("proxy_ports") or []],
        startup_hook=pool_hook,
        ignored=ignored,
    ).model_dump(mode="json")


def _image(image: object) -> str | None:
    if isinstance(image, dict):
        return image.get("cpu")
    return image if isinstance(image, str) else None


def _user_variables(value: object) -> list[str]:
    if isinstance(value, dict):
        return [str(v) for v in value.get("cpu") or []]
    return [str(v) for v in value] if isinstance(value, list) else []
