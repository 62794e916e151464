"""Every page and tab keeps its content while the master does not answer, and shows the connection note."""

import time
from collections import Counter
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect
from tests.e2e.web import runs
from tests.e2e.web.pictures import settled
from tests.e2e.web.visits import SECONDS, Visit
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment

pytestmark = pytest.mark.budget(60, "looks at every page")

Come = Callable[..., Visit]
MINUTES = 3
"""Time that passes on the page while the master is down, so that all periodic requests are sent and repeated."""
VISIBLE_TEXTS = """() => {
  const shown = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const parts = [...document.querySelectorAll("main :is(h1,h2,h3,table,tr,td,th,li,dt,dd,canvas,svg,button,a,pre,textarea)")];
  const tags = parts.filter(shown).map((element) => `<${element.tagName.toLowerCase()}>`);
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const { parentElement, data } = walker.currentNode;
    // A bar is labelled while it has room; as time goes on, its part of the axis changes.
    if (parentElement.closest("[aria-label='Slots over time'] a")) continue;
    // Times go on, and the values of a running trial may be behind.
    const words = data.replace(/\\d[\\d.,]*( ?(ms|s|min|h|d))?|just now|ago/g, " ").replace(/\\s+/g, " ").trim();
    if (words && shown(parentElement)) texts.push(words);
  }
  return [...tags, ...texts];
}"""


@pytest.fixture(scope="module")
def search(cluster: LiveCluster) -> Experiment:
    created = runs.grid(cluster, "of a lost master", rates=(0.1, 0.2), widths=(32, 64))
    created.ended("COMPLETED", within=300)
    return created


@pytest.fixture(scope="module")
def lasting(cluster: LiveCluster) -> Experiment:
    created = runs.forever(cluster, "goes on without its master")
    created.at_step(5)
    return created


def addresses(search: Experiment, lasting: Experiment) -> list[str]:
    """Returns every page and tab of an ended search and of a running trial."""
    tabs = ("overview", "metrics", "hyperparameters", "trials", "checkpoints", "logs", "code", "config", "notes")
    own = [f"/experiments/{search.id}/{tab}" for tab in tabs]
    own.append(f"/experiments/{lasting.id}/metrics")
    own += [f"/trials/{lasting.trial_id}/{tab}" for tab in ("curves", "hyperparameters", "attempts", "profile")]
    # The log of a running trial scrolls, also in the overview, so the ended one is used.
    own.append(f"/trials/{search.trial_id}/logs")
    compare = f"/compare?experiments={search.id},{lasting.id}"
    return ["/", "/?group=state", *own, compare, "/cluster", "/checkpoints", "/events", "/users", "/settings"]


class Unanswered:
    """The requests of a browser that wait for their answers, without those of the stream of changes."""

    def __init__(self, context: BrowserContext) -> None:
        self._requests: set[Request] = set()
        context.on("request", lambda each: self._requests.add(each))
        context.on("requestfinished", lambda each: self._requests.discard(each))
        context.on("requestfailed", lambda each: self._requests.discard(each))

    def wait(self, page: Page) -> None:
        """Waits until there are none: some parts of a page show nothing until they know that they have something."""
        deadline = time.monotonic() + SECONDS
        while waiting := [each.url for each in self._requests if each.resource_type == "fetch"]:
            assert time.monotonic() < deadline, waiting
            page.wait_for_timeout(50)


def visible_texts(page: Page) -> "Counter[str]":
    return Counter(page.evaluate(VISIBLE_TEXTS))


@pytest.mark.long  # test_unusual_events.py stops the master under a page
@pytest.mark.parametrize("every", [pytest.param(8, id="sample"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_no_content_of_any_page_vanishes_while_the_master_is_down(
    cluster: LiveCluster, visitor: Come, search: Experiment, lasting: Experiment, every: int
):
    person = visitor()
    person.context.clock.install()
    unanswered = Unanswered(person.context)
    pages = {address: person.page(address) for address in addresses(search, lasting)[::every]}
    for page in pages.values():
        expect(page.locator("main")).to_be_visible()
        settled(page)
        unanswered.wait(page)
        expect(page.get_by_role("alert")).to_have_count(0)
    before = {address: visible_texts(page) for address, page in pages.items()}
    cluster.kill_master()
    try:
        person.context.clock.run_for(MINUTES * 60_000)
        for page in pages.values():
            expect(page.get_by_test_id("connection-lost")).to_be_visible()
        vanished = {address: dict(before[address] - visible_texts(page)) for address, page in pages.items()}
        alerts = {address: page.get_by_role("alert").all_inner_texts() for address, page in pages.items()}
    finally:
        cluster.mend()
    assert {address: what for address, what in vanished.items() if what} == {}
    assert {address: texts for address, texts in alerts.items() if texts} == {}
