from collections.abc import Iterator

import pytest
from tests.support.official_client import OFFICIAL
from tests.support.official_cluster import OfficialCluster, official_cluster


@pytest.fixture(scope="session")
def official() -> Iterator[OfficialCluster]:
    """Yields a master and an agent of the user who runs the tests."""
    assert (OFFICIAL / "bin" / "det").exists(), f"no official client in {OFFICIAL}: run make official"
    with official_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def of_ordinary_user() -> Iterator[OfficialCluster]:
    """Yields a master and an agent of an ordinary user."""
    with official_cluster(as_ordinary_user=True) as cluster:
        yield cluster
