"""From the answer to a call that changes a state to the frame that shows it, during a running search."""

import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page

from bench.browser import chromium, context, visible
from bench.figure import Figure
from bench.running_search import Search, running_search

MILLISECONDS = 200
TIMES = 20
LATEST_MS = 10_000
PLACES = {
    "list": ("/", "[role=row] [data-testid=state]"),
    "experiment": ("/experiments/{}/overview", "header [data-testid=state]"),
}
_SHOWN = """([selector, before]) => new Promise((done) => {
  const wall = () => performance.timeOrigin + performance.now();
  const text = () => document.querySelector(selector)?.textContent ?? before;
  // The frame after the one in which it is new has it on the screen.
  setTimeout(() => done(null), LATEST_MS);
  const look = () => (text() === before ? requestAnimationFrame(look) : done(wall()));
  look();
})""".replace("LATEST_MS", str(LATEST_MS))


def figures(times: int = TIMES) -> list[Figure]:
    results = []
    with tempfile.TemporaryDirectory() as name, running_search(Path(name) / "data") as search:
        with chromium() as browser, context(browser, search.running) as created:
            for place, (path, selector) in PLACES.items():
                page, _ = visible(created, search.running.url + path.format(search.experiment), selector)
                page.wait_for_timeout(1000)
                taken = [_change(search, page, selector) for _ in range(times)]
                results.append(
                    Figure(
                        f"a change is seen on the page of the {place}",
                        MILLISECONDS,
                        taken,
                        unit="ms",
                        note=f"worst {max(taken):.0f} ms of {times}",
                    )
                )
                page.close()
    return results


def _change(search: Search, page: Page, selector: str) -> float:
    """Pauses or activates in turn. Returns the milliseconds."""
    before = page.locator(selector).first.text_content() or ""
    verb = "pause" if "running" in before else "activate"
    page.evaluate(f"(asked) => void (window.benchShown = ({_SHOWN})(asked))", [selector, before])
    search.session.post(f"/api/v1/experiments/{search.experiment}/{verb}")
    answered = time.time() * 1000
    shown_at = page.evaluate("window.benchShown")
    if shown_at is None:
        raise RuntimeError(f"{verb} was not shown within {LATEST_MS / 1000:g} s")
    # A later effect of the same change (a trial's own state) must not be taken for the next change.
    page.wait_for_timeout(700)
    return float(shown_at) - answered


if __name__ == "__main__":
    for figure in figures(*map(int, sys.argv[1:])):
        print(figure.line())
