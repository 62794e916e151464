"""Counts the attempts of a trial that had an agent's whole time, ended with it and saved no checkpoint.

Such a trial would start for ever, each time from the same step.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from determined.states import ExitReason
from determined_master.allocations import departure_queries
from determined_master.checkpoints import repository as checkpoints
from determined_master.db.models import AllocationRow, TrialRow
from determined_master.db.session import ReadSession

LOST_SECONDS = 60.0
"""A lost agent that was to end within this time has ended because of that: no master asked its trials to save."""
MIN_SHARE = 0.5
"""An attempt had the whole time if it ran for this part of it: its start takes a while, and it is asked to save when up
to a third is left."""


@dataclass(frozen=True)
class WholeLimits:
    """``count`` includes the attempt that has just ended. ``whole``: the time of its agent."""

    count: int = 0
    whole: timedelta = timedelta()

    @property
    def cause(self) -> str:
        """Returns why the trial does not go on.

        >>> WholeLimits(2, timedelta(minutes=10)).cause
        '2 attempts in a row had the whole time of their agents (10 min) and saved no checkpoint: save more often, or \
give the agents more time'
        """
        minutes = round(self.whole.total_seconds() / 60)
        time = f"{minutes} min" if minutes else f"{self.whole.total_seconds():.0f} s"
        return (
            f"{self.count} attempts in a row had the whole time of their agents ({time}) and saved no checkpoint: "
            "save more often, or give the agents more time"
        )


async def after(
    session: ReadSession, row: TrialRow, ended: AllocationRow, *, saves_by_itself: bool = False
) -> WholeLimits:
    """Returns the count after an attempt of the trial has ended.

    ``saves_by_itself``: its script was asked by a signal (``pause``); what it saves is not known here, so an attempt
    that left in time has saved.
    """
    before = row.limits_without_checkpoint
    if saves_by_itself and ended.exit_reason is ExitReason.PREEMPTED:
        return WholeLimits()
    has_left = ended.agent_left or ended.exit_reason is ExitReason.AGENT_LOST
    if ended.exit_reason is ExitReason.COMPLETED or not (has_left or before):
        return WholeLimits(before)
    if await checkpoints.has_saved(session, ended.task_id, ended.id):
        return WholeLimits()
    if has_left and ended.placed_at is not None and ended.ended_at is not None:
        for agent in await departure_queries.of_attempt(session, ended.id):
            if agent.leaves_at is not None and (ended.agent_left or _is_near(agent.leaves_at, ended.ended_at)):
                whole = agent.leaves_at - agent.registered_at
                if ended.ended_at - ended.placed_at >= whole * MIN_SHARE:
                    return WholeLimits(before + 1, whole)
    return WholeLimits(before)


def _is_near(leaves_at: datetime, ended_at: datetime) -> bool:
    return (leaves_at - ended_at).total_seconds() < LOST_SECONDS
