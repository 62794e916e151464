"""Charts in a real browser: the note at the pointer, the zoom of a board, and the size of a picture."""

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.e2e.web import runs
from tests.e2e.web.visits import Visit
from tests.support.live_cluster import LiveCluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e]


@pytest.fixture
def board(cluster: LiveCluster, visitor: Callable[..., Visit]) -> Page:
    """Opens the curves of eight trials, which are more than a note names."""
    search = runs.grid(cluster, "curves", rates=[0.05, 0.1, 0.15, 0.2], widths=[32, 64])
    search.ended()
    page = visitor().page(f"/experiments/{search.id}/metrics")
    expect(page.locator(".u-over")).to_have_count(2)
    expect(page.get_by_role("list", name="Lines").first.get_by_role("listitem")).to_have_count(16)
    return page


def size_of(place: Locator) -> dict[str, float]:
    """Returns the box of an element. A chart is redrawn when lines arrive and has no box for a moment."""
    return dict(wait_until(place.bounding_box, what="the element is on the screen"))


def test_the_note_of_a_chart_is_complete_sorted_and_on_that_chart_only(board: Page):
    over = board.locator(".u-over").last
    wide = size_of(over)["width"]
    board.set_viewport_size({"width": 1100, "height": 700})
    # A chart gets its new width from an observer, after the page around it has changed.
    wait_until(lambda: size_of(over)["width"] < wide, what="the chart is narrower")
    box = size_of(over)
    over.hover(position={"x": box["width"] - 2, "y": box["height"] / 2})
    note = board.get_by_test_id("hover-note")
    expect(note).to_have_count(1)
    values = [float(text) for text in note.locator("b").all_inner_texts()]
    assert len(values) == 6
    assert values == sorted(values, reverse=True)
    expect(note).to_contain_text("and 10 more")
    place = size_of(note)
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= 1100
    assert place["y"] + place["height"] <= 700
    # The other chart shows the line of the pointer without points.
    other = board.locator(".u-over").first
    assert size_of(other.locator(".u-cursor-x"))["height"] > 0
    for point in other.locator(".u-cursor-pt").all():
        expect(point).to_be_hidden()


def test_a_drag_zooms_every_chart_and_a_double_click_resets_all(board: Page):
    over = board.locator(".u-over").first
    box = size_of(over)
    board.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    board.mouse.down()
    board.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60, steps=4)
    board.mouse.up()
    expect(board).to_have_url(re.compile(r"zoom=\d"))
    reset = board.get_by_role("button", name="Reset zoom")
    expect(reset).to_have_count(1)
    board.locator(".u-over").last.dblclick()
    expect(reset).to_have_count(0)
    expect(board).not_to_have_url(re.compile("zoom"))


@pytest.mark.long  # the page's own tests save
def test_a_saved_chart_has_two_pixels_for_each_of_the_page(board: Page, tmp_path: Path):
    width = size_of(board.locator(".uplot canvas").first)["width"]
    with board.expect_download() as begun:
        board.get_by_role("button", name="PNG of loss").click()
    picture = tmp_path / "loss.png"
    begun.value.save_as(picture)
    assert struct.unpack(">I", picture.read_bytes()[16:20])[0] == pytest.approx(2 * width, abs=2)
