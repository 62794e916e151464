"""``SITE.yaml``: what all jobs of a cluster need, written once by whoever knows the cluster; every workflow reads it.

setup: [module load cuda/12]          # lines of bash before the environment and the program
sbatch: {qos: normal}                 # options of sbatch; the user's own come first
scratch: /scratch/me                  # where SCRATCH is not set
node_scratch: /localdisk              # disk of a node, where SLURM_TMPDIR is not set (default: /tmp)
environment: {NCCL_DEBUG: WARN}       # variables of every job
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import yaml

from determined import yaml_places
from determined.errors import ConfigError
from determined_workflows.runner import yaml_documents
from determined_workflows.runner.errors import ParamsFileError
from determined_workflows.runner.yaml_documents import Document, Place

FILE_NAME = "SITE.yaml"
VARIABLE = "DET_SITE"
MAX_BYTES = 1 << 20
KEYS = ("setup", "sbatch", "scratch", "node_scratch", "environment")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OPTION = re.compile(r"[a-z][a-z-]*\Z")


@dataclass(frozen=True)
class SiteProfile:
    """The content of a file; ``sbatch`` maps long options without hyphens in front to values, None without one."""

    source: Path | None = None
    setup: tuple[str, ...] = ()
    sbatch: Mapping[str, str | None] = field(default_factory=dict)
    scratch: str | None = None
    node_scratch: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)
    """Where each option of ``sbatch`` is."""

    def option_error(self, option: str, message: str) -> ConfigError:
        """Returns an error about an option of ``sbatch`` with its file, line and column."""
        place = self.places.get(option)
        return ConfigError(f"{self.source or FILE_NAME}: {message}" if place is None else str(place.error(message)))


def find(given: str | None, project_files: Path, environ: Mapping[str, str]) -> SiteProfile:
    """Returns the profile of the first file of: ``--site``, ``DET_SITE``, the project's, the user's, the machine's.

    Raises ConfigError for a file that is named and missing, and for one that cannot be used.
    """
    for name, path in (("--site", given), (VARIABLE, environ.get(VARIABLE))):
        if path:
            if not Path(path).is_file():
                raise ConfigError(f"{name}: there is no file {path}")
            return read(Path(path))
    home = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for folder in (project_files, home / "detent", Path("/etc/detent")):
        if (folder / FILE_NAME).is_file():
            return read(folder / FILE_NAME)
    return SiteProfile()


def read(path: Path) -> SiteProfile:
    """Returns the profile of a file. Raises ConfigError with file, line and column."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_BYTES >> 20} MiB; it is no {FILE_NAME}")
        documents = yaml_documents.read(path.read_text(encoding="utf-8"), str(path))
        document = documents[0] if documents else None
        return _profile(path, document) if document is not None else SiteProfile(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        place = yaml_places.error_position(error) or ()
        raise ConfigError(f"{':'.join(map(str, (path, *place)))}: {error.problem}") from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply; it is no {FILE_NAME}") from None
    except (ParamsFileError, ValueError, yaml.YAMLError) as error:
        text = str(error)
        raise ConfigError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def _profile(path: Path, document: Document) -> SiteProfile:
    for key in document.data:
        if key not in KEYS:
            near = get_close_matches(str(key), KEYS, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"valid: {', '.join(KEYS)}"
            raise document.place(key).error(f'unknown key "{key}"; {hint}')
    sbatch, places = _options(document)
    return SiteProfile(
        source=path.absolute(),
        setup=_lines(document),
        sbatch=sbatch,
        scratch=_text(document, "scratch"),
        node_scratch=_text(document, "node_scratch"),
        environment=_variables(document),
        places=places,
    )


def _lines(document: Document) -> tuple[str, ...]:
    value = document.data.get("setup") or []
    if isinstance(value, str):
        return tuple(value.splitlines())
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise document.place("setup").error("setup is a list of lines for bash, such as `module load cuda`")
    return tuple(value)


def _options(document: Document) -> tuple[dict[str, str | None], dict[str, Place]]:
    value = document.data.get("sbatch") or {}
    if not isinstance(value, dict):
        raise document.place("sbatch").error("sbatch is a mapping of options, such as `qos: normal`")
    options: dict[str, str | None] = {}
    places: dict[str, Place] = {}
    for name, setting in value.items():
        option = str(name).lstrip("-").replace("_", "-")
        if not _OPTION.match(option):
            raise document.place("sbatch", name).error(f'"{name}" is no long option of sbatch')
        if setting is False:
            continue
        options[option] = None if setting is None or setting is True else _scalar(document, setting, "sbatch", name)
        places[option] = document.place("sbatch", name)
    return options, places


def _variables(document: Document) -> dict[str, str]:
    value = document.data.get("environment") or {}
    if not isinstance(value, dict):
        raise document.place("environment").error("environment is a mapping of variables, such as `NCCL_DEBUG: WARN`")
    for name in value:
        if not _NAME.match(str(name)):
            raise document.place("environment", name).error(f'"{name}" is no name of a variable')
    return {str(name): _scalar(document, setting, "environment", name) for name, setting in value.items()}


def _text(document: Document, key: str) -> str | None:
    value = document.data.get(key)
    return None if value is None else os.path.expandvars(os.path.expanduser(_scalar(document, value, key)))


def _scalar(document: Document, value: object, *path: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise document.place(*path).error("a text or a number is needed here")
    text = str(value)
    if "\n" in text or "\0" in text:
        raise document.place(*path).error("a text of one line is needed here")
    return text
