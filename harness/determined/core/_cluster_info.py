"""Information about the task and the cluster, from the run folder or the environment."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from determined_launch import environment, rendezvous


@dataclass(frozen=True)
class TrialInfo:
    """Describes the trial of this task; ``get_cluster_info().trial`` returns it.

    Attributes:
        trial_id: number of the trial.
        experiment_id: number of the trial's experiment.
        trial_seed: seed for the trial's random numbers.
        hparams: hyperparameters by name.
    """

    trial_id: int
    experiment_id: int
    trial_seed: int
    hparams: dict[str, Any]
    _config: dict[str, Any] = field(repr=False)
    _steps_completed: int = 0
    _trial_run_id: int = 0
    _debug: bool = False


@dataclass(frozen=True)
class ClusterInfo:
    """Describes this task on its cluster; :func:`get_cluster_info` returns it.

    In a local run (``det experiment create --local``) there is no cluster: the trial, its seed, hyperparameters and
    configuration are as on a cluster, the numbers are 0, and the texts are empty but for ``task_type``.

    Attributes:
        master_url: address of the master.
        cluster_id: identifier of the cluster.
        agent_id: name of the agent that runs this container.
        slot_ids: the slots of this container on its agent.
        task_id: identifier of the task.
        allocation_id: identifier of the allocation.
        session_token: token for requests to the master, valid for this allocation only.
        task_type: type of the task, for example ``TRIAL``.
        latest_checkpoint: uuid of the checkpoint to continue from; None on the first attempt.
        container_addrs: addresses of all containers of the allocation, in rank order.
        container_rank: rank of this container.
        container_slot_counts: number of slots of each container, in rank order.
        gpu_uuids: identifiers of this container's GPUs; empty without GPUs.
        master_cert_name: always None; for scripts that read it.
        master_cert_file: always None; for scripts that read it.

    >>> info = get_cluster_info()
    >>> info is None   # off the cluster
    True
    """

    master_url: str
    cluster_id: str
    agent_id: str
    slot_ids: list[int]
    task_id: str
    allocation_id: str
    session_token: str
    task_type: str
    latest_checkpoint: str | None
    container_addrs: list[str]
    container_rank: int
    container_slot_counts: list[int]
    gpu_uuids: list[str]
    master_cert_name: str | None = None
    master_cert_file: str | None = None
    _trial: TrialInfo | None = None

    @property
    def trial(self) -> TrialInfo:
        """Returns the trial of this task. Raises RuntimeError if the task is of another type."""
        if self._trial is None:
            raise RuntimeError(f"this task has no trial: its type is {self.task_type}")
        return self._trial

    @property
    def user_data(self) -> dict[str, Any]:
        """Returns the ``data`` section of the experiment configuration."""
        return dict(self.trial._config.get("data") or {})  # noqa: SLF001  # the underscore keeps it out of the public interface


def get_cluster_info() -> ClusterInfo | None:
    """Returns a description of this task; None for a program that neither a cluster nor ``--local`` started."""
    environ = environment.current()
    return read(environ) or (_local(environ) if environ.get(environment.LOCAL_RUN) else None)


def read(environ: Mapping[str, str]) -> ClusterInfo | None:
    """Returns what :func:`get_cluster_info` returns, for the given environment variables."""
    facts = environment.TaskFacts.from_environment(environ)
    if facts is None:
        return None
    peers = rendezvous.read(environ)
    resources = _info(environ, "resources")
    return ClusterInfo(
        master_url=facts.master,
        cluster_id=facts.cluster_id,
        agent_id=facts.agent_id,
        slot_ids=list(facts.slot_ids),
        task_id=facts.task_id,
        allocation_id=facts.allocation_id,
        session_token=facts.session_token,
        task_type=facts.task_type,
        latest_checkpoint=environ.get(environment.LATEST_CHECKPOINT) or None,
        container_addrs=list(peers.addresses),
        container_rank=peers.rank,
        container_slot_counts=list(peers.slots),
        gpu_uuids=list(resources.get("gpu_uuids") or []),
        _trial=_trial(environ),
    )


def _local(environ: Mapping[str, str]) -> ClusterInfo:
    peers = rendezvous.read(environ)
    return ClusterInfo(
        master_url="",
        cluster_id="",
        agent_id="",
        slot_ids=json.loads(environ.get(environment.SLOT_IDS) or "[]"),
        task_id="",
        allocation_id="",
        session_token="",
        task_type="TRIAL",
        latest_checkpoint=None,
        container_addrs=list(peers.addresses),
        container_rank=peers.rank,
        container_slot_counts=list(peers.slots),
        gpu_uuids=[],
        _trial=_trial_of_variables(environ),
    )


def _trial(environ: Mapping[str, str]) -> TrialInfo | None:
    if environ.get(environment.TRIAL_ID):
        return _trial_of_variables(environ)
    value = _info(environ, "trial")
    if "trial_id" not in value:
        return None
    return TrialInfo(
        trial_id=int(value["trial_id"]),
        experiment_id=int(value.get("experiment_id") or 0),
        trial_seed=int(value.get("trial_seed") or 0),
        hparams=value.get("hparams") or {},
        _config=value.get("config") or {},
        _steps_completed=int(value.get("steps_completed") or 0),
        _trial_run_id=int(value.get("trial_run_id") or 0),
    )


def _trial_of_variables(environ: Mapping[str, str]) -> TrialInfo:
    return TrialInfo(
        trial_id=int(environ.get(environment.TRIAL_ID) or 0),
        experiment_id=int(environ.get(environment.EXPERIMENT_ID) or 0),
        trial_seed=int(environ.get(environment.TRIAL_SEED) or 0),
        hparams=json.loads(environment.value_of(environ, environment.HPARAMS) or "{}"),
        _config=json.loads(environment.value_of(environ, environment.EXPERIMENT_CONFIG) or "{}"),
        _steps_completed=int(environ.get(environment.STEPS_COMPLETED) or 0),
        _trial_run_id=int(environ.get(environment.TRIAL_RUN_ID) or 0),
    )


def _info(environ: Mapping[str, str], name: str) -> dict[str, Any]:
    folder = Path(environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR), "info")
    try:
        value = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
