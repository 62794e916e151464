"""Refuses what a forked process cannot do: threads and connections stay with the process that made them."""

import os


class OwnProcess:
    """Knows the process that made it."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_current(self) -> bool:
        """Returns False in a process that was forked since."""
        return os.getpid() == self._pid

    def require(self, what: str) -> None:
        """Raises RuntimeError in a process that was forked since. ``what``: the subject of its sentence."""
        if not self.is_current:
            raise RuntimeError(
                f"{what} only in the process that called core.init() (process {self._pid}): "
                f"this process ({os.getpid()}) was forked from it, and has neither its threads nor its connections"
            )
