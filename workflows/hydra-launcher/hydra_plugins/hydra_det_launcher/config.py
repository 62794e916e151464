"""Keys of ``hydra.launcher`` for ``hydra/launcher=det``: those of the submitit launcher, and the experiment's own."""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore


@dataclass
class DetLauncherConf:
    """Keys with an effect come first; a value of another key is warned about."""

    _target_: str = "hydra_plugins.hydra_det_launcher.det_launcher.DetLauncher"

    submitit_folder: str = "${hydra.sweep.dir}/.submitit/%j"
    """Folder for ``jobs.json``, which lists the trials; ``%j`` is the number of the experiment."""
    timeout_min: int | None = None
    gpus_per_node: int | None = None
    gpus_per_task: int | None = None
    nodes: int = 1
    name: str = "${hydra.job.name}"
    partition: str | None = None
    comment: str | None = None
    array_parallelism: int = 256
    setup: list[str] | None = None
    config: dict[str, Any] = field(default_factory=dict)
    """Settings of the experiment by their dotted keys, for example ``{max_restarts: 3}``."""
    fail_fast: bool = False
    """Ends the other jobs when one fails."""

    tasks_per_node: int = 1
    cpus_per_task: int | None = None
    mem_gb: int | None = None
    stderr_to_stdout: bool = False
    qos: str | None = None
    constraint: str | None = None
    exclude: str | None = None
    gres: str | None = None
    account: str | None = None
    cpus_per_gpu: int | None = None
    mem_per_gpu: str | None = None
    mem_per_cpu: str | None = None
    signal_delay_s: int = 120
    max_num_timeout: int = 0
    additional_parameters: dict[str, Any] = field(default_factory=dict)
    srun_args: list[str] | None = None


ConfigStore.instance().store(group="hydra/launcher", name="det", node=DetLauncherConf, provider="det_launcher")
