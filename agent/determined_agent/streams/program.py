"""The protocol of what a stream is joined with, and of how it is started beside a task."""

from typing import Any, Protocol

from determined.errors import DeterminedError
from determined.link.messages import Execution
from determined.link.run_folder import RunFolder
from determined.streams.records import Record

READ_BYTES = 64 << 10
SHELLS = ("bash", "sh")
"""Shells for a terminal without a program, the first one that is there; before them the one that SHELL names."""


class NotEntered(DeterminedError):
    """The task cannot be entered in this way; the text says why."""


class Program(Protocol):
    """A program or a connection. Nothing of it is left after ``close``."""

    async def read(self) -> Record | None:
        """Returns the next bytes of its output, or None at the end of all output."""
        ...

    async def write(self, data: bytes) -> None:
        """Passes input to it; waits while it takes none. Does nothing after its end."""
        ...

    async def end_input(self) -> None: ...

    async def resize(self, rows: int, columns: int) -> None: ...

    async def signal(self, number: int) -> None: ...

    async def wait(self) -> dict[str, Any]:
        """Returns, after its end, ``{code}``, ``{signal}`` or ``{error}``."""
        ...

    async def close(self) -> None:
        """Ends it and everything that it started. Idempotent."""
        ...


class TaskEntry(Protocol):
    """Starts programs beside the tasks of one driver. Both methods raise NotEntered."""

    async def execute(self, folder: RunFolder, execution: Execution) -> Program: ...

    async def connect(self, folder: RunFolder, port: int) -> Program: ...
