"""SQL of checkpoint retention: the candidates of an experiment, and the checkpoints whose files have to go."""

from collections.abc import Sequence

from sqlalchemy import and_, select, update

from determined.states import CheckpointState
from determined_master.checkpoints.backend_repository import Stored, stored
from determined_master.checkpoints.retention import Candidate
from determined_master.db.models import CheckpointRow, ExperimentRow, MetricRow, TrialRow
from determined_master.db.session import ReadSession, WriteSession


async def due(session: ReadSession) -> Sequence[int]:
    """Returns the experiments whose policy has to be applied."""
    query = select(ExperimentRow.id).where(ExperimentRow.retention_due).order_by(ExperimentRow.id)
    return (await session.scalars(query)).all()


async def settle(session: WriteSession, experiment_id: int) -> None:
    """Records that the policy of an experiment has been applied."""
    await session.execute(update(ExperimentRow).where(ExperimentRow.id == experiment_id).values(retention_due=False))


async def candidates(session: ReadSession, experiment_id: int) -> Sequence[Candidate]:
    """Returns the completed checkpoints of an experiment from which no trial was started, oldest first."""
    started_from = select(TrialRow.warm_start_checkpoint).where(TrialRow.warm_start_checkpoint.is_not(None))
    validation = and_(
        MetricRow.trial_id == TrialRow.id,
        MetricRow.group == "validation",
        MetricRow.steps == CheckpointRow.steps_completed,
        MetricRow.archived.is_(False),
    )
    query = (
        select(CheckpointRow.uuid, TrialRow.id, CheckpointRow.steps_completed, MetricRow.signed_metric, MetricRow.id)
        .join(TrialRow, TrialRow.task_id == CheckpointRow.task_id)
        .outerjoin(MetricRow, validation)
        .where(
            TrialRow.experiment_id == experiment_id,
            CheckpointRow.state == CheckpointState.COMPLETED,
            CheckpointRow.uuid.not_in(started_from),
        )
        .order_by(CheckpointRow.steps_completed, CheckpointRow.report_time, CheckpointRow.uuid, MetricRow.id)
    )
    found = {row[0]: Candidate(row[0], row[1], row[2], row[3], row[4] or 0) for row in await session.execute(query)}
    return list(found.values())


async def doomed(session: ReadSession, most: int) -> Sequence[Stored]:
    """Returns up to ``most`` checkpoints in state DELETING."""
    return await stored(session, CheckpointRow.state == CheckpointState.DELETING, most)
