"""SQL for the decisions of a search: the events of its trials that its search method caused."""

from collections.abc import Sequence

from sqlalchemy import String, cast, func, select

from determined_master.db.models import EventRow, TrialRow
from determined_master.db.session import ReadSession

KINDS = ("created", "kept", "stopped")


async def decisions_of(
    session: ReadSession, experiment_id: int, *, trial_id: int | None = None, most: int | None = None
) -> Sequence[EventRow]:
    """Returns the decisions on an experiment's trials, or on one of them, oldest first; the newest ``most``."""
    trials = select(cast(TrialRow.id, String)).where(TrialRow.experiment_id == experiment_id)
    if trial_id is not None:
        trials = trials.where(TrialRow.id == trial_id)
    query = select(EventRow).where(
        EventRow.target_type == "trial",
        EventRow.target_id.in_(trials),
        # Disables the index of kinds, as in events.repository.moves_of, which also says why there is no ORDER BY.
        func.coalesce(EventRow.kind, "").in_(KINDS),
    )
    if most is not None:
        # Of a long search only the numbers of its decisions are read, not their payloads.
        numbers = sorted((await session.scalars(query.with_only_columns(EventRow.id))).all())
        if len(numbers) > most:
            query = query.where(EventRow.id >= numbers[-most])
    return sorted((await session.scalars(query)).all(), key=lambda row: row.id)
