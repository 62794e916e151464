"""The order in which running allocations would be preempted, while they start and end."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.pools import running

from determined_master.scheduling import victims
from determined_master.scheduling.victims import Victims


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), st.integers(0, 2)), max_size=60),
    st.integers(0, 3),
    st.integers(1, 4),
)
def test_victims_are_ordered_like_a_sorted_list_of_those_present(steps, garbage, near):
    """Each step adds an allocation, or removes it if it is present. It may be added again with another rank or the
    same."""
    present = {}
    ordered = Victims(present)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(victims, "MIN_GARBAGE", garbage)
        patch.setattr(victims, "NEAR", near)
        for number, priority, age in steps:
            name = f"r{number}"
            if name in present:
                del present[name]
                ordered.remove(name)
            else:
                present[name] = running(name, {"a": [0]}, priority, age)
                ordered.add(present[name])
            order = sorted(present.values(), key=lambda r: r.key, reverse=True)
            assert list(ordered.worse_than(())) == order
            assert len(ordered) == len(order)
            middle = (priority, float(age), -1.0)
            worse = [r for r in order if r.rank > middle]
            assert list(ordered.worse_than(middle)) == worse
            other_allocations = [r for r in worse if r.allocation_id != name]
            assert list(ordered.worse_than(middle, without={name})) == other_allocations
            assert ordered.hold(len(other_allocations), middle, without={name}) == bool(other_allocations)
            assert not ordered.hold(len(other_allocations) + 1, middle, without={name})
            if age == 0:
                assert ordered.worst_rank() == (order[0].rank if order else None)


def test_a_victim_that_is_added_again_is_listed_once(monkeypatch):
    monkeypatch.setattr(victims, "NEAR", 1)
    first = running("r", {"a": [0]}, 42, 1)
    present = {"r": first, "s": replace(first, allocation_id="s")}
    ordered = Victims(present)
    ordered.add(present["s"])
    for _ in range(3):
        ordered.add(first)
        assert [r.allocation_id for r in ordered.worse_than(())] == ["s", "r"]
        ordered.remove("r")
    assert [r.allocation_id for r in ordered.worse_than(())] == ["s"]
