"""Reads what the API shows of commands."""

from collections.abc import Sequence

from determined_master.allocations import repository as allocation_rows
from determined_master.api.schemas import commands as schemas
from determined_master.db.models import ContainerRow, TaskRow
from determined_master.db.session import ReadSession
from determined_master.jobs import repository as jobs
from determined_master.users import list_queries


async def show(session: ReadSession, rows: Sequence[TaskRow]) -> list[schemas.Command]:
    """Returns the commands in a constant number of statements per batch."""
    names = await list_queries.usernames(session, {row.user_id for row in rows})
    of_jobs = await jobs.get_many(session, [row.job_id for row in rows])
    going = [row.id for row in rows if row.state is not None and row.state.is_live]
    live = {each.task_id: each for each in await allocation_rows.live_of_tasks(session, going)}
    containers: dict[str, list[ContainerRow]] = {}
    for container in await allocation_rows.containers_of_tasks(session, list(live)):
        containers.setdefault(container.allocation_id, []).append(container)
    shown = []
    for row in rows:
        attempt = live.get(row.id)
        at = containers.get(attempt.id, []) if attempt else []
        shown.append(schemas.command(row, of_jobs[row.job_id], names.get(row.user_id, ""), attempt, at))
    return shown
