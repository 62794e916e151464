"""Durability: of the changes of agents and of the scheduler, only those that nobody repeats wait for the disk."""

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
    """Yields the statements of each transaction of the state writer, as SQLite executes them."""
    transactions: list[list[str]] = [[]]

    def record(statement: str) -> None:
        transactions[-1].append(statement)
        if statement == "COMMIT":
            transactions.append([])

    (pooled,) = cluster.master.database._writes._idle
    assert pooled.driver is not None
    connection = pooled.driver._open
    connection.set_trace_callback(record)
    try:
        yield transactions
    finally:
        connection.set_trace_callback(None)


def containing(transactions: list[list[str]], part: str) -> list[list[str]]:
    return [each for each in transactions if any(part in statement for statement in each)]


async def test_placements_and_live_reports_do_not_wait_for_the_disk_and_ends_do(cluster: Cluster):
    agent = await cluster.join()
    with transactions_of(cluster) as transactions:
        await cluster.create()
        (desired,) = await agent.wait_for_desired()
        await agent.send_report(desired, ContainerState.RUNNING)
        await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=0))
    (created,) = containing(transactions, "INTO experiments")
    (placed,) = containing(transactions, "INTO slot_holds")
    (running, ended) = containing(transactions, "UPDATE containers")
    assert [UNSYNCED in each for each in (created, placed, running, ended)] == [False, True, True, False]
