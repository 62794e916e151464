"""Durability: of the changes of agents and of the scheduler, only those that nobody repeats wait for the disk."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.integration.test_halving_search import HALVING, report, run_desired
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

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


async def test_of_the_decisions_of_a_search_only_the_one_that_ends_it_waits_for_the_disk(cluster: Cluster):
    """The others are made again from their events, which are on the disk."""
    agent = await cluster.join(slots=1)
    one = HALVING.replace("max_trials: 3", "max_trials: 1")
    with transactions_of(cluster) as transactions:
        experiment = await cluster.create(one)
        (desired,) = await run_desired(agent, 1)
        await report(cluster, desired, 2, {"loss": 0.2})
        await eventually(lambda: has_decided(transactions))
        await cluster.post(f"/api/v1/experiments/{experiment}/kill")
        await agent.exit(desired)
        await eventually(lambda: has_ended(cluster, experiment))
    validated = containing(transactions, "UPDATE search_facts SET heard")[0]
    (ended,) = containing(transactions, "UPDATE experiments SET state='CANCELED'")
    assert [UNSYNCED in each for each in (validated, ended)] == [True, False]


async def has_decided(transactions: list[list[str]]) -> bool:
    return bool(containing(transactions, "UPDATE search_facts SET heard"))


async def has_ended(cluster: Cluster, experiment: int) -> bool:
    return await cluster.state(experiment) == "STATE_CANCELED"
