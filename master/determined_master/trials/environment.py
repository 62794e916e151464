"""Builds the container spec of a trial: its environment, resources and files."""

import json
from collections.abc import Sequence
from typing import Any

from determined.link.messages import ContainerSpec, ContextRef, RunAs
from determined_launch import environment as names
from determined_master.db.models import ExperimentRow, TrialRow
from determined_master.tasks.container_settings import container_settings


def container_spec(
    experiment: ExperimentRow,
    trial: TrialRow,
    *,
    run_id: int,
    owner: str,
    steps: int,
    checkpoint: str | None,
    outputs: str | None = None,
    pool_hook: str,
    interface: str,
    run_as: RunAs | None = None,
    cluster_storage: str = "",
    built: Sequence[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Returns the spec without slots, rank, ports and tokens, which the desired state adds; as a JSON dictionary.

    ``outputs``: the checkpoint of what an attempt before has kept. ``cluster_storage``: the checkpoint folder that the
    master itself chose. ``built``: agent and key of each environment whose build for this trial has ended.
    """
    config = experiment.config
    storage = config.get("checkpoint_storage") or {}
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
    if outputs:
        variables[names.LATEST_OUTPUTS] = outputs
    return ContainerSpec(
        task_id=trial.task_id,
        owner=owner,
        run_as=run_as,
        slots=[],
        environment=variables,
        entrypoint=config["entrypoint"],
        context=ContextRef(hash=experiment.context_hash, size=experiment.context_size)
        if experiment.context_hash
        else None,
        checkpoint_storage=storage,
        is_cluster_storage=bool(cluster_storage) and storage.get("host_path") == cluster_storage,
        startup_hook=pool_hook,
        built_environments=list(built),
        **container_settings(config),
    ).model_dump(mode="json")
