"""Removes the files of checkpoints in state DELETING, itself or by a task where the master does not reach them.

Each step is in the database, so a master that is killed goes on where it was.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from determined.link.isolation import Isolation
from determined_master.checkpoints import retention_repository
from determined_master.checkpoints.backend_repository import StoredCheckpoint
from determined_master.checkpoints.removal import BATCH_CHECKPOINTS, record, remove_files, split_by_reach
from determined_master.checkpoints.storage import allowed_roots
from determined_master.db.statements.batches import batched
from determined_master.experiments import repository as experiment_rows
from determined_master.jobs import repository as jobs
from determined_master.tasks import checkpoint_removal
from determined_master.users import repository as users
from determined_master.wiring.services import Services

logger = logging.getLogger(__name__)


class CheckpointRemoval:
    def __init__(self, services: Services) -> None:
        self._database = services.database
        self._clock = services.clock
        self._tasks = services.tasks
        self._settings = services.settings
        self._items = Isolation("checkpoint removal", logger)

    async def tick(self) -> float | None:
        await self._record_orphaned()
        roots = allowed_roots(self._settings)
        after = ""
        while True:
            async with self._database.read() as session:
                to_remove = await retention_repository.to_remove(session, after, checkpoint_removal.MAX_CHECKPOINTS)
            near, far = await split_by_reach(to_remove, roots)
            handed: dict[int, list[StoredCheckpoint]] = defaultdict(list)
            for each in far:
                assert each.experiment_id is not None
                handed[each.experiment_id].append(each)
            for experiment_id, some in handed.items():
                if self._items.is_due("experiment", experiment_id):
                    await self._items.run("experiment", experiment_id, partial(self._assign_to_task, some))
            for batch in batched(near, BATCH_CHECKPOINTS):
                await remove_files(self._database, self._clock, roots, batch)
            if len(to_remove) < checkpoint_removal.MAX_CHECKPOINTS:
                return self._items.seconds_left()
            after = to_remove[-1].uuid  # some stay: those for which no task could be started

    async def _assign_to_task(self, checkpoints: Sequence[StoredCheckpoint]) -> None:
        """Starts a task for checkpoints of one experiment that are in one storage."""
        first = checkpoints[0]
        assert first.experiment_id is not None
        async with self._database.write() as session:
            experiment = await experiment_rows.get(session, first.experiment_id)
            owner = await users.get(session, experiment.user_id)
            job = await jobs.get(session, experiment.job_id)
            uuids = [each.uuid for each in checkpoints if each.storage == first.storage]
            row = await checkpoint_removal.start(
                session, self._tasks, experiment, owner, job, first.storage or {}, uuids
            )
            await retention_repository.assign_to_task(session, uuids, row.id)

    async def _record_orphaned(self) -> None:
        """Records that checkpoints remain whose task was killed or failed."""
        while True:
            async with self._database.write() as session:
                found = await retention_repository.orphaned_removals(session, BATCH_CHECKPOINTS)
                for checkpoint, task in found:
                    why = f"the task that removes its files ended before: {task.failure or 'it was killed'}"
                    await record(session, self._clock, checkpoint, f"{why}; its log: det task logs {task.id}")
            if not found:
                return
