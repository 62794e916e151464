"""While answers are pending, no tab states that something is missing."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, Route
from tests.e2e.web import runs
from tests.e2e.web.visits import Visit
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment

pytestmark = [pytest.mark.e2e, pytest.mark.budget(60, "holds answers back for seconds")]

DENIAL = re.compile(r"^.*\b(?:no|none|yet|empty|nothing)\b.*$", re.IGNORECASE | re.MULTILINE)
QUIET = 8
"""Number of checks of the page without a new request after which it is complete."""
SETTLED = """() => new Promise((done) => {
  let left = 4;
  const next = () => (--left ? requestAnimationFrame(next) : setTimeout(done));
  requestAnimationFrame(next);
})"""
EXPERIMENT = [f"/experiments/{{}}/{tab}" for tab in ("overview", "trials", "metrics", "hyperparameters", "logs")] + [
    f"/experiments/{{}}/{tab}" for tab in ("checkpoints", "code", "config", "notes")
]
TRIAL = [f"/experiments/{{}}/trials/{{}}/{tab}" for tab in ("curves", "hyperparameters", "attempts", "logs")]
COMPARE = [f"/compare?experiments={{}}&tab={tab}" for tab in ("curves", "summary", "hyperparameters", "config")]
PAGES = ["/?col=name&col=state", *EXPERIMENT, *TRIAL, *COMPARE, "/cluster", "/checkpoints", "/events", "/users"]
SAMPLE = {PAGES[0], EXPERIMENT[0], EXPERIMENT[5], TRIAL[0], COMPARE[0], "/cluster"}
"""One page of each kind, those that wait for the most answers."""


@pytest.fixture(scope="module")
def ended(cluster: LiveCluster) -> Iterator[Experiment]:
    """Yields a search with metrics, logs and checkpoints beside a running trial, so that no part of the page is empty."""
    running = runs.forever(cluster, "goes on")
    created = runs.grid(cluster, "held back", rates=[0.1, 0.2], widths=[64])
    created.ended()
    yield created
    running.do("kill")


class HeldRequests:
    """Requests of a page that stay unanswered until they are released."""

    def __init__(self, page: Page) -> None:
        self._held: list[Route] = []
        page.route(re.compile(r"/(api/v1|detent)/(?!session|stream)"), lambda route: self._held.append(route))

    def release(self) -> int:
        """Answers the held requests and returns their number. Requests that follow from the answers are held again."""
        released, self._held[:] = list(self._held), []
        for route in released:
            route.fulfill(response=route.fetch())
        return len(released)


def denials(page: Page) -> set[str]:
    return {line.strip() for line in DENIAL.findall(page.locator("body").inner_text())}


@pytest.mark.parametrize("path", [pytest.param(p, marks=[] if p in SAMPLE else pytest.mark.long) for p in PAGES])
def test_no_tab_states_that_something_is_missing_before_its_answers(
    cluster: LiveCluster, visitor: Callable[..., Visit], ended: Experiment, path: str
):
    page = visitor().context.new_page()
    held = HeldRequests(page)
    page.goto(cluster.url + path.format(ended.id, ended.trials[0]["id"]))
    waves: list[set[str]] = []
    quiet = 0
    while quiet < QUIET:
        page.evaluate(SETTLED)
        waves.append(denials(page))
        quiet = 0 if held.release() else quiet + 1
    assert len(waves) > QUIET
    assert set().union(*waves) - waves[-1] == set()
