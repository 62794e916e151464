"""``det hydra check``: prints every value of a composition with its origin, and runs nothing."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

from determined_workflows.hydra import slurm_options
from determined_workflows.hydra.composition import Composition

SLURM = "SlurmLauncher"
SUBMIT_PROGRAM = "sbatch"


def lines(composition: Composition) -> Iterator[str]:
    """Yields ``key = value  # origin`` for each value; for a multirun, first what all jobs share."""
    if not composition.is_sweep:
        yield from _aligned(composition.jobs[0].values)
        return
    shared, different = differing(composition)
    first = composition.jobs[0].values if composition.jobs else []
    yield from _aligned([each for each in first if each["key"] in shared])
    for number, job in enumerate(composition.jobs):
        yield f"# job {number}: {' '.join(job.overrides)}"
        yield from _aligned([each for each in job.values if each["key"] in different])


def differing(composition: Composition) -> tuple[set[str], set[str]]:
    """Returns the keys whose values are the same in all jobs, and the other keys."""
    configs = [{key: _shown(value) for key, value in job.config.items()} for job in composition.jobs]
    keys = {key for config in configs for key in config}
    shared = {key for key in keys if all(each.get(key) == configs[0].get(key) for each in configs)}
    return shared, keys - shared


def as_json(composition: Composition) -> dict[str, Any]:
    """Returns the composition for ``--json``."""
    return {
        "schema_version": 1,
        "script": str(composition.script),
        "module": composition.module,
        "name": composition.name,
        "is_multirun": composition.is_sweep,
        "jobs": [{"overrides": job.overrides, "values": job.values} for job in composition.jobs],
    }


def warnings(composition: Composition) -> Iterator[str]:
    """Yields warnings about the launcher: lines of ``setup`` without effect, and a Slurm that is not installed."""
    yield from slurm_options.setup_warnings(composition.launcher.get("setup") or ())
    if (composition.launcher_target or "").endswith(f".{SLURM}") and shutil.which(SUBMIT_PROGRAM) is None:
        yield (
            f"the launcher submits to Slurm, and this machine has no {SUBMIT_PROGRAM}: `det hydra run` and "
            "hydra/launcher=det run the jobs on the cluster"
        )


def _aligned(values: list[dict[str, Any]]) -> Iterator[str]:
    texts = [f"{each['key']} = {_shown(each['value'])}" for each in values]
    width = min(60, max(map(len, texts), default=0))
    for text, each in zip(texts, values, strict=True):
        expression = f", {each['expression']}" if each["expression"] else ""
        yield f"{text:<{width}}  # {each['origin']}{expression}"


def _shown(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() and value else json.dumps(value, ensure_ascii=False)
