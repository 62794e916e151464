"""The table of tasks that users launch with a configuration of their own: commands, and services that they connect to.

A further kind of service is one more row: launching, routes and the loop that ends idle ones read this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from determined.config.command import CheckedCommand, check_command, check_shell
from determined.config.pool_layers import PoolLayers
from determined.states import TaskKind


class Check(Protocol):
    """Checks a configuration and fills it in, see ``determined.config.command``."""

    def __call__(
        self, data: Mapping[str, object], has_containers: bool = False, pools: PoolLayers | None = None
    ) -> CheckedCommand: ...


@dataclass(frozen=True)
class LaunchedKind:
    """One kind. Its tasks are ready once their program runs, after their startup hooks."""

    kind: TaskKind
    noun: str
    """Its name in texts and routes."""
    check: Check
    """Also fills in the program: a command has that of its configuration."""
    port: int | None = None
    """Port at which its program serves; None if it serves none."""
    idle: Literal["open streams"] | None = None
    """What counts as use: a task without it for ``idle_timeout`` ends. None: such tasks do not end by themselves."""


COMMAND = LaunchedKind(TaskKind.COMMAND, "command", check_command)
SHELL = LaunchedKind(TaskKind.SHELL, "shell", check_shell, idle="open streams")
KINDS: Mapping[TaskKind, LaunchedKind] = {each.kind: each for each in (COMMAND, SHELL)}
SERVICES = tuple(each.kind for each in KINDS.values() if each.idle)
"""The kinds that end when they are idle."""
