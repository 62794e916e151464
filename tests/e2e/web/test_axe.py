"""Every page and tab, each dialog, the empty ones too, light and dark, on a desk and on a phone: nothing that axe finds
serious or critical."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.web import runs
from tests.e2e.web.axe import problems
from tests.e2e.web.visits import NARROW, WIDE, Visit, visit
from tests.support.live_cluster import LiveCluster, live_cluster

pytestmark = [pytest.mark.e2e]

PLACES = {
    "list": "/",
    "list by groups": "/?group=state",
    "list without a match": "/?q=name%20%3D%20nobody",
    "list with a wrong filter": "/?q=state%20%3D%20(",
    "cluster": "/cluster",
    "checkpoints": "/checkpoints",
    "events": "/events",
    "users": "/users",
    "settings": "/settings",
    "compare nothing": "/compare",
    "no such page": "/experiments/none",
    "no such experiment": "/experiments/999999",
}
EXPERIMENT_TABS = ("overview", "trials", "metrics", "hyperparameters", "logs", "checkpoints", "code", "config", "notes")
TRIAL_TABS = ("curves", "hyperparameters", "attempts", "profile", "logs")


@dataclass(frozen=True)
class Lived:
    """What there is to see."""

    search: int
    failed: int
    paused: int
    trial: int


@pytest.fixture(scope="module")
def lived(cluster: LiveCluster) -> Lived:
    search = runs.grid(cluster, "search", rates=[0.05, 0.1, 0.2], widths=[32, 64, 128], labels=["one", "two"])
    failed = runs.failing(cluster, "unreadable", description="fails at its twelfth step")
    paused = runs.forever(cluster, "held")
    paused.at_step(3)
    paused.pause()
    failed.ended("ERROR")
    search.ended()
    return Lived(search.id, failed.id, paused.id, failed.trial_id)


@pytest.fixture(scope="module")
def looker(browser: Browser, cluster: LiveCluster) -> Iterator[Visit]:
    with visit(browser, cluster) as made:
        yield made


@pytest.fixture(scope="module")
def page(looker: Visit) -> Page:
    return looker.page()


def settled(page: Page) -> None:
    """All that is loaded at first is there."""
    page.wait_for_load_state("networkidle") if False else None
    expect(page.locator("main, [role=dialog]").first).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def looked_at(page: Page, what: str, found: list[str]) -> None:
    """Both widths and both themes, each rule under each width, colours under all four."""
    for width, theme, rules in (
        (WIDE, "light", ()),
        (WIDE, "dark", ("color-contrast",)),
        (NARROW, "dark", ()),
        (NARROW, "light", ("color-contrast",)),
    ):
        page.set_viewport_size(width)  # type: ignore[arg-type]
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        found += [f"{what}, {width['width']} {theme}: {problem}" for problem in problems(page, rules=rules)]
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]


def test_every_page_and_tab(cluster: LiveCluster, lived: Lived, page: Page):
    places = dict(PLACES)
    places |= {f"search {tab}": f"/experiments/{lived.search}/{tab}" for tab in EXPERIMENT_TABS}
    places |= {f"failed {tab}": f"/experiments/{lived.failed}/{tab}" for tab in ("overview", "hyperparameters", "logs")}
    places |= {f"trial {tab}": f"/trials/{lived.trial}/{tab}" for tab in TRIAL_TABS}
    places |= {"paused": f"/experiments/{lived.paused}", "paused trial": f"/trials/{lived.paused}"}
    places |= {"compare": f"/compare?experiments={lived.search},{lived.failed}"}
    found: list[str] = []
    for what, path in places.items():
        page.goto(cluster.url + path)
        settled(page)
        looked_at(page, what, found)
    assert found == [], "\n".join(found)
    print(f"axe: {len(places)} places, each in four looks")
