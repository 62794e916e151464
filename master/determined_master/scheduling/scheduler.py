"""The scheduler of one pool: decides from a state that is kept, and says why each request waits."""

from dataclasses import replace
from typing import NamedTuple

from determined_master.scheduling import fair_share, priority, reasons
from determined_master.scheduling.plan import Placement, Refusal, Release, SchedulingPlan
from determined_master.scheduling.pool_state import PoolState
from determined_master.scheduling.scheduling_decision import SchedulingDecision
from determined_master.scheduling.view import PoolView


class Steps(NamedTuple):
    """What to do now."""

    placements: tuple[Placement, ...]
    releases: tuple[Release, ...]


class Scheduler:
    """Owns a state, and the decision and the summary of the last decision. A decision does not cost a look at the whole
    queue. It changes nothing of the state: whoever applied a part of it reports that by ``start`` and ``edit``."""

    def __init__(self, state: PoolState) -> None:
        self.pool = state
        """To be read. While a decision exists, what it gives is not among the free slots."""
        self._decision: SchedulingDecision | None = None
        """The last decision. What it gives stays taken until something else than its own placements is recorded."""
        self._summary: reasons.Summary | None = None

    @classmethod
    def of(cls, pool: PoolView) -> "Scheduler":
        return cls(PoolState.of(pool))

    def edit(self) -> PoolState:
        """Returns the state for a change, or for a look at what is free, after the last decision is undone."""
        if self._decision is not None:
            self._decision.undo()
            self._decision = None
        self._summary = None
        return self.pool

    def start(self, placement: Placement) -> None:
        """Records that a request was placed."""
        state, decision = self.pool, self._decision
        if decision is None or not decision.confirm(placement):
            self.edit().take(placement.parts)
        self._summary = None
        request = state.queue.remove(placement.allocation_id)
        state.run(request.started(placement.parts))

    def steps(self) -> Steps:
        """Returns what to do now."""
        decision = self._new_decision()
        return Steps(decision.placements(), tuple(decision.releases.values()))

    def decide(self) -> SchedulingPlan:
        """Returns what to do now, and the refusals. Reasons for waiting are left out: ``reason_for`` gives them."""
        return SchedulingPlan(*self.steps(), self._refusals())

    def plan(self) -> SchedulingPlan:
        """Returns the decision with the reasons of all that wait, which takes time in proportion to the queue."""
        decision = self._new_decision(is_complete=True)
        summary = self._summary = reasons.Summary.of(decision)
        plan = SchedulingPlan(decision.placements(), tuple(decision.releases.values()), self._refusals())
        refused = {refusal.allocation_id for refusal in plan.refusals}
        order = sorted(self.pool.queue.values(), key=lambda request: request.order)
        waiting = {
            request.allocation_id: reasons.reason(self.pool, summary, request, ahead)
            for ahead, request in enumerate(order)
            if request.allocation_id not in summary.placed and request.allocation_id not in refused
        }
        return replace(plan, waiting=waiting)

    def reason_for(self, allocation_id: str, ahead: int | None = None) -> str:
        """Returns why a request still waits after the decision that is due now, or why the pool can never hold it.
        ``ahead``: its place in the queue, if the caller knows it."""
        queue = self.pool.queue.line_of(allocation_id).shape_queue
        self.pool.usable_by(queue)
        request = self.pool.queue[allocation_id]
        if queue.is_impossible and self._refuses:
            return self.pool.capacity.refusal(queue.shape, request.groups[0].role)
        return reasons.reason(self.pool, self.summary(), request, ahead)

    def summary(self) -> reasons.Summary:
        """Returns what the decision that is due now leaves behind."""
        if self._summary is None:
            self._summary = reasons.Summary.of(self._new_decision(is_complete=True))
        return self._summary

    def _new_decision(self, *, is_complete: bool = False) -> SchedulingDecision:
        state = self.pool
        if self._decision is not None:
            self._decision.undo()
        decision = self._decision = SchedulingDecision(state, is_complete=is_complete)
        for running in state.over_limit():
            decision.release(
                Release(running.allocation_id, None, f"max_slots of its job was lowered to {running.max_slots}")
            )
        if state.agents:
            (fair_share if state.scheduler.kind == "fair_share" else priority).decide_placements(decision)
        return decision

    @property
    def _refuses(self) -> bool:
        """Returns False while nothing is known of the pool."""
        return bool(self.pool.agents) or self.pool.scheduler.provider_can_add is not None

    def _refusals(self) -> tuple[Refusal, ...]:
        state = self.pool
        impossible = state.shapes().impossible
        if not impossible or not self._refuses:
            return ()
        refusals = []
        for queue in impossible:
            for line in queue.lines.values():
                for request in line.requests:
                    text = state.capacity.refusal(queue.shape, request.groups[0].role)
                    refusals.append((request.order, Refusal(request.allocation_id, text)))
        return tuple(refusal for _, refusal in sorted(refusals, key=lambda pair: pair[0]))


def plan(pool: PoolView) -> SchedulingPlan:
    """Returns placements, releases and refusals by the rules of the pool's scheduler, and why each of the others waits.
    Every slot is assigned at most once; running allocations keep their slots unless they are released."""
    return Scheduler.of(pool).plan()
