"""The documentation that the master serves works in a browser without a network."""

from collections.abc import Callable, Sequence

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.web.axe import problems
from tests.e2e.web.visits import NARROW, WIDE, Visit

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
    assert visit.console_errors == [], "the policy lets every script and style of the site work"


PAGES = (
    "index.html",
    "how-to/horovod.html",
    "how-to/web-page.html",
    "reference/error-codes.html",
    "reference/experiment-config.html",
    "reference/python-api.html",
    "search.html?q=checkpoint",
)
LOOKS = [(size, theme) for size in (WIDE, NARROW) for theme in ("light", "dark")]


def found_by_axe(page: Page, looks: Sequence[tuple[dict[str, int], str]]) -> list[str]:
    expect(page.locator("article h1, article h2").first).to_be_visible()
    described: list[str] = []
    for size, theme in looks:
        page.set_viewport_size(size)  # type: ignore[arg-type]
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        described += [f"{size['width']} {theme}: {problem}" for problem in problems(page)]
    return described


@pytest.mark.parametrize(("number", "path"), list(enumerate(PAGES))[::3])
def test_axe_finds_nothing_on_a_page_of_the_documentation(visitor: Callable[..., Visit], number: int, path: str):
    """Checks every third page in one of the four combinations."""
    assert found_by_axe(visitor().page(f"/docs/{path}"), [LOOKS[number % len(LOOKS)]]) == []


@pytest.mark.long
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_on_the_documentation_in_any_theme_and_width(visitor: Callable[..., Visit], path: str):
    assert found_by_axe(visitor().page(f"/docs/{path}"), LOOKS) == []


@pytest.mark.parametrize("page_name", ["experiment-config", "master-settings", "error-codes"])
def test_a_reference_table_fits_a_wide_screen(visitor: Callable[..., Visit], page_name: str):
    page = visitor().page(f"/docs/reference/{page_name}.html")
    tables = page.locator(".table-wrapper")
    expect(tables.first).to_be_visible()
    cut = "(tables) => tables.filter((each) => each.scrollWidth > each.clientWidth).length"
    assert tables.evaluate_all(cut) == 0


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
