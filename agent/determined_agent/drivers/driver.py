"""The driver protocol: start, wait for and end containers, and find them again after a restart of the agent.

The contract, in words; tests/contract/test_driver.py holds every driver to it:

* ``start`` returns when the task has been executed, and raises :class:`NotStarted` when it could not be; then nothing
  of it runs. It is called once for a folder.
* ``wait`` returns when the container has ended *and no process of it lives*, with how it ended. It may be called by
  an agent that did not start the container, also long after the end. Cancelling it ends nothing.
* ``stop`` ends the whole tree at once: children that left the session or were orphaned too. It returns at once; the
  end is told by ``wait``. Stopping what has ended, or was never started, is no error.
* All output stands in the folder's segments before ``wait`` returns.
* The driver and its agent may die at any moment; what runs goes on and its output is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from determined.link.run_folder import RunFolder
from determined_agent.namespaces import Mount


class NotStarted(Exception):
    """The container could not be started, by the task's or its user's fault; the text says why."""


@dataclass(frozen=True)
class Launch:
    """All that a driver needs to start one container."""

    folder: RunFolder
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    workdir: Path
    mounts: tuple[Mount, ...] = ()
    """Seen by this task alone; a driver that cannot do it raises NotStarted."""


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
    """How the process driver isolates: ``pids`` puts each task into a pid namespace where that is allowed.

    ``umask`` is what tasks start with: the agent's own files are private, those of tasks are as the user wants them.
    """

    pids: bool = False
    limits: OutputLimits = field(default_factory=OutputLimits)
    umask: int = 0o022
