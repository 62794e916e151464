"""The page during a real training: from the link of `det up` to the comparison of a run with its fork."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.e2e.web import runs
from tests.e2e.web.up import DetUp, det_up
from tests.e2e.web.visits import Visit
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.budget(60, "watches a whole training")]

STATES = """() => {
  window.__same = true;
  window.__states = [];
  const look = () => {
    const word = document.querySelector("header [data-testid=state]")?.textContent.trim().split(" ").at(-1);
    if (word && window.__states.at(-1) !== word) window.__states.push(word);
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  look();
}"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DetUp]:
    with det_up(tmp_path_factory.mktemp("up"), slots=2) as created:
        yield created


@pytest.fixture(scope="module")
def person(browser: Browser, up: DetUp) -> Iterator[Visit]:
    """Yields a visit that is signed in by the link."""
    created = Visit(browser, up.url)
    page = created.context.new_page()
    page.goto(up.link)
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    page.close()
    yield created
    created.faultless()
    created.context.close()


def test_the_sign_in_link_works_once(up: DetUp, person: Visit, browser: Browser):
    page = person.page()
    expect(page.get_by_role("heading", name="No experiments yet")).to_be_visible()
    cookies = person.context.cookies()
    assert [(c["httpOnly"], c["sameSite"]) for c in cookies] == [(True, "Strict")]
    assert page.evaluate("document.cookie") == ""
    token = up.link.partition("#")[2]
    assert token not in page.url
    assert token not in str(page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, history.state])"))
    other = Visit(browser, up.url)
    again = other.context.new_page()
    again.goto(up.link)
    expect(again.get_by_label("Password")).to_be_visible()
    expect(again.get_by_text("was used")).to_be_visible()
    assert other.context.cookies() == []
    other.context.close()
    page.close()


def test_a_trial_is_watched_paused_and_activated(up: DetUp, person: Visit):
    page, cluster = person.page(), person.page("/cluster")
    page.evaluate("window.__same = true")
    expect(page.get_by_role("heading", name="No experiments yet")).to_be_visible()
    experiment = runs.forever(up, "digits")  # without torch, which trains as fast as it can
    row = page.get_by_role("row").filter(has_text="digits")
    expect(row.get_by_text("running")).to_be_visible()
    slots = cluster.locator("[data-slot]")
    expect(slots.get_by_role("link", name="digits")).to_have_count(1)
    row.get_by_role("link", name="digits").click()
    expect(page.get_by_role("heading", name="digits")).to_be_visible()
    page.evaluate(STATES)
    page.get_by_role("link", name="trial 1").first.click()
    expect(page.get_by_role("img", name=re.compile(r"loss: .*points"))).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("header").get_by_test_id("state")).to_have_text(re.compile("paused"))
    assert page.evaluate("window.__states").index("pausing") < page.evaluate("window.__states").index("paused")
    expect(slots.get_by_text("free")).to_have_count(2)
    mark = page.locator("[data-mark=pause]")
    expect(mark).to_have_count(1)
    # The mark moves to the last step that the trial reports before it ends.
    wait_until(lambda: last_step(page) <= step_of(mark), what="the mark is at the last step")
    paused_at = step_of(mark)
    page.get_by_role("button", name="Activate").click()
    expect(page.locator("header").get_by_test_id("state")).to_have_text(re.compile("running"))
    expect(slots.get_by_role("link", name="digits")).to_have_count(1)
    wait_until(lambda: last_step(page) > paused_at, what="a point beyond the pause")
    expect(mark).to_have_count(1)
    assert page.evaluate("window.__same") is True
    experiment.do("kill")
    expect(page.locator("header").get_by_test_id("state")).to_have_text(re.compile("canceled"))
    expect(slots.get_by_text("free")).to_have_count(2)
    page.close()
    cluster.close()


def step_of(mark: Locator) -> int:
    return int(re.search(r"step (\d+)", mark.text_content() or "")[1])  # type: ignore[index]


def last_step(page: Page) -> int:
    """Returns the last step of the displayed curve."""
    label = page.get_by_role("img", name=re.compile(r"^loss: .*to step")).get_attribute("aria-label") or ""
    return int(label.rpartition(" ")[2].replace(",", ""))


@pytest.fixture(scope="module")
def failed(up: DetUp) -> Experiment:
    created = runs.failing(up, "unreadable")
    created.ended("ERROR")
    return created


def test_the_page_shows_the_first_error_of_a_failed_trial(failed: Experiment, person: Visit):
    page = person.page(f"/experiments/{failed.id}/logs")
    page.get_by_role("button", name="First error").click()
    line = page.locator("[data-testid=log-line][aria-current]")
    expect(line).to_contain_text("RuntimeError: the batch of step 12 cannot be read")
    expect(line).to_have_css("outline-style", "solid")
    expect(page.get_by_test_id("log-line").first).to_have_css("outline-style", "none")
    page.close()


def test_a_fork_is_checked_as_it_is_typed_and_compared(failed: Experiment, person: Visit):
    page = person.page(f"/experiments/{failed.id}")
    page.get_by_role("button", name="Fork").click()
    editor = page.get_by_role("textbox", name="Configuration")
    expect(editor).to_contain_text("Fork of unreadable")
    text = str(page.evaluate("document.querySelector('.cm-content').innerText"))
    assert "fails_at: 12" in text
    editor.fill(text.replace("max_restarts: 0", "max_restarts: many"))
    expect(page.locator(".cm-lintRange-error")).to_contain_text("many")
    expect(page.get_by_role("list", name="Problems")).to_contain_text("max_restarts")
    create = page.get_by_role("button", name="Create and start")
    expect(create).to_have_attribute("aria-disabled", "true")
    editor.fill(text.replace("fails_at: 12", "fails_at: 0"))
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)
    expect(create).not_to_have_attribute("aria-disabled", "true")
    create.click()
    expect(page.get_by_role("heading", name="Fork of unreadable")).to_be_visible()
    expect(page.get_by_text(f"forked from {failed.id}")).to_be_visible()
    expect(page.locator("header").get_by_test_id("state")).to_have_text(re.compile("completed"))
    page.get_by_role("link", name="Experiments", exact=True).last.click()
    for name in ("unreadable", "Fork of unreadable"):
        page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True)).get_by_role(
            "checkbox"
        ).check()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()
    expect(page.get_by_role("list", name="Lines").first.get_by_role("listitem")).to_have_count(4)
    page.get_by_role("button", name="Hyperparameters").click()
    differing = page.locator("tr[data-differs]")
    expect(differing).to_have_count(1)
    expect(differing).to_contain_text("fails_at")
    page.close()
