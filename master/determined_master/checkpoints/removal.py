"""Removes the files of checkpoints in state DELETING, and records what came of it."""

import json
import logging
from collections.abc import Sequence
from enum import Enum, auto

from determined.errors import Forbidden
from determined.states import CheckpointState
from determined.storage.base import is_checkpoint_id
from determined_master import notifications
from determined_master.checkpoints import repository
from determined_master.checkpoints.backend_repository import StoredCheckpoint
from determined_master.checkpoints.storage import Root, refuse_root_out_of_reach, remove
from determined_master.checkpoints.storage_threads import in_thread
from determined_master.clock import Clock
from determined_master.db.models import CheckpointRow
from determined_master.db.session import Database, ReadSession, WriteSession, notify
from determined_master.errors import OutOfReach

logger = logging.getLogger(__name__)

BATCH_CHECKPOINTS = 50
"""Checkpoints that are recorded in one transaction."""


class Step(Enum):
    """What the deletion of an experiment does with a checkpoint out of the master's reach."""

    ASK = auto()
    """Mark it: a task will remove its files."""
    WAIT = auto()
    """Its removal is under way."""
    DROP = auto()
    """Its files are gone: delete its row."""
    FAIL = auto()
    """Its files could not be removed since the deletion was requested."""


def next_step(state: CheckpointState, removal_task_id: str | None) -> Step:
    """Returns the step that follows. A failure before the request has no task any more, see ``forget_failures``.

    >>> next_step(CheckpointState.DELETE_FAILED, "a task"), next_step(CheckpointState.DELETE_FAILED, None)
    (<Step.FAIL: 4>, <Step.ASK: 1>)
    """
    if state is CheckpointState.DELETED:
        return Step.DROP
    if state is CheckpointState.DELETING:
        return Step.WAIT
    if state is CheckpointState.DELETE_FAILED and removal_task_id is not None:
        return Step.FAIL
    return Step.ASK


async def split_by_reach(
    checkpoints: Sequence[StoredCheckpoint], roots: Sequence[Root]
) -> tuple[Sequence[StoredCheckpoint], Sequence[StoredCheckpoint]]:
    """Returns the checkpoints that this master may remove, and those in storage that it does not reach.

    The former include those whose files no task can remove: of a deleted experiment, or with an id that is no UUID.
    """
    reaches: dict[str, bool] = {}
    near: list[StoredCheckpoint] = []
    far: list[StoredCheckpoint] = []
    for checkpoint in checkpoints:
        if checkpoint.storage is None or checkpoint.experiment_id is None or not is_checkpoint_id(checkpoint.uuid):
            near.append(checkpoint)
            continue
        key = json.dumps(checkpoint.storage, sort_keys=True)
        if key not in reaches:
            reaches[key] = await in_thread(_is_in_reach, checkpoint.storage, roots)
        (near if reaches[key] else far).append(checkpoint)
    return near, far


def _is_in_reach(storage: dict[str, object], roots: Sequence[Root]) -> bool:
    try:
        refuse_root_out_of_reach(storage, roots)
    except OutOfReach:
        return False
    return True


async def remove_files(
    database: Database, clock: Clock, roots: Sequence[Root], to_remove: Sequence[StoredCheckpoint]
) -> dict[str, str]:
    """Removes the files of checkpoints and moves each to DELETED or DELETE_FAILED. Files that are gone are no error.

    Parameters:
        roots: folders below which this master deletes.
        to_remove: at most ``BATCH_CHECKPOINTS``.

    Returns:
        Why files were left, by checkpoint.
    """
    failed = await in_thread(_remove_all, to_remove, roots)
    async with database.write() as session:
        for each in to_remove:
            row = await repository.find(session, each.uuid)
            if row is None or row.state is not CheckpointState.DELETING:
                continue  # its experiment was deleted meanwhile
            await record(session, clock, row, failed.get(each.uuid))
    return failed


async def record(session: WriteSession, clock: Clock, row: CheckpointRow, why: str | None) -> None:
    """Moves a checkpoint to DELETED, or with a reason to DELETE_FAILED. Its experiment's deletion may wait for it.

    The list of its files with their sizes stays as a record.
    """
    notify(session, notifications.DELETE)
    if why is None:
        await repository.move(session, clock, row, CheckpointState.DELETED, delete_error=None)
    else:
        logger.warning("cannot remove the files of checkpoint %s: %s", row.uuid, why)
        await repository.move(session, clock, row, CheckpointState.DELETE_FAILED, delete_error=why)


async def handed_to(session: ReadSession, task_id: str, uuids: Sequence[str]) -> Sequence[CheckpointRow]:
    """Returns those of the checkpoints that a task has not reported yet; none whose experiment was deleted meanwhile.

    Raises Forbidden if the task was not asked to remove one of them.
    """
    tasks = []
    for uuid in uuids:
        row = await repository.find(session, uuid)
        if row is None:
            continue
        if row.removal_task_id != task_id:
            raise Forbidden(f"this task was not asked to remove checkpoint {row.uuid}")
        tasks.append(row)
    return [row for row in tasks if row.state is CheckpointState.DELETING]


def _remove_all(to_remove: Sequence[StoredCheckpoint], roots: Sequence[Root]) -> dict[str, str]:
    """Blocking. One failure does not stop the others."""
    failed: dict[str, str] = {}
    for checkpoint in to_remove:
        try:
            why = None if checkpoint.storage is None else remove(checkpoint.storage, checkpoint.uuid, roots)
        except OSError as error:
            why = f"its files could not be removed ({error.strerror or error})"
        except Exception as error:  # any error is shown to the user, who can try again
            why = f"its files could not be removed ({error or type(error).__name__})"
        if why is not None:
            failed[checkpoint.uuid] = why
    return failed
