"""The documentation that the master serves, as a browser shows it: without a network."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.web.visits import NARROW, Visit

pytestmark = [pytest.mark.e2e]


def opened(visit: Visit) -> Page:
    page = visit.page("/")
    with visit.context.expect_page() as opening:
        page.get_by_role("link", name="Documentation").click()
    return opening.value


def test_the_page_leads_to_the_documentation_which_can_be_searched(visitor: Callable[..., Visit]):
    visit = visitor()
    page = opened(visit)
    expect(page.get_by_role("heading", name="Detent", level=1)).to_be_visible()
    page.get_by_placeholder("Search").first.fill("hang_timeout")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results").get_by_role("link").first).to_be_visible()
    assert visit.said == [], "the policy lets every script and style of the site work"


def test_no_page_scrolls_sideways_on_a_phone(visitor: Callable[..., Visit]):
    visit = visitor(viewport=NARROW)
    for path in (
        "index.html",
        "tutorial/index.html",
        "how-to/common-mistakes.html",
        "reference/experiment-config.html",
    ):
        page = visit.page(f"/docs/{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
