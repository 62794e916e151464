"""At the width of a phone each table row is a card, and nothing is wider than the screen."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from tests.e2e.web import runs
from tests.e2e.web.visits import NARROW, Visit
from tests.support.live_cluster import LiveCluster

pytestmark = [pytest.mark.e2e]

WIDER = """() => {
  const width = document.documentElement.clientWidth;
  const found = [];
  if (document.documentElement.scrollWidth > width) {
    const wide = [...document.querySelectorAll("body *")].filter((each) => each.getBoundingClientRect().right > width + 1);
    const inner = wide.filter((each) => !wide.some((other) => other !== each && each.contains(other)));
    found.push("wider than the page: " + inner.map((each) => each.outerHTML.slice(0, 200)).join(" | "));
  }
  for (const row of document.querySelectorAll("main tbody tr")) {
    const cells = [...row.children];
    // Tables with a caption are maps of cells, which scroll; a row of a name and its value stays a line.
    if (row.closest("table").caption || !row.offsetParent) continue;
    if (cells.length > 2 && getComputedStyle(row).display !== "block") found.push("no card: " + row.innerText);
    if (cells.some((cell) => cell.getBoundingClientRect().right > width + 1)) found.push("cut: " + row.innerText);
  }
  return found;
}"""


@pytest.mark.long  # test_list_layout.py and test_axe.py look at a phone
def test_rows_of_tables_are_cards_that_fit_a_phone(cluster: LiveCluster, visitor: Callable[..., Visit]) -> None:
    search = runs.grid(cluster, "a search whose name is rather long", rates=[0.05], widths=[32, 64])
    failed = runs.failing(cluster, "unreadable")
    failed.ended("ERROR")
    search.ended()
    base, trial = f"/experiments/{search.id}", f"/trials/{failed.trial_id}"
    compare = f"/compare?experiments={search.id},{failed.id}"
    places = {f"{base}/{tab}": "table" for tab in ("overview", "trials", "checkpoints")}
    places |= {f"{trial}/attempts": "table", f"{trial}/hyperparameters": "table"}
    places |= {f"{compare}&tab={tab}": "tr[data-run]" for tab in ("curves", "hyperparameters", "config")}
    places |= dict.fromkeys(("/checkpoints", "/events", "/users"), "table")
    visit = visitor(viewport=NARROW)
    page = visit.page()
    wrong: dict[str, list[str]] = {}
    for path, text in places.items():
        page.goto(visit.url + path)
        expect(page.locator(f"main {text}").first).to_be_visible()
        expect(page.get_by_test_id("loading")).to_have_count(0)
        wider = page.evaluate(WIDER)
        if wider:
            wrong[path] = wider
    assert wrong == {}
    # The note below the title says why the trial failed; the state beside the title does not say it again.
    page.goto(f"{visit.url}{trial}/attempts")
    head = page.locator("main header")
    expect(head).to_contain_text("cannot be read")
    assert head.inner_text().count("cannot be read") == 1
