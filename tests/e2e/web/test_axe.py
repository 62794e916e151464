"""axe finds nothing serious or critical on any page, tab and dialog, empty ones included. By default each is checked in
one of four combinations of width and theme in turn; the long test checks all four."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.web import runs
from tests.e2e.web.axe import problems
from tests.e2e.web.visits import NARROW, WIDE, Visit, password_of, visit
from tests.support.live_cluster import LiveCluster, live_cluster

pytestmark = [pytest.mark.e2e, pytest.mark.budget(90, "looks at every page")]

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
    "no such address": "/no/such/address",
    "no such experiment": "/experiments/999999",
}
EXPERIMENT_TABS = ("overview", "trials", "metrics", "hyperparameters", "logs", "checkpoints", "code", "config", "notes")
TRIAL_TABS = ("curves", "hyperparameters", "attempts", "profile", "logs", "shell")


@dataclass(frozen=True)
class Samples:
    """Ids of the objects that the pages show."""

    search: int
    rungs: int
    failed: int
    paused: int
    trial: int


@pytest.fixture(scope="module")
def samples(cluster: LiveCluster) -> Samples:
    ann = {"username": "ann", "displayName": "Ann Lee", "active": True}
    cluster.session.post("/api/v1/users", {"user": ann})
    search = runs.grid(cluster, "search", rates=[0.05, 0.2], widths=[32, 128], labels=["one", "two"])
    rungs = runs.adaptive(cluster, "compared at rungs", trials=4)
    failed = runs.failing(cluster, "unreadable", description="fails at its twelfth step")
    paused = runs.forever(cluster, "held")
    paused.at_step(3)
    paused.pause()
    failed.ended("ERROR")
    search.ended()
    rungs.ended("COMPLETED", within=300)
    return Samples(search.id, rungs.id, failed.id, paused.id, failed.trial_id)


@pytest.fixture(scope="module")
def looker(browser: Browser, cluster: LiveCluster) -> Iterator[Visit]:
    with visit(browser, cluster) as created:
        yield created


@pytest.fixture(scope="module")
def page(looker: Visit) -> Page:
    return looker.page()


def settled(page: Page) -> None:
    """Waits until the first content is loaded."""
    expect(page.locator("main, [role=dialog]").first).to_be_visible()
    expect(page.get_by_test_id("loading")).to_have_count(0)


LOOKS = (
    (WIDE, "light", ()),
    (WIDE, "dark", ("color-contrast",)),
    (NARROW, "dark", ()),
    (NARROW, "light", ("color-contrast",)),
)
"""Both widths and both themes. All rules run at each width, the colour rules in all four combinations."""


class Looks:
    """Checks page after page and collects the problems."""

    def __init__(self, *, all_four: bool) -> None:
        self._all_four = all_four
        self._seen = 0
        self.every = 1 if all_four else 6
        """Of pages, tabs, dialogs and menus every sixth one is looked at by default; the long form looks at all."""
        self.found: list[str] = []

    def at(self, page: Page, place: str) -> None:
        looks = LOOKS if self._all_four else ((*LOOKS[self._seen % len(LOOKS)][:2], ()),)
        self._seen += 1
        for width, theme, rules in looks:
            page.set_viewport_size(width)  # type: ignore[arg-type]
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            self.found += [f"{place}, {width['width']} {theme}: {problem}" for problem in problems(page, rules=rules)]
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]


@pytest.fixture(params=["sample", pytest.param("all", marks=pytest.mark.long)])
def looks(request: pytest.FixtureRequest) -> Iterator[Looks]:
    created = Looks(all_four=request.param == "all")
    yield created
    assert created.found == [], "\n".join(created.found)


def test_axe_finds_nothing_on_every_page_and_tab(cluster: LiveCluster, samples: Samples, page: Page, looks: Looks):
    places = dict(PLACES)
    places |= {f"search {tab}": f"/experiments/{samples.search}/{tab}" for tab in EXPERIMENT_TABS}
    places |= {
        f"failed {tab}": f"/experiments/{samples.failed}/{tab}" for tab in ("overview", "hyperparameters", "logs")
    }
    places |= {f"trial {tab}": f"/trials/{samples.trial}/{tab}" for tab in TRIAL_TABS}
    places |= {"rungs": f"/experiments/{samples.rungs}/hyperparameters"}
    places |= {"paused": f"/experiments/{samples.paused}", "paused trial": f"/trials/{samples.paused}"}
    places |= {"compare": f"/compare?experiments={samples.search},{samples.failed}"}
    for what, path in list(places.items())[:: looks.every]:
        page.goto(cluster.url + path)
        settled(page)
        looks.at(page, what)


def wrong_line(page: Page) -> None:
    page.get_by_role("button", name="Fork").click()
    editor = page.get_by_role("textbox", name="Configuration")
    expect(editor).to_contain_text("Fork of")
    editor.fill("name: x\nmax_restarts: many\n")
    expect(page.locator(".cm-lintRange-error").first).to_be_visible()


def menu(page: Page, name: str, item: str = "") -> None:
    page.get_by_role("button", name=name).click()
    if item:
        page.get_by_role("menuitem", name=item).click()


def chosen(page: Page, then: str = "") -> None:
    for box in page.get_by_role("checkbox", name="Select experiment").all()[:2]:
        box.check()
    if then:
        page.get_by_role("button", name=then, exact=True).click()


def opened_line(page: Page) -> None:
    page.get_by_role("button", name="First error").click()
    page.locator("[data-testid=log-line][aria-current]").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def first_file(page: Page) -> None:
    page.get_by_role("button", name="quick.py").click()
    expect(page.get_by_role("region", name="quick.py")).to_be_visible()


OPENINGS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "keys": ("/", lambda page: page.keyboard.press("?")),
    "palette": ("/", lambda page: page.keyboard.press("Control+k")),
    "columns": ("/", lambda page: menu(page, "Columns")),
    "views": ("/", lambda page: menu(page, "Saved views")),
    "selected": ("/", chosen),
    "selected label": ("/", lambda page: chosen(page, "Label")),
    "selected more": ("/", lambda page: chosen(page, "More for the selected")),
    "user": ("/users", lambda page: menu(page, "Add a user")),
    "fork": ("/experiments/{failed}", wrong_line),
    "labels": ("/experiments/{search}", lambda page: menu(page, "Edit labels")),
    "name": ("/experiments/{search}", lambda page: menu(page, "Edit name")),
    "more": ("/experiments/{search}", lambda page: menu(page, "More for this experiment")),
    "delete": ("/experiments/{search}", lambda page: menu(page, "More for this experiment", "Delete…")),
    "disable": ("/cluster", lambda page: menu(page, "Disable…")),
    "said": ("/experiments/{search}", lambda page: menu(page, "More for this experiment", "Archive")),
    "line": ("/experiments/{failed}/logs", opened_line),
    "file": ("/experiments/{failed}/code", first_file),
    "sent": ("/experiments/{failed}/config", lambda page: menu(page, "Submitted")),
    "list of times": ("/experiments/{failed}", lambda page: page.get_by_text("As a list").click()),
    "compared values": ("/compare?experiments={search},{failed}", lambda page: menu(page, "Hyperparameters")),
    "compared configurations": ("/compare?experiments={search},{failed}", lambda page: menu(page, "Configuration")),
}


def test_axe_finds_nothing_in_dialogs_and_menus(cluster: LiveCluster, samples: Samples, page: Page, looks: Looks):
    for what, (path, begin) in list(OPENINGS.items())[:: looks.every]:
        page.goto(cluster.url + path.format(search=samples.search, failed=samples.failed))
        settled(page)
        begin(page)
        looks.at(page, what)


def test_axe_finds_nothing_while_signing_in(cluster: LiveCluster, browser: Browser, samples: Samples, looks: Looks):
    stranger = Visit(browser, cluster.url)
    page = stranger.page("/sign-in")
    settled(page)
    looks.at(page, "sign-in")
    page.get_by_label("User").fill("nobody")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    looks.at(page, "refused")
    stranger.sign_in("admin", password_of(cluster))
    page.goto(f"{cluster.url}/experiments/{samples.search}")
    settled(page)
    stranger.context.clear_cookies()
    # Uses no mouse: a background request may open the dialog first, which then covers the button.
    page.get_by_role("button", name="Fork", include_hidden=True).dispatch_event("click")
    expect(page.get_by_role("dialog", name="Your session has ended")).to_be_visible()
    looks.at(page, "session ended")
    stranger.context.close()


@pytest.mark.long  # the page's own tests show each empty list
def test_axe_finds_nothing_on_an_empty_cluster(browser: Browser, tmp_path: Path, looks: Looks):
    with live_cluster(tmp_path, slots=0) as empty, visit(browser, empty) as created:
        page = created.page()
        for path in ("/", "/cluster", "/checkpoints", "/events"):
            page.goto(empty.url + path)
            settled(page)
            looks.at(page, f"empty {path}")
