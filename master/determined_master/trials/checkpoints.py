"""Taking in a checkpoint that is whole, and letting one go: its row, and what its trial says of all of them."""

import re
import shutil

from sqlalchemy.ext.asyncio import AsyncSession

from determined.errors import BadRequest, PreconditionFailed
from determined.states import CheckpointState
from determined_master import notifications
from determined_master.api.schemas.checkpoints import ReportBody
from determined_master.checkpoints import repository as checkpoint_rows
from determined_master.checkpoints.storage import folder_of
from determined_master.clock import Clock
from determined_master.db.models import CheckpointRow
from determined_master.db.session import after_commit, notify
from determined_master.events import repository as events
from determined_master.principal import Principal
from determined_master.trials import repository

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


async def report(session: AsyncSession, clock: Clock, body: ReportBody, principal: Principal) -> None:
    """Idempotent: clients retry. Raises BadRequest for one that names no steps."""
    steps = body.metadata.get("steps_completed")
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
        raise BadRequest("metadata.steps_completed is missing or no whole number")
    if not _NAME.fullmatch(body.uuid):
        raise BadRequest("a checkpoint's uuid has letters, digits, - and _ only")
    task_id = body.task_id or principal.task_id
    if not task_id:
        raise BadRequest("taskId is missing")
    known = await checkpoint_rows.find(session, body.uuid)
    if known is not None:
        if known.task_id != task_id:
            raise PreconditionFailed(f"checkpoint {body.uuid} is of another task")
        return
    trial = await repository.get_by_task(session, task_id)
    size = sum(body.resources.values())
    await checkpoint_rows.add(
        session,
        uuid=body.uuid,
        task_id=task_id,
        allocation_id=body.allocation_id or principal.allocation_id or "",
        state=CheckpointState.COMPLETED,
        steps_completed=steps,
        report_time=clock.now(),
        resources=body.resources,
        meta=body.metadata,
        size=size,
    )
    newest = await checkpoint_rows.newest_completed(session, task_id)
    await repository.change(
        session,
        trial,
        latest_checkpoint=newest.uuid if newest else None,
        checkpoint_count=trial.checkpoint_count + 1,
        checkpoint_size=trial.checkpoint_size + size,
        values_stale=True,
    )
    await events.record(
        session,
        clock,
        actor=principal.username,
        kind="reported",
        target_type="checkpoint",
        target_id=body.uuid,
        payload={"trial": trial.id, "steps": steps},
    )
    notify(session, notifications.COLUMNS)


async def delete(session: AsyncSession, row: CheckpointRow) -> None:
    """The row says DELETED first; the files go after the commit."""
    if row.state is CheckpointState.DELETED:
        return
    trial = await repository.find_by_task(session, row.task_id)
    await checkpoint_rows.change(session, row, state=CheckpointState.DELETED, resources={}, size=0)
    if trial is None:
        return
    newest = await checkpoint_rows.newest_completed(session, row.task_id)
    await repository.change(
        session,
        trial,
        latest_checkpoint=newest.uuid if newest else None,
        checkpoint_count=max(0, trial.checkpoint_count - 1),
        checkpoint_size=max(0, trial.checkpoint_size - row.size),
        values_stale=True,
    )
    notify(session, notifications.COLUMNS)
    folder = folder_of(await repository.storage_of(session, trial), row.uuid)
    after_commit(session, lambda: shutil.rmtree(folder, ignore_errors=True))
