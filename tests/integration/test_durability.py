"""Which changes of agents and of the scheduler wait for the disk: those that nobody would repeat."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.support.cluster import Cluster

from determined.link.messages import ContainerExit
from determined.states import ContainerState

pytestmark = pytest.mark.sqlite

UNSYNCED = "PRAGMA synchronous=NORMAL"


@contextmanager
def transactions_of(cluster: Cluster) -> Iterator[list[list[str]]]:
    """The transactions of states, each with the setting before it, as SQLite sees them."""
    found: list[list[str]] = [[]]

    def seen(statement: str) -> None:
        found[-1].append(statement)
        if statement == "COMMIT":
            found.append([])

    kept = cluster.master.database._kept_writes
    assert kept is not None
    connections = [each.driver._open for each in kept._kept]
    assert len(connections) == 1
    connections[0].set_trace_callback(seen)
    try:
        yield found
    finally:
        connections[0].set_trace_callback(None)


def those_with(found: list[list[str]], part: str) -> list[list[str]]:
    return [each for each in found if any(part in statement for statement in each)]


async def test_placements_and_live_reports_do_not_wait_and_ends_do(cluster: Cluster):
    agent = await cluster.join()
    with transactions_of(cluster) as found:
        await cluster.create()
        (desired,) = await agent.wait_for_desired()
        await agent.send_report(desired, ContainerState.RUNNING)
        await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=0))
    (created,) = those_with(found, "INTO experiments")
    (placed,) = those_with(found, "INTO slot_holds")
    (running, ended) = those_with(found, "UPDATE containers")
    assert [UNSYNCED in each for each in (created, placed, running, ended)] == [False, True, True, False]
