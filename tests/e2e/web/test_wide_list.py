"""A list with more columns than the window has room for."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from tests.e2e.web import runs
from tests.e2e.web.visits import NARROW, Visit
from tests.support.live_cluster import LiveCluster

pytestmark = [pytest.mark.e2e]

COLUMNS = ("id", "name", "state", "description", "progress", "searcherMetricsVal", "startTime", "hp.rate", "hp.width")
DESK = {"width": 900, "height": 700}


LEFT = "each => each.getBoundingClientRect().left"


def left_of(page: Page, name: str) -> float:
    """Returns the left edge of the cell with an experiment's name, which must equal that of its column head."""
    grid = page.get_by_role("grid", name="Experiments")
    head = grid.get_by_role("columnheader", name="Name").evaluate(LEFT)
    cell = grid.get_by_role("gridcell").filter(has=page.get_by_role("link", name=name)).evaluate(LEFT)
    assert head == cell
    return float(cell)


@pytest.mark.parametrize(("window", "stays"), [(DESK, True), (NARROW, False)], ids=["desk", "phone"])
def test_the_name_column_stays_visible_in_a_window_with_room(
    cluster: LiveCluster, visitor: Callable[..., Visit], window: dict[str, Any], stays: bool
):
    name = f"in sight on {window['width']}"
    runs.quick(cluster, name, activate=False)
    columns = "&".join(f"col={column}" for column in COLUMNS)
    page = visitor(viewport=window).page(f"/?{columns}&q=name+%3D+%22{name.replace(' ', '+')}%22")
    expect(page.get_by_role("link", name=name)).to_be_visible()
    before = left_of(page, name)
    grid = page.get_by_role("grid", name="Experiments")
    assert grid.evaluate("frame => (frame.scrollLeft = 10_000, frame.scrollLeft)") > 200
    expect(grid.get_by_role("columnheader", name="width")).to_be_in_viewport()
    expect(grid).to_have_attribute("data-aside", "")
    assert (before == left_of(page, name)) is stays


def test_no_duration_is_cut_off_in_the_list(cluster: LiveCluster, visitor: Callable[..., Visit]):
    """Checks hours, a day and weeks in each column with a duration, the state, and the time of submission."""
    names = ("almost an hour", "a day", "weeks")
    for name in names:
        runs.quick(cluster, name, activate=False)
    lengths = dict(zip(names, (3599, 86_340, 1_987_200), strict=True))

    def long(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        for row in body["experiments"]:
            if row["name"] in lengths:
                seconds = lengths[row["name"]]
                row |= {"state": "STATE_COMPLETED", "durationSeconds": seconds, "endTime": row["startTime"]}
                row["times"] = {**row["times"], "waitedSeconds": seconds, "ranSeconds": seconds}
        route.fulfill(response=answer, json=body)

    page = visitor().context.new_page()
    page.route("**/detent/experiments/search", long)
    page.goto(f"{cluster.url}/?col=name&col=state&col=startTime&col=waited&col=ran&col=duration")
    expect(page.get_by_text("23 h 59 min")).to_have_count(3)
    cut = """cells => cells.filter(cell => [cell, ...cell.querySelectorAll("*")].some(
        each => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline"
    )).map(cell => cell.textContent)"""
    for name in names:  # other tests of this cluster have names of any length
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
        assert row.get_by_role("gridcell").evaluate_all(cut) == []


@pytest.mark.parametrize("state", ["COMPLETED", "CANCELED", "RUNNING", "STARTING"])
def test_a_common_state_is_not_cut_off_in_a_list_that_fills_the_screen(
    cluster: LiveCluster, visitor: Callable[..., Visit], state: str
):
    runs.quick(cluster, "of a common state", activate=False)

    def in_that_state(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        for row in body["experiments"]:
            row["state"] = f"STATE_{state}"
        route.fulfill(response=answer, json=body)

    page = visitor().context.new_page()
    page.route("**/detent/experiments/search", in_that_state)
    columns = ("id", "name", "state", "progress", "searcherMetricsVal", "startTime", "ran", "description", "duration")
    page.goto(f"{cluster.url}/?{'&'.join(f'col={column}' for column in columns)}")  # they fill a wide screen
    word = page.get_by_role("grid", name="Experiments").get_by_test_id("state").first.get_by_text(state.lower())
    # A part of a pixel is enough for an ellipsis, and scrollWidth is a whole number.
    widths = word.evaluate("""word => {
        const text = document.createRange();
        text.selectNodeContents(word);
        return [text.getBoundingClientRect().width, word.getBoundingClientRect().width];
    }""")
    assert widths[0] <= widths[1] + 0.01, widths


def test_the_longest_state_ends_in_an_ellipsis_and_its_title_has_the_whole_word(
    cluster: LiveCluster, visitor: Callable[..., Visit]
):
    runs.quick(cluster, "waits for packages", activate=False)

    def building(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        for row in body["experiments"]:
            row["state"] = "STATE_BUILDING_ENVIRONMENT"
        route.fulfill(response=answer, json=body)

    page = visitor(viewport=NARROW).context.new_page()
    page.route("**/detent/experiments/search", building)
    page.goto(f"{cluster.url}/?col=state&col=name")
    state = page.get_by_role("grid", name="Experiments").get_by_test_id("state").first
    expect(state).to_have_attribute("title", "building environment")
    word = state.get_by_text("building environment")
    assert word.evaluate("word => [word.scrollWidth > word.clientWidth, getComputedStyle(word).textOverflow]") == [
        True,
        "ellipsis",
    ]
