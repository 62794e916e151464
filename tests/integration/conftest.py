from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.cluster import Cluster, open_cluster
from tests.support.postgresql import FAST, Server


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Yields a master with its own database, signed in as admin."""
    async with open_cluster(tmp_path) as created:
        yield created


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """Yields a PostgreSQL server, which the tests of one worker share."""
    server = Server(**FAST)
    server.start()
    yield server
    server.close()
