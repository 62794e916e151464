"""The decision when agents close, trials save and the rest ends, for any agents and times."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from determined_master.allocations.departures import (
    END_MARGIN_SECONDS,
    DepartureView,
    LeavingAgent,
    Occupant,
    closing_seconds,
    decide,
    saving_seconds,
)

NOW = datetime(2026, 11, 27, tzinfo=UTC)
seconds = st.floats(0.0, 100_000.0)
occupant_flags = st.just((True, False, False)) | st.tuples(st.booleans(), st.booleans(), st.booleans())
"""``can_save``, ``is_asked`` and ``is_ending``: half of all can be asked, otherwise few examples decide anything."""


def between(least: int, most: int) -> st.SearchStrategy[float]:
    """Draws seconds of the whole range: floats alone are mostly near its ends and near zero."""
    return st.integers(least, most).map(float) | st.floats(least, most)


@st.composite
def views(draw: st.DrawFn) -> DepartureView:
    agents = tuple(
        LeavingAgent(
            f"agent-{number}",
            NOW + timedelta(seconds=draw(between(-20, 900))),
            draw(st.sampled_from([None, 0.0, 60.0, 600.0, 3600.0, 86_400.0])),
            draw(st.booleans()),
        )
        for number in range(draw(st.integers(0, 4)))
    )
    saves = st.none() | between(0, 1000)
    occupants = tuple(
        Occupant(
            f"{number}.1",
            draw(st.sampled_from(agents)).agent_id,
            draw(between(1, 1500)),
            draw(saves),
            *draw(occupant_flags),
        )
        for number in range(draw(st.integers(0, 5)) if agents else 0)
    )
    measured = [each.seconds_to_save for each in occupants if each.seconds_to_save is not None]
    return DepartureView(NOW, agents, occupants, max(measured, default=None))


def one_trial(seconds_left: float) -> DepartureView:
    """Returns an agent of a day with a trial that is to be asked 90 seconds before the agent ends."""
    agent = LeavingAgent("agent-0", NOW + timedelta(seconds=seconds_left), 86_400.0)
    return DepartureView(NOW, (agent,), (Occupant("0.1", agent.agent_id, 3600.0, seconds_to_save=30.0),), 30.0)


def applied(view: DepartureView) -> DepartureView:
    """Returns the view after the decision was carried out."""
    decided = decide(view)
    asked, ended = dict(decided.ask), dict(decided.end)
    return replace(
        view,
        agents=tuple(
            replace(a, is_closed=(a.is_closed or a.agent_id in decided.close) and a.agent_id not in decided.reopen)
            for a in view.agents
        ),
        occupants=tuple(
            replace(
                each,
                is_asked=each.is_asked or each.allocation_id in asked,
                is_ending=each.is_ending or each.allocation_id in ended,
            )
            for each in view.occupants
        ),
    )


@given(views())
def test_a_decision_that_was_carried_out_repeats_nothing(view: DepartureView):
    again = decide(applied(view))
    assert (again.close, again.reopen, again.ask, again.end) == ((), (), (), ())


@given(views())
@example(one_trial(seconds_left=89))
def test_nothing_new_comes_to_an_agent_on_which_a_trial_was_asked_to_save(view: DepartureView):
    closed = {agent.agent_id for agent in applied(view).agents if agent.is_closed}
    assert {agent_id for _, agent_id in decide(view).ask} <= closed


@given(views())
@example(one_trial(seconds_left=91))
@example(one_trial(seconds_left=89))
@example(one_trial(seconds_left=END_MARGIN_SECONDS + 1))
def test_a_trial_is_asked_when_the_time_of_its_save_is_left_and_not_before(view: DepartureView):
    decided, agents = decide(view), {agent.agent_id: agent for agent in view.agents}
    for each in view.occupants:
        agent = agents[each.agent_id]
        left = (agent.leaves_at - NOW).total_seconds()
        lead = saving_seconds(agent, each.seconds_to_save, each.preemption_timeout)
        assert lead <= each.preemption_timeout
        assert agent.limit_seconds is None or lead <= agent.limit_seconds / 3
        may_be_asked = each.can_save and not each.is_asked and not each.is_ending
        if left > max(lead, END_MARGIN_SECONDS) + 0.001 or not may_be_asked:
            assert (each.allocation_id, each.agent_id) not in decided.ask
        elif END_MARGIN_SECONDS + 0.001 < left < lead - 0.001:
            assert (each.allocation_id, each.agent_id) in decided.ask


@given(views())
@example(one_trial(seconds_left=END_MARGIN_SECONDS + 1))
@example(one_trial(seconds_left=END_MARGIN_SECONDS - 1))
def test_what_still_runs_is_ended_just_before_its_agent_and_never_earlier(view: DepartureView):
    decided, agents = decide(view), {agent.agent_id: agent for agent in view.agents}
    for each in view.occupants:
        left = (agents[each.agent_id].leaves_at - NOW).total_seconds()
        is_ended = (each.allocation_id, each.agent_id) in decided.end
        if abs(left - END_MARGIN_SECONDS) > 0.001:
            assert is_ended == (left < END_MARGIN_SECONDS and not each.is_ending)


@given(views())
def test_nothing_is_placed_whose_own_save_takes_longer_than_what_is_left(view: DepartureView):
    for agent in applied(view).agents:
        left = (agent.leaves_at - NOW).total_seconds()
        for each in view.occupants:
            lead = saving_seconds(agent, each.seconds_to_save, each.preemption_timeout)
            assert agent.is_closed or left >= lead - 0.001
        assert agent.is_closed == (left <= closing_seconds(agent, view.longest_save))


@given(views())
def test_between_two_looks_nothing_becomes_due(view: DepartureView):
    view = applied(view)
    wait = decide(view).wait_seconds
    until = 1_000_000.0 if wait is None else max(0.0, wait - 0.001)
    just_before = decide(replace(view, now=NOW + timedelta(seconds=until)))
    assert (just_before.close, just_before.reopen, just_before.ask, just_before.end) == ((), (), (), ())


@given(views(), seconds)
def test_an_agent_whose_departure_is_put_off_is_opened_again(view: DepartureView, longer: float):
    later = timedelta(seconds=200_000 + longer)
    put_off = tuple(replace(agent, leaves_at=agent.leaves_at + later) for agent in applied(view).agents)
    decided = decide(replace(applied(view), agents=put_off))
    assert set(decided.reopen) == {agent.agent_id for agent in put_off if agent.is_closed}
    assert (decided.ask, decided.end) == ((), ())
