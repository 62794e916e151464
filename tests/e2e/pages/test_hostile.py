"""Pages of a hostile task in a real browser. Their origin has the host of the cluster's page, which is the worst case:
browsers share cookies between the ports of a host."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.e2e.pages.conftest import Serving, other_user
from tests.e2e.streams.conftest import StreamCluster
from tests.e2e.web.visits import Visit, launch, password_of
from tests.support.free_ports import free_port
from tests.support.live_trials import Experiment
from tests.support.task_server import SERVER
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("hostile pages"), pytest.mark.budget(60, "attacks in a browser")]
HOSTILE = Path(__file__).with_name("hostile.html").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        created = launch(playwright)
        yield created
        created.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamCluster]:
    first = free_port()
    created = StreamCluster(
        tmp_path_factory.mktemp("hostile"),
        proxy_port_range=f"{first}-{min(65535, first + 20)}",
        proxy_url="http://127.0.0.1:{port}",
    )
    try:
        created.start_master()
        created.start_agent("agent-1", slots=3)
        yield created
    finally:
        created.close()


class Scene:
    """A visitor who is signed in, a hostile task that they open, and another task that they have opened before."""

    def __init__(self, cluster: StreamCluster, visitor: Visit, hostile: Serving, other: Serving) -> None:
        self.cluster, self.visitor, self.hostile, self.other = cluster, visitor, hostile, other

    def enter(self, task: Serving, path: str) -> Page:
        """Opens a task from the cluster's page, as its link does."""
        page = self.visitor.page("/experiments")
        address = f"/detent/tasks/{task.task_id}/enter?port={task.ports[0]}&path={path}"
        page.evaluate("address => { location.href = address }", address)
        page.wait_for_url(lambda url: not url.startswith(self.cluster.url) and "ticket" not in url)
        return page

    def open_hostile(self, **more: str) -> Page:
        other = self.enter(self.other, "/home")
        origin = other.url.rpartition("/")[0]
        page = self.enter(self.hostile, "/page")
        facts = {
            "cluster": self.cluster.url,
            "clusterId": self.cluster.cluster_id,
            "experiment": str(self.other.experiment.id),
            "other": origin,
            "otherTask": f"{self.other.task_id}:{self.other.ports[0]}",
        } | more
        page.evaluate("text => { location.hash = text }", urlencode(facts))
        page.reload()
        return page


@pytest.fixture
def scene(browser: Browser, cluster: StreamCluster, tmp_path: Path) -> Iterator[Scene]:
    started: list[Experiment] = []
    for name in ("hostile", "other"):
        (tmp_path / name / "context").mkdir(parents=True)
        if name == "hostile":
            (tmp_path / name / "context" / "hostile.html").write_text(HOSTILE)
        started.append(cluster.begin(tmp_path / name, SERVER))
    visitor = Visit(browser, cluster.url)
    visitor.sign_in("admin", password_of(cluster))
    hostile, other = (Serving(cluster, each) for each in started)
    yield Scene(cluster, visitor, hostile, other)
    visitor.context.close()
    for experiment in started:
        experiment.do("kill")
        experiment.nothing_left()


def test_a_hostile_page_reaches_neither_the_cluster_nor_another_task_of_its_visitor(scene: Scene):
    page = scene.open_hostile()
    results = page.evaluate("attack()")
    refused = {
        name: results.pop(name)
        for name in ("readsApi", "readsOwnPage", "killsAsPage", "registersWorker", "readsOther", "scriptOfOther")
    }
    assert all(each.startswith("refused") for each in refused.values()), refused
    assert {results.pop("socketOfOther"), results.pop("socketOfCluster")} == {"refused: error"}
    assert "auth" not in results["cookies"]
    assert "detent" not in results["cookies"]
    # A frame that is blocked loads the browser's own page, which is no page of this origin.
    assert (results["framesCluster"], results["framesOther"]) == ("cross-origin", "cross-origin")
    for frame in page.frames[1:]:
        assert frame.url in ("", "about:blank") or "chrome-error" in frame.url or frame.locator("*").count() <= 3
    with scene.other.visitor() as visitor:
        assert visitor.get("/seen").json() == ["/home"]
    assert scene.other.experiment.state == "RUNNING"


def test_a_cookie_that_a_hostile_page_sets_signs_nobody_in_as_somebody_else(scene: Scene):
    with other_user(scene.cluster) as attacker:
        token = str(attacker.headers["Authorization"]).removeprefix("Bearer ")
        page = scene.open_hostile(token=token)

        def is_replaced() -> bool:
            page.evaluate("toss()")
            return token in {cookie["value"] for cookie in scene.visitor.context.cookies(scene.cluster.url)}

        wait_until(is_replaced, what="the browser has dropped its own sign-in for many other cookies")
        arrived = scene.visitor.page("/experiments")
        expect(arrived.get_by_role("button", name="Sign in")).to_be_visible()
        assert "determined" not in arrived.locator("body").inner_text()


def test_a_cookie_that_a_hostile_page_sets_signs_in_nobody_who_was_not_signed_in(scene: Scene, browser: Browser):
    with other_user(scene.cluster) as attacker:
        token = str(attacker.headers["Authorization"]).removeprefix("Bearer ")
        stranger = Visit(browser, scene.cluster.url)
        name = f"auth_{scene.cluster.cluster_id[:8]}"
        stranger.context.add_cookies([{"name": name, "value": token, "url": scene.cluster.url}])
        page = stranger.page("/experiments")
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        stranger.context.close()


def test_what_a_page_leaves_behind_is_gone_when_its_port_is_entered_again(scene: Scene):
    page = scene.open_hostile()
    page.evaluate("localStorage.setItem('left', 'behind')")
    again = scene.enter(scene.hostile, "/page")
    assert again.evaluate("localStorage.getItem('left')") is None
