"""SQL for notes on running trials."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import select

from determined.states import AllocationState
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.metrics import health

MAX_TRIALS = 2000
"""Running trials that are looked at for one page of experiments."""


async def notes(session: ReadSession, experiment_ids: Collection[int], now: datetime) -> dict[int, str]:
    """Returns a note on each experiment of which a running trial is silent, or reported a value that is not finite."""
    query = (
        select(TrialRow.experiment_id, TrialRow.id, TrialRow.health_warning, TrialRow.last_report_at)
        .add_columns(AllocationRow.ready_at, ExperimentRow.config["health"])
        .join(AllocationRow, AllocationRow.task_id == TrialRow.task_id)
        .join(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
        .where(TrialRow.experiment_id.in_(experiment_ids), TrialRow.is_live())
        .where(AllocationRow.state == AllocationState.RUNNING)
        .order_by(TrialRow.id)
        .limit(MAX_TRIALS)
    )
    texts_by_experiment: dict[int, list[str]] = {}
    for experiment_id, trial_id, warning, last, ready, section in await session.execute(query):
        silent = health.silence(last, ready, health.health_of({"health": section}).silent_after, now)
        text = "; ".join(filter(None, (f"trial {trial_id} {silent}" if silent else "", _of(trial_id, warning))))
        if text:
            texts_by_experiment.setdefault(experiment_id, []).append(text)
    return {key: texts[0] + _more(len(texts) - 1) for key, texts in texts_by_experiment.items()}


def _of(trial_id: int, warning: str | None) -> str:
    return f"trial {trial_id}: {warning}" if warning else ""


def _more(count: int) -> str:
    return f" (and {count} more trial{'s' if count > 1 else ''})" if count else ""
