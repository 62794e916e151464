"""Settings of the agent: flags, ``DET_AGENT_*`` variables, ``agent.yaml``, in that order; read once, then frozen."""

import argparse
import contextlib
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from determined.client import certificates
from determined.client.certificates import FILE_VARIABLE, NAME_VARIABLE, NO_VERIFY, Trust
from determined.config import settings_file
from determined.config.settings_file import SettingsFile
from determined.config.validation_words import in_words
from determined.errors import ConfigError, UntrustedCertificate
from determined_agent import pilot

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
PROXY_VARIABLES = frozenset((*_PROXIES, *(name.upper() for name in _PROXIES)))
_KEPT = frozenset(
    (
        *PROXY_VARIABLES,
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
        "OMP_NUM_THREADS",
    )
)
_USER = re.compile(r"([0-9]{1,10}):([0-9]{1,10})")
_FOUND = frozenset(("base_environment", "job_devices"))
"""Settings that nobody sets: they are found in the environment."""
_KEPT_PREFIXES = ("LC_", "NVIDIA_", "NCCL_", "HSA_", "MIOPEN_")

MAX_SEGMENTS = 8192
"""Largest number of files in which the output of a task is kept."""
ENGINE_URLS = {"docker": "unix:///var/run/docker.sock", "podman": "unix:///run/podman/podman.sock"}
_ENGINE_VARIABLES = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}


class Settings(BaseModel):
    """The settings of an agent."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    master: str = "http://127.0.0.1:8080"
    """URL of the master."""
    master_cert_file: str = ""
    """File with the master's certificate or that of its authority, or ``noverify`` to accept every certificate;
    default: the authorities that this machine trusts. Tasks get it too."""
    master_cert_name: str = ""
    """Name in the master's certificate, if it is not the host of ``master``."""
    token_file: Path | None = None
    """File with the join token of the cluster, a copy of ``agent-token`` in the master's data folder. Needed."""
    slots: int | None = Field(default=None, ge=0, le=4096)
    """Number of CPU slots to offer instead of the accelerators that are found; default: the accelerators, else one."""
    slot_type: Literal["auto", "cuda", "gpu", "rocm", "cpu", "none"] = "auto"
    """Which devices to offer: ``auto`` for GPUs of NVIDIA or AMD, else one CPU slot; ``gpu`` means ``cuda``."""
    slot_check_seconds: float = Field(default=10.0, ge=0)
    """Time between two looks at the GPUs for other users, faults and idleness; 0 for none."""
    slot_busy_mib: int = Field(default=1024, ge=0)
    """Used memory in MiB beyond which a GPU without a task is in use."""
    slot_idle_seconds: float = Field(default=1800.0, ge=0)
    """Time after which a GPU on which its task does not compute is called idle; 0 for never."""
    id: str = ""
    """Name of this agent; default: the name that it had before, else the host name."""
    pool: str = ""
    """Resource pool of this agent; empty: the cluster's ``default_pool``."""
    data: Path
    """Folder for everything that the agent keeps; default: ``detent/agent`` in ``XDG_DATA_HOME``."""
    task_python: Path | None = None
    """Python under which tasks run that name no environment."""
    tasks_as_me: bool = False
    """Accept that tasks run as the agent's own user: all of them, or as root those of users without a link."""
    unmapped_users: str = ""
    """Tasks of users who are linked with no user of the machines: ``refuse`` them, run them as the ``agent``'s own
    user, or as ``UID:GID``; default: ``agent`` with ``tasks_as_me``, else ``refuse``."""
    host_address: str = ""
    """Address at which other agents reach tasks on this machine; default: the one by which it reaches the master."""
    isolation: Literal["auto", "none"] = "auto"
    """``auto``: pid namespaces if the agent may create them (as root)."""
    container_runtime: Literal["process", "docker", "podman"] = "process"
    """How tasks run: as processes of this machine, or in containers of Docker or Podman."""
    engine_url: str = ""
    """Address of the container engine; default: ``DOCKER_HOST`` or, for Podman, ``CONTAINER_HOST``, else the engine's
    usual socket, which an ordinary user's Podman has in ``XDG_RUNTIME_DIR``."""
    default_images: dict[str, str] = Field(default_factory=dict)
    """Image of a task that names none, by type of slot (``cpu``, ``cuda``, ``rocm``)."""
    image_aliases: dict[str, str] = Field(default_factory=dict)
    """Replacement for images by a pattern of their names (``lab/old-*``); an empty one is the default image."""
    allowed_host_paths: list[Path] = Field(default_factory=list)
    """Folders of this machine that containers may get, with all below them; default: only the cluster's own checkpoint
    storage, and what a linked user reaches in a container that runs as this user."""
    allowed_bind_mounts: list[Path] = Field(default_factory=list)
    """Earlier name of ``allowed_host_paths``; the folders of both count."""
    allowed_capabilities: list[str] = Field(default_factory=list)
    """Linux capabilities that ``environment.add_capabilities`` may add (``SYS_PTRACE``); default: none."""
    allowed_devices: list[str] = Field(default_factory=list)
    """Devices that ``resources.devices`` may name: files, folders with all below them, or patterns
    (``/dev/infiniband``, ``/dev/nvidia*``); default: none. Accelerators of slots need no entry."""
    memory_bytes: int | None = Field(default=None, ge=6 << 20)
    """Memory limit of each container; default: none."""
    cpus: float | None = Field(default=None, gt=0)
    """Number of cores that each container may use; default: all."""
    pids: int | None = Field(default=None, ge=1)
    """Number of processes and threads that each container may have; default: no limit."""
    shm_bytes: int = Field(default=4 << 30, ge=1 << 16)
    """Size of ``/dev/shm`` of containers that set no ``resources.shm_size``."""
    unsent_output_bytes: int = Field(default=1 << 30, ge=1 << 16)
    """Output of one task that is kept while the master is away; a task that prints more waits."""
    output_segment_bytes: int = Field(default=16 << 20, ge=1 << 12, le=1 << 30, validate_default=True)
    """Size of the files in which output is kept; at least ``unsent_output_bytes`` divided by 8192."""
    output_line_bytes: int = Field(default=32768, ge=64, le=1 << 20)
    """Longer lines of output are split."""
    stale_run_folder_seconds: float = Field(default=86400.0, ge=60)
    """Age in seconds after which run folders of unknown containers are removed."""
    stale_run_folder_bytes: int = Field(default=10 << 30, ge=0)
    """Beyond this total size they are removed earlier, the oldest first, but none younger than ten minutes."""
    unused_image_seconds: float | None = Field(default=None, ge=600)
    """Age in seconds after which images are removed that this agent pulled and no task used; default: never."""
    unused_image_bytes: int | None = Field(default=None, ge=0)
    """Beyond this total size of the images that this agent pulled, those unused for longest are removed; default: no
    limit."""
    unused_environment_seconds: float = Field(default=30 * 86400.0, ge=600)
    """Age in seconds after which Python environments of ``environment.venv`` are removed that no task used."""
    unused_environment_bytes: int = Field(default=50 << 30, ge=0)
    """Beyond this total size of unused environments, those unused for longest are removed earlier."""
    end_without_master_seconds: float | None = Field(default=None, gt=0)
    """Time without a master after which an agent that runs no task ends; default: never. A provider of type ``local``
    sets it, so that no agent outlives its cluster."""
    log_level: str = "info"
    """Level of the agent's own log: debug, info, warning or error."""
    log_format: Literal["text", "json"] = "text"
    """Form of its lines: for people, or one JSON object a line."""
    pilot: bool = False
    """The agent runs in a job of Slurm, which ends it. A provider of type ``slurm`` sets it."""
    setup_environment: Path | None = None
    """File with the variables after the set-up lines of the job, which a provider of type ``slurm`` writes."""
    base_environment: dict[str, str] = Field(default_factory=dict)
    """Variables of the agent's own environment that tasks inherit."""
    job_devices: dict[str, str] = Field(default_factory=dict)
    """Variables with which the job of a pilot names its devices."""

    @property
    def trust(self) -> Trust:
        """Returns which certificate of the master is accepted."""
        return Trust(self.master_cert_file, self.master_cert_name)

    @property
    def host_paths(self) -> list[Path]:
        """Returns the folders that containers may get."""
        return [*self.allowed_host_paths, *self.allowed_bind_mounts]

    @property
    def engine_address(self) -> str:
        """Returns the address of the container engine."""
        return self.engine_url or ENGINE_URLS.get(self.container_runtime, "")

    @property
    def is_master_local(self) -> bool:
        """Returns True if the address of the master is a loopback address reach the master."""
        host = urlsplit(self.master).hostname or ""
        return host == "localhost" or host == "::1" or host.startswith("127.")

    @field_validator("master_cert_file")
    @classmethod
    def _is_certificate(cls, value: str) -> str:
        file = value if value in ("", NO_VERIFY) else str(Path(value).expanduser().absolute())
        try:
            certificates.context(Trust(file))
        except UntrustedCertificate as error:
            raise ValueError(error.message) from error
        return file

    @field_validator("data", "task_python", "token_file", "setup_environment")
    @classmethod
    def _whole(cls, path: Path | None) -> Path | None:
        # Not resolved: a link to a Python makes it part of a virtual environment.
        return None if path is None else path.expanduser().absolute()

    @field_validator(
        "allowed_host_paths", "allowed_bind_mounts", "allowed_capabilities", "allowed_devices", mode="before"
    )
    @classmethod
    def _listed(cls, value: object) -> object:
        # Variables have no lists.
        return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value

    @field_validator("allowed_host_paths", "allowed_bind_mounts")
    @classmethod
    def _are_absolute(cls, paths: list[Path]) -> list[Path]:
        found = [path.expanduser() for path in paths]
        for path in found:
            if not path.is_absolute():
                raise ValueError(f"{path} is not an absolute path")
        return found

    @field_validator("allowed_devices")
    @classmethod
    def _are_devices(cls, paths: list[str]) -> list[str]:
        for path in paths:
            if not path.startswith("/"):
                raise ValueError(f"{path} is not an absolute path")
        return paths

    @field_validator("task_python")
    @classmethod
    def _runs(cls, path: Path | None) -> Path | None:
        if path is not None and not os.access(path, os.X_OK):
            raise ValueError(f"no Python at {path}")
        return path

    @field_validator("unmapped_users")
    @classmethod
    def _is_user(cls, value: str) -> str:
        numbers = _USER.fullmatch(value)
        is_user = numbers is not None and all(int(number) < 2**32 - 1 for number in numbers.groups())
        if value not in ("", "refuse", "agent") and not is_user:
            raise ValueError(f"{value} is none of refuse, agent and UID:GID")
        return value

    @field_validator("output_segment_bytes")
    @classmethod
    def _makes_few_segments(cls, size: int, info: ValidationInfo) -> int:
        kept = info.data.get("unsent_output_bytes", 0)
        if kept > size * MAX_SEGMENTS:
            raise ValueError(f"at least {-(-kept // MAX_SEGMENTS)} for unsent_output_bytes of {kept}")
        return size

    @field_validator("log_level")
    @classmethod
    def _is_level(cls, level: str) -> str:
        if level.upper() not in logging.getLevelNamesMapping():
            raise ValueError(f"{level} is none of debug, info, warning, error and critical")
        return level

    @field_validator("master")
    @classmethod
    def _is_url(cls, master: str) -> str:
        url = urlsplit(master)
        with contextlib.suppress(ValueError):  # of a port that is no number, or too large
            if url.scheme in ("http", "https") and url.hostname and url.port != 0:
                return master.rstrip("/")
        raise ValueError(f"{master} is not a URL of the form http://host:port")


def read_settings(arguments: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Returns the settings. Raises ConfigError with every problem; argparse exits for wrong flags."""
    given = {name: value for name, value in vars(_parser().parse_args(arguments)).items() if value is not None}
    config = given.pop("config", None) or environ.get("DET_AGENT_CONFIG")
    values: dict[str, Any] = {"data": _default_data(environ)}
    file = settings_file.read(Path(config), Settings.model_fields.keys() - _FOUND) if config else None
    values |= file.values if file else {}
    above = _read_environment(environ) | given | {"base_environment": base_environment(environ)}
    problems = list(file.problems) if file else []
    values["engine_url"] = values.get("engine_url") or _engine_url(
        str((values | above).get("container_runtime")), environ
    )
    settings = None
    try:
        settings = Settings.model_validate(values | above)
    except ValidationError as error:
        problems += [_problem(each, file, above) for each in error.errors()]
    if settings is None or problems:
        raise ConfigError("; ".join(problems))
    return _of_pilot(settings, environ) if settings.pilot else settings


def _of_pilot(settings: Settings, environ: Mapping[str, str]) -> Settings:
    variables = pilot.task_variables(settings.base_environment, environ, settings.setup_environment)
    if settings.slots is not None:
        variables["CUDA_VISIBLE_DEVICES"] = ""  # its slots are CPUs, whatever the node has
    found = {"base_environment": variables, "job_devices": pilot.device_variables(environ)}
    return settings.model_copy(update=found)


def _problem(error: Any, file: SettingsFile | None, above: Mapping[str, Any]) -> str:  # noqa: ANN401  # a dictionary of pydantic
    name = str(error["loc"][0]) if error["loc"] else ""
    is_of_file = file is not None and name in file.places and name not in above
    where = file.where(name) if file is not None and is_of_file else "agent settings"
    return f"{where}: {'.'.join(map(str, error['loc']))}: {in_words(error)}"


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of an environment that tasks need and that are no secrets."""
    return {name: value for name, value in environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="det-agent", description="Runs the tasks of a Detent master on this machine.")
    parser.add_argument("--config", help="agent.yaml with any of these settings")
    parser.add_argument("--master", help="URL of the master (default http://127.0.0.1:8080)")
    parser.add_argument("--master-cert-file", metavar="FILE", help="certificate of the master, or noverify")
    parser.add_argument("--master-cert-name", metavar="NAME", help="name in the master's certificate, if another")
    parser.add_argument("--token-file", type=Path, help="file that holds the join token")
    parser.add_argument("--slots", type=int, help="offer this many CPU slots instead of the detected devices")
    parser.add_argument("--id", help="name of this agent (default: its last name, else the host name)")
    parser.add_argument("--pool", help="resource pool (default: the default pool of the cluster)")
    parser.add_argument("--data", type=Path, help="data folder of the agent")
    parser.add_argument(
        "--task-python", type=Path, help="Python for tasks that select none (default: the agent's Python)"
    )
    parser.add_argument(
        "--tasks-as-me",
        action="store_true",
        default=None,
        help="run tasks as the agent's own user (required unless the agent runs as root)",
    )
    parser.add_argument(
        "--unmapped-users",
        metavar="refuse|agent|UID:GID",
        help="tasks of users without a link: refuse them, or run them as the agent's or this user",
    )
    parser.add_argument(
        "--container-runtime",
        choices=("process", "docker", "podman"),
        help="run tasks as processes (default) or in containers of this engine",
    )
    parser.add_argument("--engine-url", help="address of the container engine (default: its usual socket)")
    parser.add_argument("--host-address", help="address at which tasks on other agents reach tasks on this one")
    parser.add_argument("--isolation", choices=("auto", "none"), help=argparse.SUPPRESS)
    parser.add_argument("--log-level", help="debug, info, warning or error (default: info)")
    return parser


def _default_data(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_DATA_HOME") or os.path.join(environ.get("HOME", "/var/lib"), ".local", "share")
    return Path(home) / "detent" / "agent"


def _engine_url(runtime: str, environ: Mapping[str, str]) -> str:
    """Returns the address that the environment gives, or an empty text for the engine's usual socket."""
    given = environ.get(_ENGINE_VARIABLES.get(runtime, ""), "")
    if not given and runtime == "podman" and os.geteuid() != 0 and environ.get("XDG_RUNTIME_DIR"):
        return f"unix://{environ['XDG_RUNTIME_DIR']}/podman/podman.sock"
    return given


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    shared = {"master": "DET_MASTER", "master_cert_file": FILE_VARIABLE, "master_cert_name": NAME_VARIABLE}
    values: dict[str, Any] = {name: environ[each] for name, each in shared.items() if environ.get(each)}
    for name in Settings.model_fields:
        if name not in _FOUND and (value := environ.get(f"DET_AGENT_{name.upper()}")):
            values[name] = value
    return values


def task_python_of_agent() -> Path:
    """Returns the Python of the agent. Does not resolve it: a link makes it part of a virtual environment."""
    return Path(sys.executable)
