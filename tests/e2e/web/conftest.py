"""One browser and one cluster per worker for all tests of the page. Both end with the last of these tests, since a
browser that is driven from this thread occupies an event loop that other tests need."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.e2e.web.visits import Visit, launch, visit
from tests.support.live_cluster import LiveCluster, live_cluster


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Assigns each file to one worker, which builds the content of its pages once."""
    for item in items:
        if item.path.parent.name == "web":
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        created = launch(playwright)
        yield created
        created.close()


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path_factory.mktemp("web"), slots=3) as created:
        yield created


@pytest.fixture
def visitor(browser: Browser, cluster: LiveCluster) -> Iterator[Callable[..., Visit]]:
    """Yields a function that makes signed-in visits. At the end each must be faultless."""
    with ExitStack() as stack:

        def make_visit(username: str = "admin", **options: Any) -> Visit:
            return stack.enter_context(visit(browser, cluster, username, **options))

        yield make_visit
