"""Reasons for waiting, in words for the owner of the request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from determined_master.scheduling.fitting import is_room
from determined_master.scheduling.scheduling_decision import SchedulingDecision
from determined_master.scheduling.view import AgentView, RequestView

if TYPE_CHECKING:
    from determined_master.scheduling.pool_state import PoolState


class StuckRequest(NamedTuple):
    """A request that waits for slots, and the agents of which it could use some."""

    request: RequestView
    usable: frozenset[str]


@dataclass(frozen=True)
class Summary:
    """What a decision leaves behind for those that wait."""

    placed: frozenset[str]
    idle: int
    """Free slots of placeable agents that nobody has reserved."""
    fitting: frozenset[object]
    """Keys of the shapes that would fit if no better request waited."""
    stuck: tuple[StuckRequest, ...]
    """In the order of the queue."""
    total: int
    """Slots of all agents."""
    absent: int
    """Number of agents that are disabled or disconnected."""
    leaving: tuple[str, ...]
    """When and why agents end by themselves on which nothing is placed any more."""
    unusable: tuple[str, ...]
    """Why slots of the other agents cannot be assigned."""
    reserved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Request → allocations that have to leave before it starts."""
    of_job: dict[str, int] = field(default_factory=dict)
    """Slots that the decision gives to each job."""
    of_user: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, decision: SchedulingDecision) -> Summary:
        queues, agents, given = decision.pool.queue.shapes.values(), decision.pool.agents.values(), decision.given
        return cls(
            placed=frozenset(decision.placed),
            idle=decision.room.index.total,
            fitting=frozenset(queue.key for queue in queues if is_room(queue.shape, decision.room)),
            stuck=tuple(
                StuckRequest(request, decision.pool.usable_by(queue))
                for request, queue in sorted(decision.stuck, key=lambda pair: pair[0].order)
            ),
            total=sum(agent.total for agent in agents),
            absent=sum(not agent.placeable and agent.condition != "leaving" for agent in agents),
            leaving=tuple(f"{a.id} leaves {a.leaves}" for a in sorted(agents, key=_id) if a.condition == "leaving"),
            unusable=tuple(
                reason
                for agent in sorted((a for a in agents if a.placeable and a.unusable), key=_id)
                for reason in agent.unusable
            ),
            reserved={r: _leaving_for(decision, r) for r in decision.reserved},
            of_job=dict(given.of_job),
            of_user=dict(given.of_user),
        )


def reason(state: PoolState, summary: Summary, request: RequestView, ahead: int | None = None) -> str:
    """Returns why the request waits. ``ahead``: its place in the queue, if the caller knows it."""
    if not state.agents:
        return f"pool {state.name!r} has no agent yet{_launches(state)}"
    if request.allocation_id in summary.reserved:
        return _leaving([state.running[each].name for each in summary.reserved[request.allocation_id]])
    slots = request.slots
    more_of_job = summary.of_job.get(request.job_id, 0)
    more_of_user = summary.of_user.get(request.user_id, 0)
    if state.is_held(request, slots, more_of_job, more_of_user):
        return _limit(state, request, slots, more_of_job, more_of_user)
    queue = state.queue.line_of(request.allocation_id).shape_queue
    if queue.key in summary.fitting:
        better = blocker(state, summary, request)
        if better is not None:
            return _behind(better.request, request)
    if slots == 0:
        return _no_room(state, summary, request)
    return _no_slots(state, summary, request, state.queue.count_before(request.order) if ahead is None else ahead)


def _id(agent: AgentView) -> str:
    return agent.id


def blocker(state: PoolState, summary: Summary, request: RequestView) -> StuckRequest | None:
    """Returns the best request that waits for slots which this one could use too."""
    usable = state.usable_by(state.queue.line_of(request.allocation_id).shape_queue)
    has_slots = request.slots > 0
    for stuck in summary.stuck:
        if stuck.request.order >= request.order and state.scheduler.kind == "priority":
            return None
        same_kind = (stuck.request.slots > 0) == has_slots and stuck.request is not request
        if same_kind and not usable.isdisjoint(stuck.usable):
            return stuck
    return None


def _leaving_for(decision: SchedulingDecision, allocation_id: str) -> tuple[str, ...]:
    """Returns the allocations released for a request, or else all that are leaving its agents."""
    leaving = decision.pool.leaving
    named = [r for r, release in decision.releases.items() if release.for_allocation_id == allocation_id]
    named += [r for r, running in leaving.items() if running.leaving_for == allocation_id]
    if not named:
        agents = decision.reserved[allocation_id].agents
        running = [*leaving.values(), *(decision.pool.running[r] for r in decision.releases)]
        named = [r.allocation_id for r in running if any(part.agent_id in agents for part in r.parts)]
    return tuple(sorted(named))


def _leaving(names: Sequence[str]) -> str:
    if not names:
        return "starts when a better request has started"
    text = f"starts when {names[0]} has saved and left"
    return text + (f" ({len(names) - 1} more like it)" if len(names) > 1 else "")


def _limit(state: PoolState, request: RequestView, slots: int, more_of_job: int, more_of_user: int) -> str:
    of_job = state.held.of_job.get(request.job_id, 0) + more_of_job
    if request.max_slots is not None and of_job + slots > request.max_slots:
        limit = f"max_slots {request.max_slots} of its job"
        return (
            f"needs {_slots(slots)}, and {limit} leaves {max(0, request.max_slots - of_job)}; raise max_slots or wait"
        )
    of_user = state.held.of_user.get(request.user_id, 0) + more_of_user
    allowed = state.scheduler.max_slots_per_user or 0
    return (
        f"needs {_slots(slots)}; pool {state.name!r} allows a user {allowed}, and its owner holds {of_user}: "
        "it starts when others of them end"
    )


def _behind(better: RequestView, request: RequestView) -> str:
    if better.priority < request.priority:
        return f"queued behind {better.name}, which has a higher priority ({better.priority})"
    return f"queued behind {better.name}, which comes first and waits for the same slots"


def _no_room(state: PoolState, summary: Summary, request: RequestView) -> str:
    pinned = request.groups[0].constraints.agent_id
    if pinned is not None:
        only = state.agents.get(pinned)
        if only is None or not only.is_connected:
            return f"its agent {pinned} is not connected"
        return f"agent {only.id} runs the maximum number of containers without slots (max_zero_slot_containers)"
    absent = summary.absent
    if absent + len(summary.leaving) == len(state.agents):
        condition = "disabled or disconnected" if absent else "leaving"
        return f"every agent of pool {state.name!r} is {condition}{_more_like(summary.leaving)}{_launches(state)}"
    text = f"every agent of pool {state.name!r} runs the maximum number of containers without slots "
    text += "(max_zero_slot_containers)" + (f"; {absent} disabled or disconnected" if absent else "")
    return text + _launches(state)


def _no_slots(state: PoolState, summary: Summary, request: RequestView, ahead: int) -> str:
    constraints = [group.constraints for group in request.groups if group.slots]
    for constraint in constraints:
        pinned = constraint.agent_id
        if pinned is not None and (pinned not in state.agents or not state.agents[pinned].is_connected):
            return f"its agent {pinned} is not connected"
    text = f"needs {_slots(request.slots)}"
    text += " on one agent" if any(c.single_agent for c in constraints) else ""
    text += f"; {summary.idle} of {summary.total} free in pool {state.name!r}"
    if ahead:
        text += f"; {ahead} ahead"
    if summary.absent:
        text += f"; {summary.absent} agent{'s' if summary.absent != 1 else ''} disabled or disconnected"
    excluded = frozenset[str]().union(*(c.excluded_agents for c in constraints)) & state.agents.keys()
    if excluded:
        text += f"; {', '.join(sorted(excluded))} excluded by its log policies"
    return text + _more_like(summary.leaving) + _more_like(summary.unusable) + _launches(state)


def _more_like(sentences: Sequence[str]) -> str:
    """Returns the first sentence and how many others there are, to be appended to a reason."""
    if not sentences:
        return ""
    return f"; {sentences[0]}" + (f" ({len(sentences) - 1} more like it)" if len(sentences) > 1 else "")


def _launches(state: PoolState) -> str:
    """Returns what the provider of the pool does about it, to be appended to a reason; empty if there is none."""
    provided = state.scheduler.provider_can_add
    if provided is None:
        return ""
    launches, text = provided.launches, ""
    if launches.starting and launches.starting_since is not None:
        agents = "an agent is" if launches.starting == 1 else f"{launches.starting} agents are"
        text += f"; {agents} starting (since {launches.starting_since:%Y-%m-%dT%H:%M:%SZ})"
        text += f": {launches.waiting}" if launches.waiting else ""
        if launches.start_estimate is not None:
            text += f", start estimated for {launches.start_estimate:%Y-%m-%d %H:%M} UTC"
    if launches.failures:
        count = "" if launches.failures == 1 else f" {launches.failures} times in a row"
        text += f"; the launch of an agent failed{count}: {launches.failure}"
    if launches.existing >= launches.max_agents:
        text += f"; the pool is at its maximum of {launches.max_agents} agent{'s' if launches.max_agents != 1 else ''}"
    return text + (f"; an agent cannot be ended: {launches.stuck}" if launches.stuck else "")


def _slots(count: int) -> str:
    return f"{count} slot{'s' if count != 1 else ''}"
