"""A shell that is a task of its own: listed with its idle time, entered on its page, and killed there."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.e2e.web.axe import problems
from tests.e2e.web.test_shell import connected, enter, rows, shell
from tests.e2e.web.visits import Visit, visit
from tests.support.live_cluster import LiveCluster, live_cluster

pytestmark = pytest.mark.budget(60, "starts a cluster of its own")
CONFIG = {
    "description": "look at the data",
    "idle_timeout": "30m",
    "resources": {"slots": 0},
    "environment": {"environment_variables": ["SHELL=/bin/sh"]},  # reads no files of this machine's user
}
PICTURES = os.environ.get("DETENT_PICTURES", "")


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path_factory.mktemp("shell-task"), slots=1) as created:
        yield created


@pytest.fixture
def visitor(browser: Browser, own_cluster: LiveCluster) -> Iterator[Visit]:
    with visit(browser, own_cluster) as created:
        yield created


@pytest.fixture
def other(browser: Browser, own_cluster: LiveCluster) -> Iterator[Visit]:
    with visit(browser, own_cluster, "determined") as created:
        yield created


def picture(visitor_page: object, name: str) -> None:
    """Writes a picture for people, if they have asked for it."""
    if PICTURES:
        visitor_page.screenshot(path=str(Path(PICTURES) / f"{name}.png"))  # type: ignore[attr-defined]


def test_a_shell_is_entered_from_the_list_of_tasks_and_its_idle_time_is_shown(
    visitor: Visit, other: Visit, own_cluster: LiveCluster
):
    task = own_cluster.session.post("/api/v1/shells", {"config": CONFIG})["shell"]
    page = visitor.page("/cluster")
    row = page.get_by_role("region", name="Tasks").get_by_role("row").filter(has_text="look at the data")
    expect(row.get_by_role("cell", name="shell", exact=True)).to_be_visible()
    expect(row.get_by_text(re.compile("^idle for"))).to_be_visible(timeout=20_000)
    picture(page, "tasks")
    row.get_by_role("link", name="look at the data").click()
    expect(page.get_by_text("ends 30 min 00 s after the last connection")).to_be_visible()
    page.get_by_role("button", name="Open a shell").click()
    connected(page)
    enter(page, "echo inside-$DET_TASK_TYPE-$((1+1))")
    expect(rows(page)).to_contain_text("inside-SHELL-2")
    picture(page, "shell")
    assert problems(page) == []
    foreign = other.page(f"/cluster/shells/{task['id']}")
    expect(foreign.get_by_text("Only admin and administrators can open this shell.")).to_be_visible()
    page.get_by_role("button", name="Kill…").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill", exact=True).click()
    expect(shell(page).get_by_role("status")).to_have_text(re.compile("The container has ended.$"))
    expect(page.get_by_text("killed by a user")).to_be_visible()
    picture(page, "ended")
