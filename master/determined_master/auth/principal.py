"""The authenticated sender of a request."""

from dataclasses import dataclass

from determined.states import TokenScope


@dataclass(frozen=True)
class Principal:
    """A user or a task. A task acts as its owner, but may write only its own data."""

    user_id: int
    username: str
    admin: bool
    allocation_id: str | None = None
    task_id: str | None = None
    scope: TokenScope | None = None
    """Rows to which a task's token may write; None for a user."""
    trial_id: int | None = None
    """The trial of a task's token; None for other tasks."""
    session_id: int | None = None

    @property
    def is_task(self) -> bool:
        return self.allocation_id is not None
