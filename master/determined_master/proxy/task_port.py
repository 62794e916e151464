"""A port of a task as something that browsers open, and the label by which addresses name it."""

import hashlib
from typing import NamedTuple

LABEL_DIGITS = 16


class TaskPort(NamedTuple):
    """A port of the chief of a task."""

    task_id: str
    port: int

    @property
    def label(self) -> str:
        """Returns a name for it that is a part of a host name, the same after every start of a master.

        >>> TaskPort("3.f2b", 8888).label
        '8888-f12e18ae7f63d8bd'
        """
        digest = hashlib.sha256(f"{self.task_id}:{self.port}".encode()).hexdigest()
        return f"{self.port}-{digest[:LABEL_DIGITS]}"

    def __str__(self) -> str:
        return f"port {self.port} of task {self.task_id}"
