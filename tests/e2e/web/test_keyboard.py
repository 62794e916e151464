"""Everything that a user does with a run works by the keyboard alone, without pointer or clicks."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.web import runs
from tests.e2e.web.visits import Visit, link_for
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment

pytestmark = [pytest.mark.e2e]


@pytest.fixture(scope="module")
def held(cluster: LiveCluster) -> Iterator[Experiment]:
    created = runs.forever(cluster, "by keys")
    created.at_step(3)
    yield created
    created.do("kill")


@pytest.fixture(scope="module")
def failed(cluster: LiveCluster, held: Experiment) -> Experiment:
    created = runs.failing(cluster, "unreadable by keys")
    created.ended("ERROR")
    return created


@pytest.fixture
def page(browser: Browser, cluster: LiveCluster, held: Experiment, failed: Experiment) -> Iterator[Page]:
    """Yields a page that is signed in by the link and accepts no pointer events."""
    created = Visit(browser, cluster.url)
    page = created.context.new_page()
    page.goto(link_for(cluster))
    expect(page.get_by_role("grid", name="Experiments")).to_be_visible()
    page.evaluate(
        "for (const kind of ['pointerdown', 'mousedown', 'mouseup', 'touchstart']) addEventListener(kind, () => (window.__pointed = true), true)"
    )
    yield page
    assert page.evaluate("window.__pointed") is None
    created.faultless()
    created.context.close()


def keys(page: Page, *pressed: str) -> None:
    for key in pressed:
        page.keyboard.press(key)


def tab_to(page: Page, is_there: Callable[[], bool], *, at_most: int = 60) -> None:
    """Presses Tab until ``is_there`` returns True."""
    for _ in range(at_most):
        if is_there():
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"not reached with {at_most} tabs")


def focused(page: Page) -> str:
    return str(page.evaluate("(document.activeElement?.ariaLabel || document.activeElement?.textContent || '').trim()"))


def on_line(page: Page, name: str) -> None:
    """Checks that the cursor of the list is at the experiment."""
    expect(page.locator("[data-cursor]")).to_contain_text(name)


@pytest.mark.long  # the page's own tests press them
def test_keys_open_places_help_and_the_palette(page: Page):
    keys(page, "g", "c")
    expect(page.get_by_role("heading", name="Cluster", exact=True)).to_be_visible()
    keys(page, "?")
    help_text = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(help_text).to_contain_text("Go to Experiments")
    keys(page, "g", "e")  # the page behind a dialog ignores keys
    expect(help_text).to_be_visible()
    keys(page, "Escape")
    expect(help_text).to_have_count(0)
    for key, title in {"k": "Checkpoints", "v": "Events", "u": "Users", "s": "Settings"}.items():
        keys(page, "g", key)
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    keys(page, "g", "e")
    expect(page.get_by_role("grid", name="Experiments")).to_be_visible()
    keys(page, "Control+k")
    expect(page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()
    page.keyboard.type("unreadable by")
    expect(page.get_by_role("dialog").get_by_role("option", name=re.compile("unreadable by keys"))).to_be_visible()
    keys(page, "ArrowDown", "ArrowUp", "Enter")
    expect(page.get_by_role("heading", name="unreadable by keys")).to_be_visible()
    keys(page, "Escape")
    expect(page.get_by_role("grid", name="Experiments")).to_be_visible()


def test_keys_pause_and_activate_an_experiment(page: Page, held: Experiment):
    keys(page, "/")
    expect(page.get_by_role("combobox", name="Filter the experiments")).to_be_focused()
    page.keyboard.type('name = "by keys"')
    expect(page.get_by_text("1 experiment", exact=True)).to_be_visible()
    keys(page, "Escape", "j")
    on_line(page, "by keys")
    keys(page, "Enter")
    state = page.locator("header").get_by_test_id("state")
    expect(state).to_have_text(re.compile("running"))
    keys(page, "a")  # it runs already: no effect
    keys(page, "p")
    expect(state).to_have_text(re.compile("paused"))
    keys(page, "a")
    expect(state).to_have_text(re.compile("running"))
    keys(page, "m")
    expect(page.get_by_role("region", name="Curves")).to_be_visible()
    tab_to(page, lambda: focused(page) == "Overview")
    keys(page, "Enter")
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    tab_to(page, lambda: focused(page) == f"trial {held.trial_id}")
    keys(page, "Enter")
    expect(page.locator("[data-mark=pause]")).to_have_count(1)
    keys(page, "Escape")
    expect(page.get_by_role("heading", name="by keys")).to_be_visible()
    keys(page, "Escape")
    expect(page.get_by_role("grid", name="Experiments")).to_be_visible()


@pytest.mark.long  # the test above presses them on a page
def test_keys_pause_and_activate_from_the_list(page: Page, held: Experiment):
    held.running()
    keys(page, "/")
    page.keyboard.type('name = "by keys"')
    keys(page, "Escape", "j", "x", "p")  # typed ahead: the keys wait for the result of the filter
    row = page.get_by_role("row").filter(has_text="by keys")
    expect(row.get_by_text("paused")).to_be_visible()
    keys(page, "a")
    expect(row.get_by_text("running")).to_be_visible()


@pytest.mark.long  # the page's own tests press them
def test_keys_show_the_first_error_fork_and_compare(page: Page, failed: Experiment):
    keys(page, "/")
    page.keyboard.type('name ~ "by keys"')
    expect(page.get_by_text("2 experiments", exact=True)).to_be_visible()
    keys(page, "Escape")  # leaves the field, where the browser itself would clear it
    expect(page.get_by_role("combobox", name="Filter the experiments")).to_have_value('name ~ "by keys"')
    keys(page, "j")
    on_line(page, "unreadable by keys")
    keys(page, "j", "k", "Enter")
    expect(page.get_by_role("heading", name="unreadable by keys")).to_be_visible()
    keys(page, "l")
    expect(page.get_by_role("log")).to_contain_text("cannot be read")
    keys(page, "e")
    expect(page.locator("[data-testid=log-line][aria-current]")).to_contain_text(
        "RuntimeError: the batch of step 12 cannot be read"
    )
    keys(page, "f")
    editor = page.get_by_role("textbox", name="Configuration")
    expect(editor).to_contain_text("Fork of unreadable by keys")
    tab_to(page, lambda: focused(page) == "Configuration")
    keys(page, "Control+a")
    text = str(page.evaluate("document.querySelector('.cm-content').innerText"))
    page.keyboard.insert_text(text.replace("fails_at: 12", "fails_at: 0").replace("width: 64", "width: 128"))
    page.keyboard.press("Tab")
    assert focused(page) != "Configuration"
    tab_to(page, lambda: focused(page) == "Create and start")
    keys(page, "Enter")
    expect(page.get_by_role("heading", name="Fork of unreadable by keys")).to_be_visible()
    expect(page.get_by_text(f"forked from {failed.id}")).to_be_visible()
    expect(page.locator("header").get_by_test_id("state")).to_have_text(re.compile("completed"))
    keys(page, "g", "e")
    expect(page.get_by_role("link", name="Fork of unreadable by keys")).to_be_visible()
    keys(page, "j")
    on_line(page, "Fork of unreadable by keys")
    keys(page, "x", "j", "x", "c")
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()
    tab_to(page, lambda: focused(page) == "Configuration")
    keys(page, "Enter")
    expect(page.locator("tr[data-differs]").filter(has_text="hyperparameters.width")).to_contain_text("128")
