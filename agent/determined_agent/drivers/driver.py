"""The driver protocol: start, wait for and end containers, and find them again after a restart of the agent.

The contract, which tests/contract/test_driver.py checks for every driver:

* ``start`` returns when the task was executed, and raises :class:`NotStarted` if it could not be; then nothing of it
  runs. It is called once per folder.
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
from determined_agent.namespaces import Mount


class NotStarted(Exception):
    """Raised if the task or its user caused that the container could not start; the text gives the reason."""


@dataclass(frozen=True)
class Launch:
    """The data that a driver needs to start one container."""

    folder: RunFolder
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    workdir: Path
    mounts: tuple[Mount, ...] = ()
    """Mounts that only this task sees; a driver that does not support them raises NotStarted."""


@dataclass(frozen=True)
class Ended:
    """How a container ended: ``exited`` with ``code`` or ``signal``; ``stopped`` on request; else ``message`` says."""

    kind: Literal["exited", "stopped", "failed_to_start", "system"]
    code: int | None = None
    signal: int | None = None
    message: str = ""


class Driver(Protocol):
    async def start(self, launch: Launch) -> None: ...

    async def wait(self, folder: RunFolder) -> Ended: ...

    def stop(self, folder: RunFolder) -> None: ...


@dataclass(frozen=True)
class OutputLimits:
    """Bounds of the output that is kept on disk."""

    segment_bytes: int = 16 << 20
    unsent_bytes: int = 1 << 30
    line_bytes: int = 32768


@dataclass(frozen=True)
class ProcessOptions:
    """Isolation by the process driver. ``pids`` gives each task a pid namespace if that is allowed.

    ``umask`` applies to tasks: the agent's own files are private, the user decides about those of tasks.
    """

    pids: bool = False
    limits: OutputLimits = field(default_factory=OutputLimits)
    umask: int = 0o022
