"""Stores reported checkpoints and marks checkpoints as deleted: the row, and the totals of its trial."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from determined.errors import BadRequest, Forbidden, PreconditionFailed
from determined.states import CheckpointRole, CheckpointState
from determined.storage.base import METADATA_FILE
from determined_master import notifications
from determined_master.auth.principal import Principal
from determined_master.checkpoints import backend_repository, outputs_repository
from determined_master.checkpoints import repository as checkpoint_rows
from determined_master.clock import Clock
from determined_master.db.models import CheckpointRow
from determined_master.db.models.base import MAX_INT64
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.events import repository as events
from determined_master.trials import repository
from determined_master.users.authorization import Authorization

MAX_CHECKPOINT_BYTES = 2**53


@dataclass(frozen=True)
class CheckpointReport:
    """A checkpoint as its task reports it. ``resources``: path → size in bytes.

    ``role``: outputs are no step of the training. They replace those that the trial had before.
    """

    uuid: str
    metadata: Mapping[str, Any]
    resources: Mapping[str, int]
    task_id: str | None = None
    allocation_id: str | None = None
    role: CheckpointRole = CheckpointRole.STATE

    @property
    def files(self) -> int:
        """Returns the number of files without the list of metadata that each checkpoint has."""
        return sum(not name.endswith("/") and name != METADATA_FILE for name in self.resources)


async def report(session: WriteSession, clock: Clock, body: CheckpointReport, principal: Principal) -> None:
    """Stores a checkpoint of the trial whose task reports it. Idempotent: clients retry.

    Raises Forbidden for anyone but that task: whoever could report a checkpoint could have its folder deleted.
    """
    task_id = _own_task(body, principal)
    is_state = body.role is CheckpointRole.STATE
    steps = body.metadata.get("steps_completed") if is_state else 0
    if not isinstance(steps, int) or isinstance(steps, bool) or not 0 <= steps <= MAX_INT64:
        raise BadRequest("metadata.steps_completed is missing or not an integer")
    size = sum(body.resources.values())
    if size > MAX_CHECKPOINT_BYTES:
        raise BadRequest(f"the sizes of the resources add up to more than {MAX_CHECKPOINT_BYTES} bytes")
    known = await checkpoint_rows.find(session, body.uuid)
    if known is not None:
        if known.task_id != task_id:
            raise PreconditionFailed(f"checkpoint {body.uuid} belongs to another task")
        return
    trial = await repository.get_by_task(session, task_id)
    await checkpoint_rows.add(
        session,
        uuid=body.uuid,
        task_id=task_id,
        allocation_id=principal.allocation_id or "",
        state=CheckpointState.COMPLETED,
        role=body.role,
        steps_completed=steps,
        report_time=clock.now(),
        resources=dict(body.resources),
        meta=dict(body.metadata) if is_state else {**body.metadata, "files": body.files},
        size=size,
        storage_id=await backend_repository.backend_id(session, await repository.storage_of(session, trial)),
    )
    newest = await checkpoint_rows.newest_completed(session, task_id)
    await repository.change(
        session,
        trial,
        latest_checkpoint=newest.uuid if newest else None,
        checkpoint_count=trial.checkpoint_count + is_state,
        checkpoint_size=trial.checkpoint_size + size,
        last_report_at=clock.now(),
        values_stale=True,
    )
    await events.record(
        session,
        clock,
        actor=principal.username,
        kind="reported" if is_state else "outputs_kept",
        target_type="checkpoint",
        target_id=body.uuid,
        payload={"trial": trial.id, "steps": steps} if is_state else {"trial": trial.id, "files": body.files},
    )
    if not is_state:
        for replaced in await outputs_repository.others(session, task_id, body.uuid):
            await mark_deleting(session, clock, replaced)
    notify(session, notifications.COLUMNS)


async def check_delete(
    session: ReadSession, authorization: Authorization, row: CheckpointRow, principal: Principal
) -> None:
    """Raises Forbidden for anyone but the owner of the checkpoint's experiment and admins."""
    if not principal.admin:
        await authorization.check_delete(session, principal, await _owner_of(session, row), f"checkpoint {row.uuid}")


async def check_change(
    session: ReadSession, authorization: Authorization, row: CheckpointRow, principal: Principal
) -> None:
    """Raises Forbidden unless a task changes its own checkpoint, or a user one that they may change."""
    if principal.is_task:
        if row.task_id != principal.task_id:
            raise Forbidden("this task token may not change a checkpoint of another task")
    elif not principal.admin:
        await authorization.check_change(session, principal, await _owner_of(session, row), f"checkpoint {row.uuid}")


async def _owner_of(session: ReadSession, row: CheckpointRow) -> int:
    trial = await repository.find_by_task(session, row.task_id)
    if trial is None:
        raise Forbidden(f"the experiment of checkpoint {row.uuid} is deleted; only an admin may change the checkpoint")
    return await repository.owner_of(session, trial.id)


async def mark_deleting(session: WriteSession, clock: Clock, row: CheckpointRow) -> None:
    """Moves a checkpoint to DELETING and takes it out of its trial's totals. Its files are removed after the commit."""
    if row.state in (CheckpointState.DELETED, CheckpointState.DELETING):
        return
    trial = await repository.find_by_task(session, row.task_id)
    notify(session, notifications.RETENTION)
    was_counted = row.state is not CheckpointState.DELETE_FAILED
    await checkpoint_rows.move(session, clock, row, CheckpointState.DELETING, delete_error=None, removal_task_id=None)
    if trial is None or not was_counted:
        return
    newest = await checkpoint_rows.newest_completed(session, row.task_id)
    await repository.change(
        session,
        trial,
        latest_checkpoint=newest.uuid if newest else None,
        checkpoint_count=max(0, trial.checkpoint_count - (row.role is CheckpointRole.STATE)),
        checkpoint_size=max(0, trial.checkpoint_size - row.size),
        values_stale=True,
    )
    notify(session, notifications.COLUMNS)


async def set_resources(session: WriteSession, clock: Clock, row: CheckpointRow, resources: dict[str, int]) -> None:
    """Stores the remaining files of a checkpoint, and what that changes for its trial."""
    count, size = _counted(row)
    await checkpoint_rows.set_resources(session, clock, row, resources)
    trial = await repository.find_by_task(session, row.task_id)
    if trial is None:
        return
    new_count, new_size = _counted(row)
    newest = await checkpoint_rows.newest_completed(session, row.task_id)
    await repository.change(
        session,
        trial,
        latest_checkpoint=newest.uuid if newest else None,
        checkpoint_count=max(0, trial.checkpoint_count + new_count - count),
        checkpoint_size=max(0, trial.checkpoint_size + new_size - size),
        values_stale=True,
    )
    notify(session, notifications.COLUMNS)


def _counted(row: CheckpointRow) -> tuple[int, int]:
    """Returns what a checkpoint adds to its trial's number of checkpoints and to their size."""
    if row.state not in (CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED):
        return 0, 0
    return int(row.role is CheckpointRole.STATE), row.size


def _own_task(body: CheckpointReport, principal: Principal) -> str:
    if principal.task_id is None:
        raise Forbidden("only the trial's own task may report a checkpoint, with its task token")
    if body.task_id and body.task_id != principal.task_id:
        raise Forbidden("this task token may not report a checkpoint of another task")
    if body.allocation_id and body.allocation_id != principal.allocation_id:
        raise Forbidden("this task token may not report a checkpoint of another allocation")
    return principal.task_id
