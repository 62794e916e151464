"""Repeated reports of agents, and when they are compared with the database again."""

import pytest

from determined.link.messages import ReportedContainer, ReportedState, SlotStatus
from determined.states import ContainerState
from determined_master.agents.registry import COMPARED_AGAIN_SECONDS, Link


def report(*, sent_at=1.0, state=ContainerState.RUNNING, slots=()):
    container = ReportedContainer(container_id="c", allocation_id="a", state=state)
    return ReportedState(containers=[container], slots=list(slots), sent_at=sent_at).model_dump_json()


@pytest.fixture
def link():
    created = Link("agent", None)
    created.compared(report(), 100.0, changed=False)
    return created


def test_the_same_report_at_another_time_is_repeated(link):
    assert link.is_repeated(report(sent_at=3.5), 102.0)


@pytest.mark.parametrize(
    "other",
    [report(state=ContainerState.TERMINATED), report(slots=[SlotStatus(id=0, status="unhealthy")])],
    ids=["container", "slot"],
)
def test_a_report_with_another_state_is_not_repeated(link, other):
    assert not link.is_repeated(other, 102.0)


def test_a_repeated_report_is_compared_again_after_a_while(link):
    assert not link.is_repeated(report(), 100.0 + COMPARED_AGAIN_SECONDS)


def test_a_report_is_compared_again_after_a_change_or_a_new_desired_state(link):
    link.compared(report(), 101.0, changed=True)
    assert not link.is_repeated(report(), 102.0)
    link.compared(report(), 102.0, changed=False)
    link.forget_report()
    assert not link.is_repeated(report(), 103.0)


def test_a_report_of_an_agent_without_a_clock_is_compared_by_all_its_text():
    link = Link("agent", None)
    text = '{"kind":"truth","containers":[]}'
    link.compared(text, 1.0, changed=False)
    assert link.is_repeated(text, 2.0)
    assert not link.is_repeated(text.replace("[]", "[ ]"), 2.0)
