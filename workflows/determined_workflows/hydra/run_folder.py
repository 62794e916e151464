"""The folder of a run or of a multirun: what Hydra wrote there, its checkpoints, and the script that made it."""

import ast
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from determined.errors import ConfigError, NotFound
from determined_workflows.hydra.composer.app import declared

RESULT = "result.json"
"""File that an application writes at its end; a job with it is finished."""
MULTIRUN_FILE = "multirun.yaml"
CHECKPOINTS, STEP = "checkpoints", "step_"
_OF_ONE_RUN = (
    "hydra.mode",
    "hydra.run.dir",
    "hydra.sweep.dir",
    "hydra.job.num",
    "hydra.job.id",
    "hydra/launcher",
    "hydra.launcher",
    "hydra.callbacks.detent",
)
_SECTIONS = ("runtime", "overrides", "job")
"""What is read of Hydra's part."""
_PRUNED = frozenset(("outputs", "multirun", "node_modules", "__pycache__"))


@dataclass(frozen=True)
class RunFolder:
    """A folder of results. ``hydra`` is the part of Hydra in what was composed; ``overrides`` are the application's."""

    path: Path
    hydra: Mapping[str, Any]
    overrides: list[str]
    is_multirun: bool

    @property
    def working_folder(self) -> Path:
        """Returns the folder where the run was started, or the present one if it is not on this machine."""
        folder = Path(str(self.hydra["runtime"]["cwd"]))
        return folder if folder.is_dir() else Path.cwd()

    @property
    def hydra_overrides(self) -> list[str]:
        """Returns the overrides of Hydra's own settings, without those that belong to one run."""
        found = list(self.hydra["overrides"].get("hydra") or ())
        return [
            each
            for each in found
            if not each.lstrip("+~").startswith((*_OF_ONE_RUN, "hydra.launcher", "hydra.callbacks.detent"))
        ]

    def flags(self, config_name: str | None) -> Iterator[str]:
        """Yields the flags that choose the same configuration; ``config_name`` is what the script itself names."""
        used = self.hydra["job"].get("config_name")
        if used is not None and used != config_name:
            yield from ("--config-name", str(used))
        for source in self.hydra["runtime"].get("config_sources") or ():
            if source.get("provider") == "command-line":
                yield from ("--config-dir", str(source["path"]))


def read(path: Path) -> RunFolder:
    """Reads a folder of results. Raises NotFound if it does not exist, and ConfigError if Hydra did not write it."""
    if not path.is_dir():
        raise NotFound(f"{path}: no such folder" if not path.exists() else f"{path} is not a folder")
    if (path / MULTIRUN_FILE).is_file():
        file = path / MULTIRUN_FILE
        hydra = _hydra(file)
        return RunFolder(path, hydra, _overrides(hydra["overrides"].get("task"), file), is_multirun=True)
    missing = [name for name in ("overrides.yaml", "hydra.yaml") if not (path / ".hydra" / name).is_file()]
    if missing:
        raise ConfigError(
            f"{path} is no folder of a Hydra run: it has neither {MULTIRUN_FILE} nor "
            + " and ".join(f".hydra/{name}" for name in missing)
        )
    file = path / ".hydra" / "overrides.yaml"
    overrides = _overrides(_load(file), file)
    return RunFolder(path, _hydra(path / ".hydra" / "hydra.yaml"), overrides, is_multirun=False)


def checkpoints(folder: Path) -> dict[int, Path]:
    """Returns the checkpoints of a run by their step, in order."""
    config = folder / ".hydra" / "config.yaml"
    composed = _load(config) if config.is_file() else None
    settings = composed.get("checkpointing") if isinstance(composed, Mapping) else None
    name = settings.get("folder") if isinstance(settings, Mapping) else None
    found = (folder / str(name or CHECKPOINTS)).glob(f"{STEP}*")
    steps = {each.name.removeprefix(STEP): each for each in found}
    return {int(step): steps[step] for step in sorted((each for each in steps if each.isdigit()), key=int)}


def find_checkpoint(folder: Path, step: int) -> Path | None:
    """Returns the checkpoint of a step, or with -1 the newest one; None if the newest is asked for and there is none.

    Raises NotFound if there is no checkpoint of this step, with those that there are.
    """
    paths = checkpoints(folder)
    if step == -1:
        return list(paths.values())[-1] if paths else None
    if step not in paths:
        there = f"it has those of the steps {', '.join(map(str, paths))}" if paths else "it has none"
        raise NotFound(f"{folder} has no checkpoint of step {step}; {there}")
    return paths[step]


def find_script(run: RunFolder) -> Path:
    """Returns the script that made a folder: the one below its working folder whose ``@hydra.main`` names the same
    configuration. Raises NotFound if there is none, or more than one."""
    root = run.working_folder
    sources = run.hydra["runtime"].get("config_sources") or ()
    folder = next((str(each["path"]) for each in sources if each.get("provider") == "main"), "")
    scripts = list(_scripts(root))
    same = [each for each in scripts if folder in _config_folders(each)]
    named = [each for each in same or scripts if each.stem == run.hydra["job"].get("name")]
    candidates = named if len(named) == 1 else same or scripts
    if len(candidates) != 1:
        listed = f": {', '.join(str(each.relative_to(root)) for each in candidates)}" if candidates else ""
        raise NotFound(
            f"{len(candidates) or 'no'} scripts below {root} could have made {run.path}{listed}; name it with --script"
        )
    return candidates[0]


def module_name(script: Path, working_folder: Path) -> str | None:
    """Returns the module of a script that only ``python -m`` can start, since it has relative imports; else None."""
    folder = working_folder.resolve()
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError):
        return None
    if not script.is_relative_to(folder) or not any(isinstance(n, ast.ImportFrom) and n.level for n in ast.walk(tree)):
        return None
    return ".".join(script.relative_to(folder).with_suffix("").parts)


def _config_folders(script: Path) -> list[str]:
    return [os.path.normpath(script.parent / path) if path else "" for path, _ in declared(script)]


def _scripts(root: Path) -> Iterator[Path]:
    for above, folders, files in os.walk(root):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _PRUNED)
        if "pyvenv.cfg" in files:  # a Python environment
            folders.clear()
            continue
        for name in sorted(files):
            path = Path(above, name)
            if path.suffix != ".py" or name.startswith("."):
                continue
            with suppress(OSError):  # a link to nothing, or a file of somebody else
                if b"hydra" in path.read_bytes() and declared(path):
                    yield path


def _hydra(path: Path) -> Mapping[str, Any]:
    """Returns the part of Hydra in a file that it wrote. Raises ConfigError if the file is damaged."""
    content = _load(path)
    hydra: Any = content.get("hydra") if isinstance(content, Mapping) else None
    sections: dict[str, Any] = {name: hydra.get(name) if isinstance(hydra, Mapping) else None for name in _SECTIONS}
    missing = [f"hydra.{name}" for name, section in sections.items() if not isinstance(section, Mapping)]
    if not missing and "cwd" not in sections["runtime"]:
        missing = ["hydra.runtime.cwd"]
    if missing:
        raise ConfigError(f"{path} is damaged: it has no {', '.join(missing)}; run the job again")
    sources = sections["runtime"].get("config_sources") or []
    if not isinstance(sources, list) or not all(isinstance(each, Mapping) and "path" in each for each in sources):
        raise ConfigError(f"{path} is damaged: hydra.runtime.config_sources is no list of sources; run the job again")
    _overrides(sections["overrides"].get("hydra"), path)
    return cast("Mapping[str, Any]", hydra)


def _overrides(content: object, path: Path) -> list[str]:
    """Returns the overrides that a file has. Raises ConfigError if they are no list of texts."""
    found = content or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ConfigError(f"{path} is damaged: the overrides are no list of texts; run the job again")
    return list(found)


def _load(path: Path) -> Any:  # noqa: ANN401  # a document of YAML
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
