"""Wire models of commands and services."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from determined.config.masking import masked
from determined.states import AllocationState, TaskState
from determined_master.api.schemas.agents import Container
from determined_master.api.schemas.base import BoundedInt, Json, Name, Pagination, Time, Wire
from determined_master.api.schemas.enums import state
from determined_master.api.schemas.experiments import ModelFile
from determined_master.db.models import AllocationRow, ContainerRow, JobRow, TaskRow
from determined_master.states.display_state import BY_ALLOCATION, QUEUED

TERMINATING, TERMINATED = "TERMINATING", "TERMINATED"


class Command(Wire):
    id: str
    description: str
    state: str
    start_time: Time
    end_time: Time | None = None
    username: str
    display_name: str | None = None
    user_id: int | None = None
    resource_pool: str
    priority: int
    """Ours, as ``endTime``, ``slots`` and ``exitCode``."""
    slots: int
    job_id: str
    workspace_id: int
    container: Container | None = None
    exit_status: str | None = None
    exit_code: int | None = None
    """Once it has ended by itself: the exit code, 128 + N for signal N."""


class CommandAnswer(Wire):
    command: Command
    config: Json


class ChangedCommand(Wire):
    command: Command


class LaunchAnswer(CommandAnswer):
    warnings: list[str] = []
    notes: list[str] = []
    """Ours: a sentence for each setting that has no or another effect."""


class CommandsAnswer(Wire):
    commands: list[Command]
    pagination: Pagination


class Shell(Command):
    """A shell. The keys are those of its owner and for admins; empty for others."""

    private_key: str = ""
    public_key: str = ""
    addresses: list[dict[str, Any]] = []
    """Always empty: a shell is entered by streams."""
    agent_user_group: dict[str, Any] = {}
    idle_timeout: float | None = None
    """Ours, as ``idleSince``. Seconds without a connection after which it ends; null for never."""
    idle_since: Time | None = None
    """Since when nobody is connected; null while somebody is, and while it is not ready."""


class ShellAnswer(Wire):
    shell: Shell
    config: Json


class ChangedShell(Wire):
    shell: Shell


class LaunchedShell(ShellAnswer):
    warnings: list[str] = []
    notes: list[str] = []
    """Ours: a sentence for each setting that has no or another effect."""


class ShellsAnswer(Wire):
    shells: list[Shell]
    pagination: Pagination


class LaunchBody(Wire):
    """Body without ``files``, which are stored separately. Zero and null mean absent."""

    config: dict[str, Any] | None = None
    context_hash: Name | None = None
    template_name: Name | None = None
    workspace_id: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class PriorityBody(Wire):
    priority: BoundedInt = 0


def launch_body_schema() -> dict[str, Any]:
    """The JSON schema of ``POST /commands``: the fields of :class:`LaunchBody` and ``files``."""
    schema = LaunchBody.model_json_schema()
    schema["properties"]["files"] = {"type": "array", "items": ModelFile.model_json_schema()}
    return schema


def of_task(
    row: TaskRow, job: JobRow, username: str, live: AllocationRow | None, containers: Sequence[ContainerRow]
) -> dict[str, Any]:
    """Returns the fields of a command, which services have too."""
    has_ended = row.state is not None and row.state.is_terminal
    return {
        "id": row.id,
        "description": row.description,
        "state": state(shown_state(row.state, live.state if live else None)),
        "start_time": row.created_at,
        "end_time": row.ended_at,
        "username": username,
        "display_name": username,
        "user_id": row.user_id,
        "resource_pool": job.pool,
        "priority": job.priority,
        "slots": row.slots,
        "job_id": row.job_id,
        "workspace_id": row.workspace_id or 0,
        "container": next((Container(id=c.id, state=state(c.state), parent=c.agent_id) for c in containers), None),
        "exit_status": exit_status(row) if has_ended else None,
        "exit_code": row.exit_code if has_ended else None,
    }


def shown_state(of_task: TaskState | None, live: AllocationState | None) -> str:
    """Returns the state of a task in the words of the older API.

    >>> shown_state(TaskState.ACTIVE, None), shown_state(TaskState.ACTIVE, AllocationState.RUNNING)
    ('QUEUED', 'RUNNING')
    >>> shown_state(TaskState.STOPPING, AllocationState.RUNNING), shown_state(TaskState.ERROR, None)
    ('TERMINATING', 'TERMINATED')
    """
    if of_task is None or of_task.is_terminal:
        return TERMINATED
    if of_task is TaskState.STOPPING or live is AllocationState.TERMINATING:
        return TERMINATING
    return QUEUED if live is None else BY_ALLOCATION[live]


def exit_status(row: TaskRow) -> str:
    """Returns how an ended task ended, in one sentence."""
    if row.state is TaskState.COMPLETED:
        return "exited successfully"
    if row.state is TaskState.CANCELED:
        return row.failure or "killed by a user"
    return row.failure or "failed"


def shown_config(row: TaskRow) -> dict[str, Any]:
    """Returns the configuration without secrets."""
    return masked(row.config or {})
