"""A list with more columns than the window has room for."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.web import runs
from tests.e2e.web.visits import NARROW, Visit
from tests.support.live_cluster import LiveCluster

pytestmark = [pytest.mark.e2e]

COLUMNS = ("id", "name", "state", "description", "progress", "searcherMetricsVal", "startTime", "hp.rate", "hp.width")
DESK = {"width": 900, "height": 700}


def left_of_its_name(page: Page, name: str) -> tuple[float, float]:
    """Before and after the list was scrolled to its right end."""
    grid = page.get_by_role("grid", name="Experiments")
    link = grid.get_by_role("link", name=name)
    expect(link).to_be_visible()
    before = link.evaluate("link => link.getBoundingClientRect().left")
    scrolled = grid.evaluate(
        "async frame => { frame.scrollLeft = 10_000; await new Promise(requestAnimationFrame); return frame.scrollLeft; }"
    )
    assert scrolled > 200
    expect(grid.get_by_role("columnheader", name="width")).to_be_in_viewport()
    return before, link.evaluate("link => link.getBoundingClientRect().left")


@pytest.mark.parametrize(("window", "stays"), [(DESK, True), (NARROW, False)], ids=["desk", "phone"])
def test_the_name_stays_in_sight(
    cluster: LiveCluster, visitor: Callable[..., Visit], window: dict[str, Any], stays: bool
):
    name = f"in sight on {window['width']}"
    runs.quick(cluster, name, activate=False)
    columns = "&".join(f"col={each}" for each in COLUMNS)
    page = visitor(viewport=window).page(f"/?{columns}&q=name+%3D+%22{name.replace(' ', '+')}%22")
    before, after = left_of_its_name(page, name)
    assert (before == after) is stays
