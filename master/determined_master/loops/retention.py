"""Chooses the checkpoints that the policy of an ended experiment does not keep.

Each step is in the database, so a master that is killed goes on where it was: an experiment is due until its
checkpoints are chosen, and a chosen checkpoint is in state DELETING until its files are gone.
"""

import logging
from functools import partial

from determined.link.isolation import Isolation
from determined_master import notifications
from determined_master.checkpoints import repository as checkpoint_rows
from determined_master.checkpoints import retention_repository
from determined_master.checkpoints.removal import BATCH_CHECKPOINTS
from determined_master.checkpoints.retention import Policy, superfluous
from determined_master.db.models import ExperimentRow
from determined_master.db.session import notify
from determined_master.db.statements.batches import batched
from determined_master.events import repository as events
from determined_master.experiments import repository as experiment_rows
from determined_master.trials import checkpoints as trial_checkpoints
from determined_master.wiring.services import Services

logger = logging.getLogger(__name__)


class Retention:
    def __init__(self, services: Services) -> None:
        self._database = services.database
        self._clock = services.clock
        self._items = Isolation("retention", logger)

    async def tick(self) -> float | None:
        async with self._database.read() as session:
            due = await retention_repository.due(session)
        for experiment_id in due:
            await self._items.run("experiment", experiment_id, partial(self._choose, experiment_id))
        return self._items.seconds_left()

    async def _choose(self, experiment_id: int) -> None:
        """Marks what the policy does not keep, in batches; the last one ends the experiment's being due."""
        async with self._database.read() as session:
            row = await experiment_rows.get(session, experiment_id)
            storage = row.config.get("checkpoint_storage", {})
            found = await retention_repository.candidates(session, experiment_id) if row.state.is_ended else []
        chosen = superfluous(found, Policy.of(storage))
        for some in batched(chosen, BATCH_CHECKPOINTS):
            async with self._database.write() as session:
                if not (await experiment_rows.get(session, experiment_id)).state.is_ended:
                    return  # it was continued meanwhile, and needs its checkpoints
                for uuid in some:
                    await trial_checkpoints.mark_deleting(
                        session, self._clock, await checkpoint_rows.get(session, uuid)
                    )
                # With each batch: after a restart, what was marked before is no longer a candidate.
                await events.record(
                    session,
                    self._clock,
                    actor=events.SYSTEM,
                    kind="checkpoints_deleted",
                    target_type="experiment",
                    target_id=experiment_id,
                    payload={"count": len(some)},
                )
        async with self._database.write() as session:
            now = await experiment_rows.find(session, experiment_id)
            if now is not None and _policy_and_end(now) != _policy_and_end(row):
                notify(session, notifications.RETENTION)  # changed meanwhile, so it is due again
                return
            await retention_repository.clear_due(session, experiment_id)
            notify(session, notifications.experiment(experiment_id))


def _policy_and_end(row: ExperimentRow) -> tuple[object, object]:
    """Returns what makes an experiment due."""
    return row.config.get("checkpoint_storage"), row.end_time
