"""The plan of one container, which the layer writes for the program that starts the processes."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ProcessPlan:
    """One process.

    ``environment`` is added to that of the program that starts it; ``own_environment`` is the part that the user wrote.
    """

    label: str
    rank: int
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    own_environment: Mapping[str, str] = field(default_factory=dict)
    is_daemon: bool = False


@dataclass(frozen=True)
class RolePlan:
    """The processes of one container. ``is_alone``: no other container has processes of the trial."""

    processes: tuple[ProcessPlan, ...]
    preload: tuple[str, ...] = ()
    is_alone: bool = True

    @staticmethod
    def end_mark(folder: Path) -> Path:
        """Returns the file that exists when the processes that are no daemons have ended, in all containers."""
        return folder / "end"

    @staticmethod
    def done_mark(folder: Path) -> Path:
        """Returns the file that exists when those of this container have ended."""
        return folder / "done"

    @classmethod
    def clear(cls, folder: Path) -> None:
        """Makes the folder and removes the marks of an earlier plan."""
        folder.mkdir(parents=True, exist_ok=True)
        for mark in (cls.end_mark(folder), cls.done_mark(folder)):
            mark.unlink(missing_ok=True)

    def write(self, folder: Path) -> None:
        """Writes the plan for its owner alone."""
        target = os.open(folder / "plan.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(target, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)

    @classmethod
    def read(cls, folder: Path) -> "RolePlan":
        value = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        planned = tuple(ProcessPlan(**{**one, "command": tuple(one["command"])}) for one in value["processes"])
        return cls(planned, tuple(value["preload"]), value["is_alone"])
