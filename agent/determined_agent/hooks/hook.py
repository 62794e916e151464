"""The hook protocol: one step of preparing a container, and its undo."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from determined.link.messages import ContainerSpec
from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import ContainerOptions
from determined_agent.environments.task_python import PythonFacts
from determined_agent.output.log_segments import AGENT, SegmentWriter
from determined_agent.task_process.identity import Identity
from determined_agent.task_process.namespaces import Mount
from determined_launch.environment import USER_SETTABLE

PRIVATE_RUN = Path("/run/determined")
PRIVATE_SHARED_FS = "/determined_shared_fs"


@dataclass
class ContainerPlan:
    """A container in preparation: hooks read the spec and fill in the other fields, in order."""

    container_id: str
    spec: ContainerSpec
    folder: RunFolder
    address: str = "127.0.0.1"
    """Address at which the other containers of the allocation reach this one."""
    environment: dict[str, str] = field(default_factory=dict)
    mounts: list[Mount] = field(default_factory=list)
    task_python: Path = Path("python3")
    """Python of this attempt's environment, as the task sees it."""
    read_only: list[Path] = field(default_factory=list)
    """Folders that the task must not change; enforced only if mounts are available anyway."""
    harness_copy: Path = Path()
    """Copy of our in-task packages; ``run_task`` always comes from it, whichever library the task uses."""
    has_private_paths: bool = False
    """True if the task sees its run folder at /run/determined and the storage at /determined_shared_fs."""
    has_installed_library: bool = False
    """True if the task trains with a ``determined`` of its own environment."""
    bash: str | None = None
    """Path of bash as the task sees it; None if it has none."""
    container: ContainerOptions | None = None
    """Present if the task runs in a container of an engine."""
    identity: Identity | None = None
    """User as which the task runs if it is not the agent's own."""
    reachable: list[Path] = field(default_factory=list)
    """Folders that a process of this user needs even if their parents are closed to it."""
    built: PythonFacts | None = None
    """Environment that was built for this task, by its paths on the machine; None for the agent's choice."""
    added: PythonFacts | None = None
    """Environment with the packages that are added to the task's Python; None if there are none."""
    needed_environment: str = ""
    """Key of the environment for which the container waits."""
    start_note: str = ""
    """A reason why each start of this container is slow, with what to do; empty if none is known."""
    on_change: Callable[[], None] = lambda: None
    """Reports the container to the master, and sends its log, while a hook waits."""

    @property
    def run_dir(self) -> Path:
        """Returns the run folder as the task sees it."""
        return PRIVATE_RUN if self.has_private_paths else self.folder.run

    @property
    def workdir(self) -> Path:
        return self.run_dir / "workdir"

    def need_environment(self, key: str) -> None:
        """Reports that the container waits for this environment; empty: for none."""
        if key != self.needed_environment:
            self.needed_environment = key
            self.on_change()

    def log_line(self, text: str, level: str = "INFO") -> None:
        """Adds a line of the agent to the container's log."""
        log_line(self.folder, text, level)


class Hook(Protocol):
    async def do(self, plan: ContainerPlan) -> None:
        """Performs the step. Raises NotStarted if the task or its user caused a failure."""

    async def undo(self, plan: ContainerPlan) -> None:
        """Runs after the container's end or after a later hook failed. Must not raise if ``do`` never ran."""


def log_line(folder: RunFolder, text: str, level: str = "INFO") -> None:
    """Adds lines to a container's log; allowed only while no shim writes to it."""
    writer = SegmentWriter(folder.output)
    for line in text.splitlines():
        writer.add(AGENT, f"{level}: {line}".encode())
    writer.close()


def assign(environment: dict[str, str], pairs: list[str], fixed: Mapping[str, str]) -> list[str]:
    """Adds ``NAME=VALUE`` pairs in order; returns the names that a user may not set."""
    refused = []
    for pair in pairs:
        name, _, value = pair.partition("=")
        is_reserved = name in fixed or (name.startswith("DET_") and name not in USER_SETTABLE)
        if not name or "\0" in pair or is_reserved:
            refused.append(name)
        else:
            environment[name] = value
    return refused
