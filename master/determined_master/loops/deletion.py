"""Deletes experiments that were asked to go: files first, rows after; drops contexts that nothing names any more."""

import logging
from collections.abc import Sequence
from functools import partial

from sqlalchemy.ext.asyncio import AsyncSession

from determined.states import ExperimentState
from determined_master.checkpoints import repository as checkpoint_rows
from determined_master.checkpoints.storage import allowed_roots, remove
from determined_master.db.models import ExperimentRow
from determined_master.db.session import after_commit
from determined_master.events import repository as events
from determined_master.experiment_index import index_upkeep
from determined_master.experiments import repository as experiment_rows
from determined_master.logs import repository as log_rows
from determined_master.metric_series import repository as series_repository
from determined_master.services import Services
from determined_master.trials import repository as trial_rows

logger = logging.getLogger(__name__)

KEEP_UNREFERENCED_SECONDS = 3600.0
MAX_NAMED_FOLDERS = 20


async def tick(services: Services) -> float | None:
    async with services.database.read() as session:
        due = await experiment_rows.deleting(session)
    for row in due:
        await _delete(services, row)
    await _drop_contexts(services)
    return None


async def _delete(services: Services, row: ExperimentRow) -> None:
    async with services.database.read() as session:
        trials = await trial_rows.of_experiment(session, row.id)
        tasks = [t.task_id for t in trials]
        checkpoints = await checkpoint_rows.of_tasks(session, tasks)
    storage, roots, left = row.config["checkpoint_storage"], allowed_roots(services.settings), []
    try:
        for checkpoint in checkpoints:
            if why := remove(storage, checkpoint.uuid, roots):
                left.append(why)
    except Exception:
        logger.exception("experiment %d could not be deleted", row.id)
        async with services.database.write() as session:
            fresh = await experiment_rows.get(session, row.id)
            await experiment_rows.move(session, services.clock, fresh, ExperimentState.DELETE_FAILED)
        return
    async with services.database.write() as session:
        after_commit(session, partial(services.metrics.forget, [t.id for t in trials]))
        await log_rows.drop(session, tasks)
        await checkpoint_rows.drop(session, tasks)
        fresh = await experiment_rows.get(session, row.id)
        await experiment_rows.move(session, services.clock, fresh, ExperimentState.DELETED)
        await trial_rows.drop_metrics(session, row.id)
        await index_upkeep.drop(session, row.id)
        await series_repository.drop(session, [t.id for t in trials])
        if left:
            await _record_left(session, services, row.id, left)


async def _record_left(session: AsyncSession, services: Services, experiment_id: int, left: Sequence[str]) -> None:
    """Names the folders that the master may not touch, in the log all of them: nothing else knows of them now."""
    logger.warning("experiment %d was deleted; folders were left: %s", experiment_id, "; ".join(left))
    await events.record(
        session,
        services.clock,
        actor=events.SYSTEM,
        kind="folders_left",
        target_type="experiment",
        target_id=experiment_id,
        payload={"count": len(left), "folders": list(left[:MAX_NAMED_FOLDERS])},
    )


async def _drop_contexts(services: Services) -> None:
    """An hour after the last reference; a context that was only just sent may be named by the next request."""
    async with services.database.read() as session:
        named = await experiment_rows.referenced_contexts(session)
    now = services.clock.now().timestamp()
    for digest, changed in services.blobs.all():
        if digest not in named and now - changed > KEEP_UNREFERENCED_SECONDS:
            services.blobs.drop(digest)
