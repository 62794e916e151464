"""Every live allocation has ports of its own."""

from hypothesis import given
from hypothesis import strategies as st

from determined_master.allocations.ports import BLOCKS, choose, ports_of


def test_no_port_belongs_to_two_blocks():
    ports = [port for block in range(BLOCKS) for port in ports_of(block).values()]
    assert len(ports) == len(set(ports))
    assert 1024 < min(ports) <= max(ports) < 32768


@given(st.text(min_size=1), st.sets(st.integers(0, BLOCKS - 1), max_size=BLOCKS - 1))
def test_a_free_block_of_ports_is_chosen(allocation_id, taken):
    assert choose(allocation_id, taken) not in taken


def test_another_attempt_gets_another_port_block():
    assert choose("task.1", ()) != choose("task.2", ())


@given(st.text(min_size=1), st.sets(st.integers(0, BLOCKS - 1)), st.integers(0, BLOCKS - 1))
def test_a_port_block_is_chosen_from_the_masters_range(allocation_id, taken, first):
    assert choose(allocation_id, taken, range(first, BLOCKS)) >= first
