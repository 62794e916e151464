from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.cluster import Cluster, open_cluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Yields a master with its own database, signed in as admin."""
    async with open_cluster(tmp_path) as created:
        yield created
