"""The page states nothing before it is known: while answers are on their way, no tab says that something is missing."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, Route
from tests.e2e.web import runs
from tests.e2e.web.visits import Visit
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment

pytestmark = [pytest.mark.e2e]

DENIAL = re.compile(r"^.*\b(?:no|none|yet|empty|nothing)\b.*$", re.IGNORECASE | re.MULTILINE)
QUIET = 8
"""Looks at the page in which it asked for nothing more."""
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
"""One of each kind, those that wait for the most answers."""


@pytest.fixture(scope="module")
def ended(cluster: LiveCluster) -> Iterator[Experiment]:
    """A search with metrics, logs and checkpoints, beside one that runs, so that nothing on the page is missing."""
    running = runs.forever(cluster, "goes on")
    created = runs.grid(cluster, "held back", rates=[0.1, 0.2], widths=[64])
    created.ended()
    yield created
    running.do("kill")


class Held:
    """Requests of a page that are not answered until they are released."""

    def __init__(self, page: Page) -> None:
        self._held: list[Route] = []
        page.route(re.compile(r"/(api/v1|detent)/(?!session|stream)"), lambda route: self._held.append(route))

    def release(self) -> int:
        """Answers what is held; what is asked because of the answers is held again."""
        released, self._held[:] = list(self._held), []
        for route in released:
            route.fulfill(response=route.fetch())
        return len(released)


def denials(page: Page) -> set[str]:
    return {line.strip() for line in DENIAL.findall(page.locator("body").inner_text())}


@pytest.mark.parametrize("path", [pytest.param(p, marks=[] if p in SAMPLE else pytest.mark.long) for p in PAGES])
def test_a_tab_says_that_something_is_missing_only_when_it_knows(
    cluster: LiveCluster, visitor: Callable[..., Visit], ended: Experiment, path: str
):
    page = visitor().context.new_page()
    held = Held(page)
    page.goto(cluster.url + path.format(ended.id, ended.trials[0]["id"]))
    waves: list[set[str]] = []
    quiet = 0
    while quiet < QUIET:
        page.evaluate(SETTLED)
        waves.append(denials(page))
        quiet = 0 if held.release() else quiet + 1
    assert len(waves) > QUIET
    assert set().union(*waves) - waves[-1] == set()
