"""Deletes experiments in state DELETING: files first, then rows in batches. Drops contexts without references.

Files out of the master's reach are removed by a task (loops/checkpoint_removal.py), for which the deletion waits.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from determined.link.isolation import Isolation
from determined.link.stale_files import stale
from determined.states import ExperimentState
from determined_master.checkpoints import backend_repository
from determined_master.checkpoints import repository as checkpoint_rows
from determined_master.checkpoints.backend_repository import StoredCheckpoint
from determined_master.checkpoints.removal import Step, next_step, split_by_reach
from determined_master.checkpoints.storage import Root, allowed_roots, remove
from determined_master.checkpoints.storage_threads import in_thread
from determined_master.db.session import WriteSession, after_commit
from determined_master.db.statements.batches import batched
from determined_master.events import repository as events
from determined_master.experiment_index import indexer
from determined_master.experiments import code_repository
from determined_master.experiments import repository as experiment_rows
from determined_master.logs import policy_match_repository
from determined_master.logs import repository as log_rows
from determined_master.metric_series import repository as series_repository
from determined_master.tasks import repository as tasks
from determined_master.trials import checkpoints as trial_checkpoints
from determined_master.trials import repository as trial_rows
from determined_master.trials import search_event_repository
from determined_master.wiring.services import Services

logger = logging.getLogger(__name__)

FOLDERS_PER_STEP = 50
MAX_PROBLEMS = 3
"""Maximum number of checkpoints that are named one by one if they cannot be removed."""
MAX_NAMED_FOLDERS = 20

Drop = Callable[[WriteSession, int, int | None], Awaitable[int]]
DROPS: Sequence[tuple[Drop, int]] = (
    (log_rows.drop_some, 5000),
    (policy_match_repository.drop_some, 5000),
    (trial_rows.drop_some_metrics, 1000),
    (series_repository.drop_some_chunks, 200),
    (series_repository.drop_some_series, 5000),
    (series_repository.drop_some_cursors, 5000),
    (search_event_repository.drop_some, 2000),
    (indexer.drop_some, 2000),
    (code_repository.drop_some, 1),
)
"""Functions that delete up to a number of rows of an experiment, in order. Others can write between transactions."""


class Deletion:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._database = services.database
        self._items = Isolation("deletion", logger)

    async def tick(self) -> float | None:
        # First, and without a write: on a full disk this frees space.
        await self._items.run("contexts", "unreferenced", self._drop_contexts)
        async with self._database.read() as session:
            due = await experiment_rows.deleting(session)
        for experiment_id in due:
            await self._items.run("experiment", experiment_id, partial(self._delete, experiment_id))
        return self._items.seconds_left()

    async def _delete(self, experiment_id: int) -> None:
        problems, is_waiting = await self._remove_checkpoints(experiment_id)
        if problems:
            text = _summary(problems)
            logger.error("cannot delete experiment %d: %s", experiment_id, text)
            async with self._database.write() as session:
                row = await experiment_rows.get(session, experiment_id)
                clock = self._services.clock
                await experiment_rows.move(session, clock, row, ExperimentState.DELETE_FAILED, message=text)
            return
        if is_waiting:
            return
        for drop, most in DROPS:
            while await self._drop(drop, experiment_id, most):
                pass
        await self._finish(experiment_id)

    async def _remove_checkpoints(self, experiment_id: int) -> tuple[list[str], bool]:
        """Removes the files of all checkpoints and the rows of those that are gone.

        Returns why others remain, and True while tasks still remove some and none has failed.
        """
        async with self._database.read() as session:
            checkpoints = await backend_repository.of_experiment(session, experiment_id)
        roots = allowed_roots(self._services.settings)
        near, far = await split_by_reach(checkpoints, roots)
        problems, is_waiting = await self._delegate([each.uuid for each in far])
        for some in batched(near, FOLDERS_PER_STEP):
            removal = await in_thread(_remove_folders, some, roots)
            problems += [f"checkpoint {uuid}: {why}" for uuid, why in removal.failed.items()]
            async with self._database.write() as session:
                await checkpoint_rows.drop(session, [each.uuid for each in some if each.uuid not in removal.failed])
                if removal.left:
                    await self._record_left(session, experiment_id, removal.left)
        return problems, is_waiting

    async def _delegate(self, uuids: Sequence[str]) -> tuple[list[str], bool]:
        """Marks checkpoints, so that tasks remove their files, and drops the rows of those that are gone.

        Returns why others remain, and True while some are not settled. Failures are returned once all are settled.
        """
        problems, is_waiting = [], False
        for some in batched(uuids, FOLDERS_PER_STEP):
            async with self._database.read() as session:
                rows = await checkpoint_rows.get_many(session, some)
            steps = {row.uuid: next_step(row.state, row.removal_task_id) for row in rows}
            is_waiting = is_waiting or not {Step.ASK, Step.WAIT}.isdisjoint(steps.values())
            problems += [f"checkpoint {row.uuid}: {row.delete_error}" for row in rows if steps[row.uuid] is Step.FAIL]
            if {Step.ASK, Step.DROP}.isdisjoint(steps.values()):
                continue
            async with self._database.write() as session:
                for row in rows:
                    if steps[row.uuid] is Step.ASK:
                        current = await checkpoint_rows.get(session, row.uuid)
                        await trial_checkpoints.mark_deleting(session, self._services.clock, current)
                await checkpoint_rows.drop(session, [uuid for uuid, step in steps.items() if step is Step.DROP])
        return ([], True) if is_waiting else (problems, False)

    async def _record_left(self, session: WriteSession, experiment_id: int, left: Sequence[str]) -> None:
        """Records the folders that the master may not touch. Only the log lists all of them: their rows are deleted."""
        logger.warning("experiment %d: some folders could not be deleted: %s", experiment_id, "; ".join(left))
        await events.record(
            session,
            self._services.clock,
            actor=events.SYSTEM,
            kind="folders_left",
            target_type="experiment",
            target_id=experiment_id,
            payload={"count": len(left), "folders": list(left[:MAX_NAMED_FOLDERS])},
        )

    async def _drop(self, drop: Drop, experiment_id: int, most: int) -> int:
        async with self._database.write() as session:
            return await drop(session, experiment_id, most)

    async def _finish(self, experiment_id: int) -> None:
        """Deletes the remaining rows, which were added during the deletion, in one small transaction."""
        async with self._database.read() as session:
            trial_ids = await trial_rows.ids_of_experiment(session, experiment_id)
        async with self._database.write() as session:
            row = await experiment_rows.get(session, experiment_id)
            after_commit(session, partial(self._services.metrics.forget, trial_ids))
            await experiment_rows.move(session, self._services.clock, row, ExperimentState.DELETED)
            for drop, _ in DROPS:
                await drop(session, experiment_id, None)
            await indexer.drop(session, experiment_id)
            await backend_repository.drop_unused(session)

    async def _drop_contexts(self) -> None:
        """Removes contexts that no experiment and no live task names, and aborted uploads, by age and total size."""
        async with self._database.read() as session:
            named = await experiment_rows.referenced_contexts(session) | await tasks.live_contexts(session)
        settings = self._services.settings
        blobs = self._services.blobs
        found = await asyncio.to_thread(blobs.all)
        now = self._services.clock.now().timestamp()
        for entry in stale(
            (one for one in found if one.name not in named),
            now,
            max_age=settings.stale_file_seconds,
            max_bytes=settings.stale_file_bytes,
        ):
            await asyncio.to_thread(blobs.drop, entry)


@dataclass
class _Removal:
    """Result of removals: why folders were left (they are out of reach) and which removals failed, by checkpoint."""

    left: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def _remove_folders(checkpoints: Sequence[StoredCheckpoint], roots: Sequence[Root]) -> _Removal:
    """Removes the folders of checkpoints. Blocking. One failure does not stop the others."""
    removal = _Removal()
    for checkpoint in checkpoints:
        try:
            why = remove(checkpoint.storage or {}, checkpoint.uuid, roots)
            if why is not None:
                removal.left.append(why)
        except Exception as error:  # any error is shown to the user, who can try again
            removal.failed[checkpoint.uuid] = str(error) or type(error).__name__
    return removal


def _summary(problems: Sequence[str]) -> str:
    text = "; ".join(problems[:MAX_PROBLEMS])
    more = len(problems) - MAX_PROBLEMS
    return f"{text}; and {more} more" if more > 0 else text
