"""Facts of a composed configuration: folders, names, launcher, and the values of a job."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from determined_workflows.hydra.composer import origins, values

_SECTIONS = ("run", "sweep")


def set_job(config: Any, number: int, *, is_sweep: bool = False) -> None:  # noqa: ANN401  # OmegaConf's
    """Fills in what Hydra sets when a job starts, so that values that refer to it can be resolved."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import open_dict, read_write

    with read_write(config.hydra), open_dict(config.hydra):
        config.hydra.job.num = number
        config.hydra.job.id = str(number)
    # Not by its set_config, whose deep copies are most of the time that many jobs take.
    HydraConfig.instance().cfg = config
    folder = text(config, "hydra.run.dir")
    if is_sweep:
        folder = os.path.join(text(config, "hydra.sweep.dir") or "", text(config, "hydra.sweep.subdir") or "")
    with read_write(config.hydra), read_write(config.hydra.runtime):
        config.hydra.runtime.output_dir = os.path.abspath(folder or ".")


def of_launch(config: Any) -> dict[str, Any]:  # noqa: ANN401  # OmegaConf's
    """Returns what all jobs of a composition share, in plain values."""
    from omegaconf import OmegaConf

    launcher = OmegaConf.to_container(config.hydra.launcher, resolve=False)
    assert isinstance(launcher, dict)
    names = [key for key, value in launcher.items() if key != "_target_" and value != "???"]
    resolved = {}
    for key in names:
        try:
            resolved[key] = values.plain(config.hydra.launcher[key])
        except Exception:  # a reference to what only exists in the job
            resolved[key] = launcher[key]
    return {
        "name": text(config, "task_name") or text(config, "hydra.job.name"),
        "job_name": text(config, "hydra.job.name"),
        "run_dir": text(config, "hydra.run.dir"),
        "output_folders": [_output_folder(config, section) for section in _SECTIONS],
        "moving_folders": [section for section in _SECTIONS if not _is_written(config, ("hydra", section, "dir"))],
        "launcher_target": launcher.get("_target_"),
        "launcher": resolved,
        "launcher_setup": launcher.get("setup"),
    }


def of_job(config: Any, by_key: dict[origins.Key, str], overrides: list[str]) -> dict[str, Any]:  # noqa: ANN401  # OmegaConf's
    """Returns the values of a job with their origins, and its problems."""
    found, problems = values.read(config, by_key)
    return {
        "overrides": overrides,
        "values": [asdict(each) for each in found],
        "problems": [each.to_json() for each in problems],
    }


def _is_written(config: Any, path: origins.Key) -> bool:  # noqa: ANN401  # OmegaConf's
    """Returns False if a path begins with what only a running program knows: a variable, or its working folder."""
    seen: set[origins.Key] = set()
    while path not in seen and path[:2] != ("hydra", "runtime"):
        seen.add(path)
        written = str(_written(config, path))
        if not written.startswith("${"):
            return True
        reference = values.REFERENCE.match(written)
        if reference is None:  # a resolver
            return False
        path = values.absolute(reference[1], path)
    return False


def _output_folder(config: Any, section: str) -> str:  # noqa: ANN401  # OmegaConf's
    """Returns the folder of results as it is written, with interpolations; the first is resolved if it is a path."""
    from omegaconf import open_dict

    written = str(_written(config, ("hydra", section, "dir")))
    first, _, rest = written.partition("}")
    if first.startswith("${") and first.count("${") == 1:
        copied = config.copy()
        with open_dict(copied):
            copied._first = first + "}"  # noqa: SLF001  # a key of this copy only
        resolved = text(copied, "_first")
        if resolved is not None and os.path.isabs(resolved):
            return resolved + rest
    return written


def _written(config: Any, path: origins.Key) -> object:  # noqa: ANN401  # OmegaConf's
    node: Any = config
    for key in path:
        if not hasattr(node, "_get_node"):
            return None
        node = node._get_node(key)  # noqa: SLF001
    return None if node is None else node._value()  # noqa: SLF001


def text(config: Any, key: str) -> str | None:  # noqa: ANN401  # OmegaConf's
    """Returns a value as text; None if it is missing, or if only a running job can resolve it."""
    from omegaconf import OmegaConf

    try:
        value = OmegaConf.select(config, key, throw_on_missing=False)
    except Exception:  # OmegaConf's, and those of a user's resolvers
        return None
    return None if value is None else str(value)
