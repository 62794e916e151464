"""Settings of the agent: flags, ``DET_AGENT_*`` variables, ``agent.yaml``, in that order; read once, then frozen."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from determined.config import settings_file
from determined.config.settings_file import SettingsFile
from determined.errors import ConfigError

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
_KEPT = frozenset(
    (
        *_PROXIES,
        *(name.upper() for name in _PROXIES),
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR",
        "LD_LIBRARY_PATH",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_DEVICE_ORDER",
        "ROCM_HOME",
        "ROCM_PATH",
    )
)
_KEPT_PREFIXES = ("LC_", "NVIDIA_", "NCCL_", "HSA_", "MIOPEN_")


class Settings(BaseModel):
    """The settings of an agent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: str = "http://127.0.0.1:8080"
    """URL of the master."""
    token_file: Path | None = None
    """File with the join token of the cluster, a copy of ``agent-token`` in the master's data folder. Needed."""
    slots: int | None = Field(default=None, ge=0, le=4096)
    """Number of CPU slots to offer instead of the accelerators that are found; default: the accelerators, else one."""
    id: str = ""
    """Name of this agent; default: the name that it had before, else the host name."""
    pool: str = "default"
    """Resource pool of this agent."""
    data: Path
    """Folder for everything that the agent keeps; default: ``detent/agent`` in ``XDG_DATA_HOME``."""
    task_python: Path | None = None
    """Python under which tasks run that name no environment."""
    tasks_as_me: bool = False
    """Accept that tasks run as the agent's own user. Needed until agents can run them as their owners."""
    host_address: str = ""
    """Address at which other agents reach tasks on this machine; default: the one by which it reaches the master."""
    isolation: Literal["auto", "none"] = "auto"
    """``auto``: pid namespaces if the agent may create them (as root)."""
    unsent_output_bytes: int = Field(default=1 << 30, ge=1 << 16)
    """Output of one task that is kept while the master is away; a task that prints more waits."""
    output_segment_bytes: int = Field(default=16 << 20, ge=1 << 12)
    """Size of the files in which output is kept."""
    output_line_bytes: int = Field(default=32768, ge=64)
    """Longer lines of output are split."""
    stale_run_folder_seconds: float = Field(default=86400.0, ge=60)
    """Age in seconds after which run folders of unknown containers are removed."""
    stale_run_folder_bytes: int = Field(default=10 << 30, ge=0)
    """Beyond this total size they are removed earlier, the oldest first, but none younger than ten minutes."""
    log_level: str = "info"
    """Level of the agent's own log: debug, info, warning or error."""
    base_environment: dict[str, str] = Field(default_factory=dict)
    """Variables of the agent's own environment that tasks inherit."""

    @field_validator("data", "task_python", "token_file")
    @classmethod
    def _whole(cls, path: Path | None) -> Path | None:
        # Not resolved: a link to a Python makes it part of a virtual environment.
        return None if path is None else path.expanduser().absolute()

    @field_validator("task_python")
    @classmethod
    def _runs(cls, path: Path | None) -> Path | None:
        if path is not None and not os.access(path, os.X_OK):
            raise ValueError(f"no Python at {path}")
        return path

    @field_validator("master")
    @classmethod
    def _is_url(cls, master: str) -> str:
        url = urlsplit(master)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"{master} is not a URL of the form http://host:port")
        return master.rstrip("/")


def read_settings(arguments: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Returns the settings. Raises ConfigError with every problem; argparse exits for wrong flags."""
    given = {name: value for name, value in vars(_parser().parse_args(arguments)).items() if value is not None}
    config = given.pop("config", None) or environ.get("DET_AGENT_CONFIG")
    values: dict[str, Any] = {"data": _default_data(environ)}
    file = settings_file.read(Path(config), Settings.model_fields.keys() - {"base_environment"}) if config else None
    values |= file.values if file else {}
    above = _read_environment(environ) | given | {"base_environment": base_environment(environ)}
    problems = list(file.problems) if file else []
    settings = None
    try:
        settings = Settings.model_validate(values | above)
    except ValidationError as error:
        problems += [_problem(each, file, above) for each in error.errors()]
    if settings is None or problems:
        raise ConfigError("; ".join(problems))
    return settings


def _problem(error: Any, file: SettingsFile | None, above: Mapping[str, Any]) -> str:  # noqa: ANN401  # a dictionary of pydantic
    name = str(error["loc"][0]) if error["loc"] else ""
    is_of_file = file is not None and name in file.places and name not in above
    where = file.where(name) if file is not None and is_of_file else "agent settings"
    return f"{where}: {'.'.join(map(str, error['loc']))}: {error['msg']}"


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of an environment that tasks need and that are no secrets."""
    return {name: value for name, value in environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="det-agent", description="Runs the tasks of a Detent master on this machine.")
    parser.add_argument("--config", help="agent.yaml with any of these settings")
    parser.add_argument("--master", help="URL of the master (default http://127.0.0.1:8080)")
    parser.add_argument("--token-file", type=Path, help="file that holds the join token")
    parser.add_argument("--slots", type=int, help="offer this many CPU slots instead of the detected devices")
    parser.add_argument("--id", help="name of this agent (default: its last name, else the host name)")
    parser.add_argument("--pool", help="resource pool (default: default)")
    parser.add_argument("--data", type=Path, help="data folder of the agent")
    parser.add_argument(
        "--task-python", type=Path, help="Python for tasks that select none (default: the agent's Python)"
    )
    parser.add_argument(
        "--tasks-as-me",
        action="store_true",
        default=None,
        help="run tasks as the agent's own user (required to run any)",
    )
    parser.add_argument("--host-address", help="address at which tasks on other agents reach tasks on this one")
    parser.add_argument("--isolation", choices=("auto", "none"), help=argparse.SUPPRESS)
    parser.add_argument("--log-level", help="debug, info, warning or error (default: info)")
    return parser


def _default_data(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_DATA_HOME") or os.path.join(environ.get("HOME", "/var/lib"), ".local", "share")
    return Path(home) / "detent" / "agent"


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {"master": environ["DET_MASTER"]} if environ.get("DET_MASTER") else {}
    for name in Settings.model_fields:
        if name != "base_environment" and (value := environ.get(f"DET_AGENT_{name.upper()}")):
            values[name] = value
    return values


def task_python_of_agent() -> Path:
    """Returns the Python of the agent. Does not resolve it: a link makes it part of a virtual environment."""
    return Path(sys.executable)
