from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.cluster import Cluster, cluster


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A master with its own database, logged in as admin."""
    async with cluster(tmp_path) as made:
        yield made
