"""SQL for trials that lag behind their experiment: it was paused, activated or stopped, and they have not followed."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, or_, select

from determined.states import AllocationState, ExperimentState, TrialState
from determined_master.allocations.queue_repository import RUNNING
from determined_master.allocations.repository import LIVE
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.trials.repository import LOT
from determined_master.trials.states import following_state, starts_of

LOT_WITH_SLOTS = 25
"""Trials that hold slots: each takes several statements, and its agents are told."""
_HOLDS_SLOTS = (
    select(AllocationRow.id).where(AllocationRow.task_id == TrialRow.task_id, AllocationRow.state.in_(RUNNING)).exists()
)


class LaggingTrial(NamedTuple):
    """A trial that is to move. ``has_slots``: an attempt of it is placed."""

    trial_id: int
    state: TrialState
    has_slots: bool


async def lagging(session: ReadSession, experiment_id: int, to: TrialState) -> list[LaggingTrial]:
    """Returns a lot of the trials that are to follow their experiment to ``to``.

    Those that wait come first: otherwise they would be placed on the slots that the others leave.
    """
    waiting = await _some(session, experiment_id, to, ~_HOLDS_SLOTS, LOT)
    found = [LaggingTrial(trial_id, state, has_slots=False) for trial_id, state in waiting]
    if len(found) < LOT:
        others = await _some(session, experiment_id, to, _HOLDS_SLOTS, LOT_WITH_SLOTS)
        found += [LaggingTrial(trial_id, state, has_slots=True) for trial_id, state in others]
    return found


def may_be_more(found: Sequence[LaggingTrial]) -> bool:
    """Returns True if ``found`` is a whole lot."""
    with_slots = sum(each.has_slots for each in found)
    return len(found) - with_slots == LOT or with_slots == LOT_WITH_SLOTS


async def _some(
    session: ReadSession, experiment_id: int, to: TrialState, condition: ColumnElement[bool], most: int
) -> list[tuple[int, TrialState]]:
    query = (
        select(TrialRow.id, TrialRow.state)
        .where(TrialRow.experiment_id == experiment_id, TrialRow.is_live(), TrialRow.state.in_(starts_of(to)))
        .where(condition)
        .limit(most)
    )
    return [(trial_id, state) for trial_id, state in await session.execute(query)]


async def experiments(session: ReadSession) -> list[int]:
    """Returns the experiments whose trials may lag behind them, after a restart."""
    states = [state for state in ExperimentState if following_state(state) is not None]
    is_behind = or_(
        ExperimentRow.state.not_in([ExperimentState.ACTIVE, ExperimentState.PAUSED]), *map(_may_lag, _LASTING)
    )
    query = select(ExperimentRow.id).where(ExperimentRow.state.in_(states), is_behind)
    return list((await session.scalars(query.order_by(ExperimentRow.id))).all())


_LASTING = (ExperimentState.ACTIVE, ExperimentState.PAUSED)


def _may_lag(state: ExperimentState) -> ColumnElement[bool]:
    to = following_state(state)
    starts = starts_of(to) if to is not None else []
    of_it = select(TrialRow.id).where(TrialRow.experiment_id == ExperimentRow.id, TrialRow.is_live())
    return (ExperimentRow.state == state) & of_it.where(TrialRow.state.in_(starts)).exists()


async def live_allocations(
    session: ReadSession, trial_ids: Collection[int], state: TrialState
) -> list[tuple[str, AllocationState]]:
    """Returns id and state of each live allocation of those of the trials that are in ``state``."""
    query = (
        select(AllocationRow.id, AllocationRow.state)
        .join(TrialRow, TrialRow.task_id == AllocationRow.task_id)
        .where(TrialRow.id.in_(trial_ids), TrialRow.state == state, AllocationRow.state.in_(LIVE))
    )
    return [(allocation_id, of) for allocation_id, of in await session.execute(query)]
