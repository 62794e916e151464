from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.cluster import Cluster, open_cluster
from tests.support.postgresql import FAST, Server


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A master with its own database, logged in as admin."""
    async with open_cluster(tmp_path) as created:
        yield created


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server, shared by the tests of one worker."""
    server = Server(**FAST)
    server.start()
    yield server
    server.close()
