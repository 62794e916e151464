"""Ten tabs of one browser left open on a running search: their memory, and their cost to the master.

``python -m bench.page_idle [SECONDS]``; the figure needs ten minutes.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from bench.browser import visible, window
from bench.figure import Figure
from bench.running_search import A_SECOND, TRIALS, running_search

PAGES = 10
SECONDS = 600.0
DRAWN = '[role=img][aria-label*=" lines"] canvas'
_TICKS = os.sysconf("SC_CLK_TCK")


def figures(seconds: float = SECONDS) -> list[Figure]:
    first = min(60.0, seconds / 4)
    with tempfile.TemporaryDirectory() as name, running_search(Path(name) / "data") as search:
        process = search.running.process.pid
        with window(Path(name) / "browser", search.running) as created:
            alone = _share(process, first * 2)
            pages = [
                _opened(created, f"{search.running.url}/experiments/{search.experiment}/metrics") for _ in range(PAGES)
            ]
            pages[0].wait_for_timeout(first * 1000)
            before = [_heap(page, created) for page in pages]
            with_pages = _share(process, seconds - first, pages[0])
            after = [_heap(page, created) for page in pages]
            if sum(not page.evaluate("document.hidden") for page in pages) != 1:
                raise RuntimeError("one tab is in front of the others")
            for page in pages:
                _is_current(page, search.session.get("/api/v1/experiments")["experiments"][0]["id"])
        if search.faults:
            raise RuntimeError(search.faults[0])
    growth = [b / a for a, b in zip(before, after, strict=True)]
    load = f"{TRIALS} trials, {A_SECOND:g} reports a second each"
    memory = f"{statistics.median(before) / 2**20:.1f} to {statistics.median(after) / 2**20:.1f} MiB in {seconds - first:.0f} s, {load}"
    cost = f"{100 * with_pages:.1f} % of a core with {PAGES} pages, {100 * alone:.1f} % without, {load}"
    return [
        Figure(f"{PAGES} idle pages: heap at the end / after {first:.0f} s", 1.1, growth, note=memory),
        Figure(f"the master's time for {PAGES} idle pages", 5, [100 * (with_pages - alone)], unit="%", note=cost),
    ]


def _opened(created: BrowserContext, url: str) -> Page:
    return visible(created, url, DRAWN)[0]


def _heap(page: Page, created: BrowserContext) -> float:
    """Returns the bytes of the heap after garbage collection."""
    wire = created.new_cdp_session(page)
    for _ in range(2):
        wire.send("HeapProfiler.collectGarbage")
    used = wire.send("Runtime.getHeapUsage")["usedSize"]
    wire.detach()
    return float(used)


def _share(process: int, seconds: float, page: Page | None = None) -> float:
    """Returns the share of one core over this period. ``page``: processes the events of this page meanwhile."""
    start, used = time.monotonic(), _used(process)
    if page is None:
        time.sleep(seconds)
    else:
        page.wait_for_timeout(seconds * 1000)
    return (_used(process) - used) / (time.monotonic() - start)


def _used(process: int) -> float:
    """Returns the seconds of processor time."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _is_current(page: Page, experiment: int) -> None:
    """Checks that the page still receives changes, since a page without its stream would cost nothing."""
    if page.get_by_test_id("connection-lost").count() or not page.locator(DRAWN).count():
        raise RuntimeError(f"a page of experiment {experiment} is no longer live")


if __name__ == "__main__":
    for figure in figures(*map(float, sys.argv[1:])):
        print(figure.line())
