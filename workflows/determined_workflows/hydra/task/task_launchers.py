"""Launchers by name, for the composition inside a task: it runs one job, so that their plug-ins need not be there.

It is copied to ``.det_hydra/hydra_plugins``, where Hydra finds and imports it. A configuration may choose these
launchers and set their keys, which had their effect at submission.
"""

from hydra.core.config_store import ConfigStore

NAMES = ("det", "submitit_slurm", "submitit_local")
KEYS = (
    *("submitit_folder", "timeout_min", "cpus_per_task", "gpus_per_node", "tasks_per_node", "mem_gb", "nodes", "name"),
    *("stderr_to_stdout", "partition", "qos", "comment", "constraint", "exclude", "gres", "cpus_per_gpu"),
    *("gpus_per_task", "mem_per_gpu", "mem_per_cpu", "account", "signal_delay_s", "max_num_timeout"),
    *("array_parallelism", "setup", "srun_args", "fail_fast"),
)

for _name in NAMES:
    _node: dict[str, object] = {"_target_": None, **dict.fromkeys(KEYS), "additional_parameters": {}, "config": {}}
    ConfigStore.instance().store(group="hydra/launcher", name=_name, node=_node, provider="det hydra")
