"""SQL of checkpoint retention: the candidates of an experiment, and the checkpoints whose files have to go."""

from collections.abc import Sequence

from sqlalchemy import and_, func, select, update

from determined.states import CheckpointState, TaskState
from determined_master.checkpoints.backend_repository import StoredCheckpoint, stored
from determined_master.checkpoints.repository import IS_STATE
from determined_master.checkpoints.retention import Candidate
from determined_master.db.models import CheckpointRow, ExperimentRow, MetricRow, TaskRow, TrialRow
from determined_master.db.session import ReadSession, WriteSession

_ENDED = [state for state in TaskState if state.is_terminal]


async def due(session: ReadSession) -> Sequence[int]:
    """Returns the experiments whose policy has to be applied."""
    query = select(ExperimentRow.id).where(ExperimentRow.retention_due).order_by(ExperimentRow.id)
    return (await session.scalars(query)).all()


async def clear_due(session: WriteSession, experiment_id: int) -> None:
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
            IS_STATE,
            CheckpointRow.state == CheckpointState.COMPLETED,
            CheckpointRow.uuid.not_in(started_from),
        )
        .order_by(CheckpointRow.steps_completed, CheckpointRow.report_time, CheckpointRow.uuid, MetricRow.id)
    )
    found = {row[0]: Candidate(row[0], row[1], row[2], row[3], row[4] or 0) for row in await session.execute(query)}
    return list(found.values())


async def to_remove(session: ReadSession, after: str, most: int) -> Sequence[StoredCheckpoint]:
    """Returns up to ``most`` checkpoints in state DELETING that no task removes, by id, those after ``after``."""
    mine = and_(
        CheckpointRow.state == CheckpointState.DELETING,
        CheckpointRow.removal_task_id.is_(None),
        CheckpointRow.uuid > after,
    )
    return await stored(session, mine, most)


async def assign_to_task(session: WriteSession, uuids: Sequence[str], task_id: str) -> None:
    """Records that a task removes the files of these checkpoints."""
    theirs = CheckpointRow.uuid.in_(uuids)
    await session.execute(update(CheckpointRow).where(theirs).values(removal_task_id=task_id))


async def orphaned_removals(session: ReadSession, most: int) -> Sequence[tuple[CheckpointRow, TaskRow]]:
    """Returns checkpoints in state DELETING whose task has ended without a word about them."""
    query = (
        select(CheckpointRow, TaskRow)
        .join(TaskRow, TaskRow.id == CheckpointRow.removal_task_id)
        .where(CheckpointRow.state == CheckpointState.DELETING, TaskRow.state.in_(_ENDED))
        .order_by(CheckpointRow.uuid)
        .limit(most)
    )
    return [(checkpoint, task) for checkpoint, task in await session.execute(query)]


async def forget_failures(session: WriteSession, experiment_id: int) -> None:
    """Forgets which tasks failed to remove checkpoints of an experiment, so that its deletion tries them again."""
    tasks = select(TrialRow.task_id).where(TrialRow.experiment_id == experiment_id)
    failed = (CheckpointRow.task_id.in_(tasks), CheckpointRow.state == CheckpointState.DELETE_FAILED)
    await session.execute(update(CheckpointRow).where(*failed).values(removal_task_id=None))


async def removal_progress(session: ReadSession, experiment_id: int) -> tuple[int, Sequence[str]]:
    """Returns how many checkpoints of an experiment are in state DELETING, and the tasks that remove them."""
    mine = (TrialRow.experiment_id == experiment_id, CheckpointRow.state == CheckpointState.DELETING)
    query = (
        select(CheckpointRow.removal_task_id, func.count().label("number"))
        .join(TrialRow, TrialRow.task_id == CheckpointRow.task_id)
        .where(*mine)
        .group_by(CheckpointRow.removal_task_id)
    )
    found = {row.removal_task_id: row.number for row in await session.execute(query)}
    return sum(found.values()), sorted(task_id for task_id in found if task_id is not None)
