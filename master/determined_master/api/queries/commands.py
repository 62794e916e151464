"""Reads what the API shows of commands and services."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from determined.states import TaskKind
from determined_master.allocations import repository as allocation_rows
from determined_master.api.schemas import commands as schemas
from determined_master.auth.secrets import Secrets
from determined_master.commands import idle
from determined_master.db.models import AllocationRow, ContainerRow, TaskRow
from determined_master.db.session import ReadSession
from determined_master.jobs import repository as jobs
from determined_master.ssh import shell_keys
from determined_master.streams.uses import Uses
from determined_master.users import agent_user, list_queries


@dataclass(frozen=True)
class Viewer:
    """Who sees tasks, and what of them is not in the database."""

    may_enter: Callable[[int], bool]
    """Returns True for an owner whose tasks the viewer may enter."""
    secrets: Secrets
    uses: Uses
    now: datetime


async def show(session: ReadSession, rows: Sequence[TaskRow], viewer: Viewer) -> list[schemas.Command]:
    """Returns the tasks in a constant number of statements per batch."""
    names = await list_queries.usernames(session, {row.user_id for row in rows})
    of_jobs = await jobs.get_many(session, [row.job_id for row in rows])
    going = [row.id for row in rows if row.state is not None and row.state.is_live]
    live = {each.task_id: each for each in await allocation_rows.live_of_tasks(session, going)}
    containers: dict[str, list[ContainerRow]] = {}
    for container in await allocation_rows.containers_of_tasks(session, list(live)):
        containers.setdefault(container.allocation_id, []).append(container)
    links = await list_queries.agent_links(session, {row.user_id for row in rows if row.kind is TaskKind.SHELL})
    shown: list[schemas.Command] = []
    for row in rows:
        attempt = live.get(row.id)
        at = containers.get(attempt.id, []) if attempt else []
        fields = schemas.of_task(row, of_jobs[row.job_id], names.get(row.user_id, ""), attempt, at)
        if row.kind is TaskKind.SHELL:
            group = agent_user.shown(row.user_id, links.get(row.user_id))
            shown.append(schemas.Shell(**fields, **_of_shell(row, attempt, viewer), agent_user_group=group))
        else:
            shown.append(schemas.Command(**fields))
    return shown


def _of_shell(row: TaskRow, attempt: AllocationRow | None, viewer: Viewer) -> dict[str, Any]:
    private, public = "", ""
    if viewer.may_enter(row.user_id):
        private, public = shell_keys.user_key(viewer.secrets.ssh_secret, row.id)
    since = None
    if attempt is not None and attempt.ready_at is not None:
        since = idle.idle_since(idle.Service(attempt.ready_at, row.last_used_at), viewer.uses.of(row.id), viewer.now)
    return {"private_key": private, "public_key": public, "idle_timeout": row.idle_timeout, "idle_since": since}
