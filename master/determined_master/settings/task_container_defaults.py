"""Defaults for the containers of tasks, as ``task_container_defaults`` of Determined's master.yaml."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from determined.config import check
from determined.config.masking import masked

WITHOUT_EFFECT = frozenset({"network_mode", "cpu_pod_spec", "gpu_pod_spec", "kubernetes", "checkpoint_gc_pod_spec"})
"""Fields of Determined that have no effect here."""
_OF_ENVIRONMENT = (
    "image",
    "force_pull_image",
    "registry_auth",
    "environment_variables",
    "add_capabilities",
    "drop_capabilities",
)
_WITH_SECRETS = ("registry_auth", "environment_variables")
_PLAIN = ("bind_mounts", "log_policies", "preemption_timeout", "slurm", "pbs", "work_dir")
_PROBE = "entrypoint: x\nsearcher: {name: single, metric: x}\n"


class TaskContainerDefaults(BaseModel):
    """What tasks get that say nothing else: of the cluster, or of one pool, which wins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str | dict[str, str | None] | None = None
    force_pull_image: bool | None = None
    registry_auth: dict[str, Any] | None = None
    environment_variables: list[str] | dict[str, list[str]] | None = None
    """In front of the task's own, which win."""
    add_capabilities: list[str] | None = None
    drop_capabilities: list[str] | None = None
    shm_size_bytes: int | str | None = None
    devices: list[dict[str, Any] | str] | None = None
    """Added to the task's own, unless those have the same ``container_path``; likewise ``bind_mounts``."""
    bind_mounts: list[dict[str, Any]] | None = None
    log_policies: list[dict[str, Any]] | None = None
    preemption_timeout: int | None = None
    slurm: dict[str, Any] | None = None
    pbs: dict[str, Any] | None = None
    work_dir: str | None = None
    """Working folder of commands."""
    startup_hook: str = ""
    """Shell commands before the task's own ``startup-hook.sh``, instead of the master's ``startup_hook``."""
    dtrain_network_interface: str = ""
    """Interface of workers on several machines, instead of the master's ``dtrain_network_interface``."""

    @model_validator(mode="after")
    def _check_layer(self) -> Self:
        """Raises ValueError for a default with which no experiment could run."""
        layer = {key: value for key, value in self.layer().items() if key != "work_dir"}
        storage = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/x"}}
        wrong = [each for each in check(_PROBE, defaults=[layer, storage]).diagnostics if each.severity == "error"]
        if wrong:
            raise ValueError("; ".join(each.message for each in wrong))
        return self

    def masked(self) -> dict[str, Any]:
        """Returns what was set, with every secret replaced by ``********``."""
        values: dict[str, Any] = self.model_dump(mode="json", exclude_defaults=True)
        secret = {name: values[name] for name in _WITH_SECRETS if name in values}
        return {**values, **masked({"environment": secret})["environment"]}

    def layer(self) -> dict[str, Any]:
        """Returns the layer of configuration below those of experiments and commands."""
        environment = {name: getattr(self, name) for name in _OF_ENVIRONMENT}
        resources = {"shm_size": self.shm_size_bytes, "devices": self.devices}
        sections = {"environment": _given(environment), "resources": _given(resources)}
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {name: value for name, value in sections.items() if value} | _given(plain)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
