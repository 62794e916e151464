"""The order in which running allocations would leave, while they come and go."""

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
def test_the_order_is_that_of_those_that_are_there(steps, garbage, near):
    """Each step adds an allocation, or removes it if it is there; it may come back with another rank or its former."""
    present = {}
    kept = Victims(present)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(victims, "MIN_GARBAGE", garbage)
        patch.setattr(victims, "NEAR", near)
        for number, priority, age in steps:
            name = f"r{number}"
            if name in present:
                del present[name]
                kept.remove(name)
            else:
                present[name] = running(name, {"a": [0]}, priority, age)
                kept.add(present[name])
            order = sorted(present.values(), key=lambda r: r.key, reverse=True)
            assert list(kept.worse_than(())) == order
            assert len(kept) == len(order)
            middle = (priority, float(age), -1.0)
            worse = [r for r in order if r.rank > middle]
            assert list(kept.worse_than(middle)) == worse
            others = [r for r in worse if r.allocation_id != name]
            assert list(kept.worse_than(middle, without={name})) == others
            assert kept.hold(len(others), middle, without={name}) == bool(others)
            assert not kept.hold(len(others) + 1, middle, without={name})
            if age == 0:
                assert kept.worst_rank() == (order[0].rank if order else None)


def test_one_that_comes_back_is_there_once(monkeypatch):
    monkeypatch.setattr(victims, "NEAR", 1)
    first = running("r", {"a": [0]}, 42, 1)
    present = {"r": first, "s": replace(first, allocation_id="s")}
    kept = Victims(present)
    kept.add(present["s"])
    for _ in range(3):
        kept.add(first)
        assert [r.allocation_id for r in kept.worse_than(())] == ["s", "r"]
        kept.remove("r")
    assert [r.allocation_id for r in kept.worse_than(())] == ["s"]
