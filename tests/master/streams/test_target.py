"""Which container of a task a stream goes to."""

import pytest

from determined.states import ContainerState
from determined_master.allocations.rendezvous_queries import MeetingContainer
from determined_master.streams.target import container_of


def container(name: str, rank: int, slots: int) -> MeetingContainer:
    return MeetingContainer(name, f"agent-{name}", rank, list(range(slots)), ContainerState.RUNNING, "127.0.0.1")


TWO = [container("a", 0, 2), container("b", 1, 3)]


@pytest.mark.parametrize(("rank", "name"), [(0, "a"), (1, "a"), (2, "b"), (4, "b"), (5, None)])
def test_each_slot_is_a_rank_in_the_order_of_the_containers(rank: int, name: str | None):
    chosen = container_of(TWO, rank)
    assert (chosen.id if chosen else None) == name


def test_a_task_without_slots_has_rank_0_only():
    assert container_of([container("a", 0, 0)], 0) is not None
    assert container_of([container("a", 0, 0)], 1) is None
