"""A long queue is read and compared in slices of the event loop's time."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from tests.integration.test_long_queue import fill_queue
from tests.support.cluster import Cluster

from determined_master.resource_managers.agent_manager import AgentManager

pytestmark = pytest.mark.budget(15, "fills a long queue")


@contextmanager
def slices() -> Iterator[list[float]]:
    """Yields the processor seconds of each call that the event loop makes meanwhile."""
    taken: list[float] = []
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        taken.append(time.thread_time() - began)

    with patch.object(asyncio.Handle, "_run", timed):
        yield taken


async def test_a_long_queue_is_read_and_compared_in_slices(cluster: Cluster):
    """In one piece, this blocks the event loop for a second."""
    manager = cluster.master.managers.of("default")
    assert isinstance(manager, AgentManager)
    await fill_queue(cluster, 10_000)
    with slices() as taken:
        assert not await manager.kept.check()
    longest = sorted(taken, reverse=True)
    assert len(longest) > 200
    assert longest[5] < 0.01  # a table of keys that grows takes longer, a few times
    assert longest[0] < 0.05
