"""The filter of the list accepts the state names of the rows, and suggests the nearest word for a mistyped one."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.web import runs
from tests.e2e.web.visits import Visit
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment

pytestmark = [pytest.mark.e2e]


@pytest.fixture(scope="module")
def failed(cluster: LiveCluster) -> Experiment:
    created = runs.failing(cluster, "filtered and failed")
    created.ended("ERROR")
    return created


@pytest.fixture
def page(visitor: Callable[..., Visit], failed: Experiment) -> Page:
    page = visitor().page("/")
    expect(page.get_by_role("link", name="filtered and failed")).to_be_visible()
    return page


def _filter(page: Page, text: str) -> None:
    page.get_by_role("combobox", name="Filter the experiments").fill(text)


def test_a_state_is_found_by_the_word_that_its_row_shows(page: Page):
    row = page.get_by_role("row").filter(has_text="filtered and failed")
    expect(row.get_by_text("failed", exact=True)).to_be_visible()
    _filter(page, "state = failed and name ~ filtered")
    expect(page.get_by_text("1 experiment", exact=True)).to_be_visible()
    expect(row).to_be_visible()
    _filter(page, "state != failed and name ~ filtered")
    expect(page.get_by_text("Nothing matches this filter")).to_be_visible()


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("state = faild", "failed"),
        ("stat = failed", "state"),
        ("duration > 2 and hp.rat < 1", "hp.rate"),
        ("duration > 2hrs", "h"),
    ],
)
def test_the_filter_suggests_the_nearest_word_and_keeps_the_table(page: Page, typed: str, nearest: str):
    _filter(page, typed)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("did you mean")
    expect(alert).to_contain_text(nearest)
    expect(page.get_by_role("link", name="filtered and failed")).to_be_visible()


def test_columns_and_values_are_completed(page: Page):
    for typed, completed in {
        "hp.ra": "hp.rate",
        "state = fai": "state = failed",
        "name ~ filtered and user = ad": "user = admin",
    }.items():
        _filter(page, typed)
        expect(page.locator(f'datalist option[value*="{completed}"]').first).to_be_attached()
