"""Options of a job that have no effect on a target, or cannot be obeyed there."""

from collections.abc import Mapping, Sequence

from determined.errors import ConfigError
from determined_workflows.batch.settings import SWEEP, JobSettings
from determined_workflows.site_profile import SiteProfile

SLURM, LOCAL, DET = TARGETS = ("slurm", "local", "det")
_FLAGS = {
    "account": "--account",
    "partition": "--partition",
    "cpus": "--cpus",
    "memory": "--mem",
    "memory_per_gpu": "--mem-per-gpu",
    "gpu_type": "--gpu-type",
    "time": "--time",
    "requeue": "--requeue",
    "build_here": "--build-here",
}
_WITHOUT_EFFECT: Mapping[str, Mapping[str, str]] = {
    LOCAL: {
        "account": "nobody is charged on this machine",
        "partition": "this machine has no partitions",
        "cpus": "programs use the CPUs of this machine",
        "memory": "programs use the memory of this machine",
        "memory_per_gpu": "programs use the memory of this machine",
        "gpu_type": "the GPUs are those of this machine",
        "requeue": "nothing takes the machine away; `det batch retry` runs the job again",
        "build_here": "the environment is always built on this machine",
    },
    DET: {
        "account": "a cluster charges nobody",
        "cpus": "a pool gives slots, with the CPUs of their machine",
        "memory": "a pool gives slots, with the memory of their machine",
        "memory_per_gpu": "a pool gives slots, with the memory of their machine",
        "gpu_type": "--partition POOL chooses the machines",
        "time": "trials have no time limit; `det batch stop` ends one",
        "requeue": "a trial whose slots are taken away goes on by itself",
        "build_here": "each agent builds the environment once",
    },
}
_OF_SWEEPS = {"sweep_id": "--sweep-id", "count": "--count", "max_parallel": "--max-parallel"}
_ONLY_DET = {"searcher": "--searcher", "config": "--config", "paused": "--paused"}


def check(target: str, flags: Mapping[str, object], settings: JobSettings, site: SiteProfile) -> list[str]:
    """Returns a warning for each option without effect. ``flags``: as typed.

    Raises ConfigError for options that would be obeyed nowhere.
    """
    for name, flag in _ONLY_DET.items():
        if target != DET and flags.get(name):
            raise ConfigError(f"{flag} has an effect with --on det only; nothing was submitted")
    warnings = [
        f"{flag} has an effect with --job-type sweep only"
        for name, flag in _OF_SWEEPS.items()
        if settings.kind != SWEEP and flags.get(name) is not None
    ]
    if target == SLURM:
        return warnings
    typed = flags.get("sbatch_words") or ()
    if isinstance(typed, Sequence) and typed:
        raise ConfigError(
            f"options behind `--` ({' '.join(map(str, typed))}) are for sbatch, and --on {target} does not use it; "
            "leave them out; nothing was submitted"
        )
    if target == LOCAL and settings.nodes > 1:
        raise ConfigError(
            f"--nodes {settings.nodes}: --on local has this machine alone; leave --nodes out, and give the processes "
            "of all nodes by --gpus; nothing was submitted"
        )
    if target == DET and settings.container:
        raise ConfigError(
            "--singularity-container has no effect with --on det: agents run container images by "
            "`--config environment.image=NAME`; nothing was submitted"
        )
    reasons = _WITHOUT_EFFECT[target]
    warnings += [
        f"{_FLAGS[name]} has no effect with --on {target}: {reasons[name]}"
        for name in _FLAGS
        if name in settings.typed and name in reasons
    ]
    if site.sbatch:
        warnings.append(f"`sbatch` of {site.source} has no effect with --on {target}")
    if site.setup and target == DET:
        warnings.append(f"`setup` of {site.source} is for nodes of Slurm, and has no effect with --on det")
    return warnings
