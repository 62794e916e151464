"""The list uses the available room, and nothing covers its rows."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator, expect
from tests.e2e.web import runs
from tests.e2e.web.visits import NARROW, WIDE, Visit
from tests.support.live_cluster import LiveCluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e]


BOXES = """() => {
    const grid = document.querySelector('[role=grid]')
    const toast = document.querySelector('[data-testid=toast]')
    const elements = [document.querySelector('[role=toolbar]'), grid, grid.querySelectorAll('[role=row]')[1], toast]
    return elements.every(Boolean) && elements.map((element) => element.getBoundingClientRect().toJSON())
}"""
"""Returns the boxes of the bar, the list, its first row and a message after all of them exist."""

ROW_IN_GRID = """(grid) =>
    grid.querySelectorAll('[role=row]')[1].getBoundingClientRect().y - grid.getBoundingClientRect().y"""


def box_of(element: Locator) -> FloatRect:
    return wait_until(element.bounding_box, what="the element is on the screen")


@pytest.mark.parametrize("window", [WIDE, NARROW], ids=["desk", "phone"])
def test_the_bar_and_messages_cover_no_row(cluster: LiveCluster, visitor: Callable[..., Visit], window: dict[str, Any]):
    name = f"has room on {window['width']}"
    created = runs.quick(cluster, name, activate=False)
    page = visitor(viewport=window).page(f"/?col=name&col=state&q=name+%3D+%22{name.replace(' ', '+')}%22")
    grid = page.get_by_role("grid", name="Experiments")
    expect(grid.get_by_role("link", name=name)).to_be_visible()
    # Read at one moment: a note above the list may appear or disappear between two reads.
    row = grid.evaluate(ROW_IN_GRID)
    page.get_by_role("checkbox", name=f"Select experiment {created.id}").check()
    page.get_by_role("toolbar").get_by_role("button", name="Activate").click()
    # Read at one moment: a message disappears by itself, and a busy machine may add the note of a lost connection.
    bar, rows, first, message = page.wait_for_function(BOXES).json_value()
    assert first["y"] - rows["y"] == pytest.approx(row)
    assert bar["y"] >= rows["y"] + rows["height"]
    assert message["y"] + message["height"] <= bar["y"]
    if window is NARROW:
        places = box_of(page.get_by_role("navigation", name="Main"))
        assert bar["y"] + bar["height"] <= places["y"]
        expect(page.get_by_role("button", name="Sign out")).to_be_in_viewport()


def test_the_name_takes_the_free_width(cluster: LiveCluster, visitor: Callable[..., Visit]):
    runs.quick(cluster, "wide", activate=False)
    page = visitor(viewport=WIDE).page("/?col=name&col=state&q=name+%3D+wide")
    grid = page.get_by_role("grid", name="Experiments")
    expect(grid.get_by_role("link", name="wide", exact=True)).to_be_visible()
    state, frame = box_of(grid.get_by_role("columnheader", name="State")), box_of(grid)
    assert abs(state["x"] + state["width"] - frame["x"] - frame["width"]) <= 2
    assert box_of(grid.get_by_role("columnheader", name="Name"))["width"] > 800
