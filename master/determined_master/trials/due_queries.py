"""SQL for what trials are due for: an attempt, or their end."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import and_, bindparam, or_, select

from determined.states import TrialState
from determined_master.allocations.environment_wait_repository import is_waiting
from determined_master.allocations.repository import LIVE
from determined_master.db.models import AllocationRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.named_columns import columns_of
from determined_master.db.statements.prepared import Prepared


class DueTrial(NamedTuple):
    """A live trial that has no open attempt, or that reported invalid hyperparameters."""

    trial_id: int
    experiment_id: int
    task_id: str
    state: TrialState
    retry_at: datetime | None
    is_invalid: bool
    must_stop: bool
    """True if a metric that is not finite is to end it."""
    has_open: bool
    """True if one of its attempts lives or is not settled."""


class StoppedTrial(NamedTuple):
    """A stopping trial whose attempts are settled."""

    trial_id: int
    experiment_id: int
    task_id: str
    state: TrialState


_LIVE = [s for s in TrialState if s.is_live]
_STOPPING = [s for s in TrialState if s.is_stopping]
_STOPPABLE = (TrialState.ACTIVE, TrialState.PAUSED)
_HAS_OPEN = (
    select(AllocationRow.id)
    .where(
        AllocationRow.task_id == TrialRow.task_id,
        or_(AllocationRow.state.in_(LIVE), AllocationRow.settled.is_(False)),
    )
    .exists()
)
_MAY_REQUEST = and_(TrialRow.state == TrialState.ACTIVE, ~_HAS_OPEN, ~is_waiting(TrialRow.task_id))
"""Of trials that may request slots."""
PAGE_TRIALS = 1000


async def due(session: ReadSession, after: int = 0) -> list[DueTrial]:
    """Returns the trials for which their loop may have something to do, by id, from the id ``after`` on."""
    return [DueTrial._make(row) for row in await _DUE.rows(session, after=after)]


_DUE = Prepared(
    select(
        *columns_of(
            DueTrial,
            trial_id=TrialRow.id,
            experiment_id=TrialRow.experiment_id,
            task_id=TrialRow.task_id,
            state=TrialRow.state,
            retry_at=TrialRow.retry_at,
            is_invalid=TrialRow.invalid_hp,
            must_stop=TrialRow.must_stop,
            has_open=_HAS_OPEN.label("has_open"),
        )
    )
    .where(
        TrialRow.id > bindparam("after"),
        TrialRow.state.in_(_LIVE),
        or_(
            TrialRow.invalid_hp.is_(True),
            and_(TrialRow.must_stop.is_(True), TrialRow.state.in_(_STOPPABLE)),
            and_(TrialRow.closed.is_(False), TrialRow.state.in_(_STOPPING), ~_HAS_OPEN),
            and_(TrialRow.closed.is_(False), _MAY_REQUEST),
        ),
    )
    .order_by(TrialRow.id)
    .limit(PAGE_TRIALS)
)


async def wanting_slots_of(session: ReadSession, trial_ids: Collection[int]) -> Sequence[TrialRow]:
    """Returns those of the trials that still request slots."""
    return await _WANTING.scalars(session, trial_ids=list(trial_ids))


_WANTING = Prepared(
    select(TrialRow).where(TrialRow.id.in_(bindparam("trial_ids", expanding=True)), _MAY_REQUEST).order_by(TrialRow.id)
)


async def stopped(session: ReadSession, trial_ids: Collection[int] | None = None) -> list[StoppedTrial]:
    """Returns the stopping trials, of all or of some, whose attempts have all ended and are settled."""
    query = (
        select(TrialRow.id, TrialRow.experiment_id, TrialRow.task_id, TrialRow.state)
        .where(TrialRow.state.in_(_STOPPING), TrialRow.closed.is_(False), ~_HAS_OPEN)
        .order_by(TrialRow.id)
    )
    if trial_ids is not None:
        query = query.where(TrialRow.id.in_(trial_ids))
    return [StoppedTrial(*row) for row in await session.execute(query)]
