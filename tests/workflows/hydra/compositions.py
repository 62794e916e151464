"""Helpers that create compositions without Hydra."""

from pathlib import Path
from typing import Any

from determined_workflows.hydra.composition import Composition, Job


def job(number: int = 0, overrides: list[str] | None = None, **config: Any) -> Job:
    values = [{"key": key.replace("__", "."), "value": value} for key, value in config.items()]
    return Job(overrides or [], values, number)


def composition(folder: Path, *jobs: Job, arguments: list[str] | None = None, **facts: Any) -> Composition:
    """Returns a run of ``scripts/train.py`` below ``folder``, or a multirun if there are several jobs."""
    defaults: dict[str, Any] = {
        "is_sweep": len(jobs) > 1,
        "name": "digits",
        "job_name": "train",
        "config_folder": folder / "configs",
        "config_name": "config",
        "run_dir": "outputs/now",
        "sweep_dir": "multirun/now",
        "output_folders": ["outputs/${now:%Y}", "multirun/${now:%Y}"],
        "moving_folders": [],
        "launcher_target": None,
        "launcher": {},
        "python": Path("/opt/envs/hydra"),
    }
    script = folder / "scripts" / "train.py"
    return Composition(script, folder, arguments or [], list(jobs) or [job()], **(defaults | facts))
