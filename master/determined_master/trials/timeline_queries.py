"""Loads the timelines of trials, in one query per kind."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import timedelta

from determined.states import CheckpointState, TrialState
from determined_master.allocations import repository as allocation_rows
from determined_master.checkpoints import repository as checkpoint_rows
from determined_master.db.models import AllocationRow, CheckpointRow, EventRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.events import repository as event_rows
from determined_master.trials.timeline import Attempt, History, Move, SavedCheckpoint

MAX_CHECKPOINTS = 5000
"""Limit for all trials together; the newest are kept."""


async def histories_of(session: ReadSession, rows: Sequence[TrialRow]) -> list[History]:
    tasks = [row.task_id for row in rows]
    moves: dict[str, list[EventRow]] = defaultdict(list)
    for event in await event_rows.moves_of(session, "trial", [str(row.id) for row in rows]):
        moves[event.target_id].append(event)
    tries: dict[str, list[AllocationRow]] = defaultdict(list)
    for allocation in await allocation_rows.of_tasks(session, tasks):
        tries[allocation.task_id].append(allocation)
    saved: dict[str, list[CheckpointRow]] = defaultdict(list)
    newest = await checkpoint_rows.newest_of_tasks(session, tasks, CheckpointState.COMPLETED, MAX_CHECKPOINTS)
    for checkpoint in sorted(newest, key=lambda each: each.report_time):
        saved[checkpoint.task_id].append(checkpoint)
    return [_history(row, moves[str(row.id)], tries[row.task_id], saved[row.task_id]) for row in rows]


ACTIVATION_DELAY = timedelta(seconds=1)


def _moves(row: TrialRow, events: Sequence[EventRow]) -> list[Move]:
    """Returns state changes, without the first if the experiment was activated at creation: nobody saw it paused."""
    moves = [
        Move(each.time, TrialState(each.payload["from"]), TrialState(each.payload["to"]), each.actor) for each in events
    ]
    if moves and moves[0].to is TrialState.ACTIVE and moves[0].time - row.start_time < ACTIVATION_DELAY:
        return moves[1:]
    return moves


def _history(
    row: TrialRow,
    moves: Sequence[EventRow],
    tries: Collection[AllocationRow],
    saved: Collection[CheckpointRow],
) -> History:
    runs = {each.id: each.run_id for each in tries}
    return History(
        trial_id=row.id,
        created=row.start_time,
        state=row.state,
        ended=row.end_time,
        reason=row.exit_reason,
        retry_at=row.retry_at,
        moves=_moves(row, moves),
        tries=[_try(each) for each in tries],
        saved=[
            SavedCheckpoint(each.report_time, each.steps_completed, runs.get(each.allocation_id, 0), each.size)
            for each in saved
        ],
    )


def _try(row: AllocationRow) -> Attempt:
    asked = [time for time in (row.preempt_requested_at, row.kill_requested_at) if time is not None]
    return Attempt(
        run_id=row.run_id,
        created=row.created_at,
        placed=row.placed_at,
        ready=row.ready_at,
        leaving=min(asked, default=None),
        ended=row.ended_at,
        reason=row.exit_reason,
        message=row.message,
        failure=row.failure,
        waiting=row.waiting,
    )
