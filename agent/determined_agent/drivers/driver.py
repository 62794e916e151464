"""The driver protocol: start, wait for and end containers, and find them again after a restart of the agent.

The contract, which tests/contract/test_driver.py checks for every driver:

* ``start`` returns once the task's program has started, and raises :class:`NotStarted` if it could not be;
  then nothing of it runs. It is called once per folder.
* ``wait`` returns how the container ended when it has ended *and none of its processes lives*. An agent that did not
  start the container may call it, also long after the end. Cancelling it ends nothing.
* ``stop`` ends the whole process tree immediately, including children that left the session or were orphaned. It does
  not wait; ``wait`` reports the end. Stopping a container that has ended, or was never started, is not an error.
* All output is in the folder's segments before ``wait`` returns.
* The driver and its agent may die at any moment; running containers continue and their output is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from determined.link.run_folder import RunFolder
from determined_agent.task_process.identity import Identity
from determined_agent.task_process.namespaces import Mount

PRIVATE_UMASK = 0o077
"""Tasks that run as their owners share folders with those of other owners, such as the checkpoint storage."""


class NotStarted(Exception):
    """Raised if the task or its user caused that the container could not start; the text gives the reason."""


class SystemFailure(Exception):
    """Raised if the machine or its container engine caused that the container could not start; the task may be tried
    again."""


@dataclass(frozen=True)
class PublishedPort:
    """A port of a container that is reachable at ``host_port`` of the machine."""

    container_port: int
    host_port: int


@dataclass(frozen=True)
class ContainerOptions:
    """What only a container engine needs: the image, and what the container may see and use.

    Defaults grant nothing; None for a limit means that there is none.
    """

    image: str
    labels: Mapping[str, str] = field(default_factory=dict)
    network_mode: str = "host"
    ports: tuple[PublishedPort, ...] = ()
    shm_bytes: int | None = None
    devices: tuple[str, ...] = ()
    """Devices as ``HOST_PATH:CONTAINER_PATH:MODE``."""
    gpus: tuple[str, ...] = ()
    """UUIDs of NVIDIA GPUs or MIG instances."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the engine itself reads, such as those that choose its GPUs; no secrets."""
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()
    memory_bytes: int | None = None
    cpus: float | None = None
    pids: int | None = None


@dataclass(frozen=True)
class ContainerLaunch:
    """The data that a driver needs to start one container."""

    folder: RunFolder
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    workdir: Path
    mounts: tuple[Mount, ...] = ()
    """Mounts that only this task sees; a driver that does not support them raises NotStarted."""
    container: ContainerOptions | None = None
    """Present if the task runs in an image; the process driver needs none."""
    identity: Identity | None = None
    """User as which the task runs if it is not the agent's own."""
    reachable: tuple[Path, ...] = ()
    """Folders that a process of this user needs even if their parents are closed to it."""
    program: str = ""
    """Module whose ``main`` the Python in ``argv`` runs and no more, or empty; a driver may run it without that
    Python."""


@dataclass(frozen=True)
class RunEnd:
    """How a container ended: ``exited`` with ``code`` or ``signal``; ``stopped`` on request; else ``message`` says."""

    kind: Literal["exited", "stopped", "failed_to_start", "system"]
    code: int | None = None
    signal: int | None = None
    message: str = ""
    cause: str = ""
    """``out_of_memory`` if the kernel ended a process at the container's memory limit."""


class Driver(Protocol):
    async def start(self, launch: ContainerLaunch) -> None: ...

    async def wait(self, folder: RunFolder) -> RunEnd: ...

    def stop(self, folder: RunFolder) -> None: ...

    def runtime_id(self, folder: RunFolder, /) -> str:
        """Returns the id that a container engine gave to the container; empty for a process, and while unknown."""
        ...


@dataclass(frozen=True)
class OutputLimits:
    """Bounds of the output that is kept on disk."""

    segment_bytes: int = 16 << 20
    unsent_bytes: int = 1 << 30
    line_bytes: int = 32768


@dataclass(frozen=True)
class ProcessOptions:
    """Isolation by the process driver. ``pids`` gives each task a pid namespace if that is allowed.

    ``umask`` is that of the shell which started the agent, and applies to tasks. The agent's own files are private.
    """

    pids: bool = False
    limits: OutputLimits = field(default_factory=OutputLimits)
    umask: int = 0o022
