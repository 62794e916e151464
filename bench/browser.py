"""A real Chromium on a page, and what the page's own clock says."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figure import Skipped
from bench.servers import Running
from determined_master.web.assets import INDEX, page_folder

try:
    from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
except ImportError as missing:
    raise Skipped("playwright is not installed: make install") from missing

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"]
VIEW = {"width": 1440, "height": 900}
WAIT_MS = 60_000
QUIET_MS = 500
"""A main thread without a long task for so long is quiet."""

_WATCH = """selector => {
  const watched = (window.benchWatch = { seen: null, tasks: [] });
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) watched.tasks.push([task.startTime, task.duration]);
  }).observe({ type: "longtask", buffered: true });
  const look = () => {
    const found = document.querySelector(selector);
    // What is there at the start of a frame is on the screen when the next one starts.
    if (found?.getClientRects().length) requestAnimationFrame(() => (watched.seen = performance.now()));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
_READY = """quiet => {
  const { seen, tasks } = window.benchWatch ?? {};
  if (seen === null || seen === undefined) return null;
  let ready = seen;
  for (const [start, length] of tasks) {
    if (start + length <= ready) continue;
    if (start > ready + quiet) break;
    ready = start + length;
  }
  return performance.now() >= ready + quiet ? { seen, ready } : null;
}"""


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        raise Skipped("there is no Chromium here: make install-browser")
    if not (page_folder() / INDEX).exists():
        raise Skipped("the page is not built: make webui")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, *arguments])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def context(browser: Browser, running: Running | None = None) -> Iterator[BrowserContext]:
    """With nothing in its cache; signed in where a master is given."""
    made = browser.new_context(viewport=VIEW)
    made.set_default_timeout(WAIT_MS)
    try:
        if running is not None:
            made.add_cookies([{"name": "auth", "value": running.token, "url": running.url, "httpOnly": True}])
        yield made
    finally:
        made.close()


def watched(context: BrowserContext, selector: str) -> Page:
    """A page that notes when something of this kind is first on the screen, and every long task."""
    page = context.new_page()
    page.add_init_script(f"({_WATCH})({selector!r})")
    return page


def times(page: Page) -> tuple[float, float]:
    """Seconds from the start of the navigation until what is watched for was on the screen, and until the main thread
    was quiet after it: the end of the last long task (over 50 ms) that is followed by QUIET_MS without one."""
    found: Any = page.wait_for_function(_READY, arg=QUIET_MS, polling=50).json_value()
    return found["seen"] / 1000, found["ready"] / 1000


def visible(context: BrowserContext, url: str, selector: str) -> tuple[Page, float]:
    """The page, and the seconds of a navigation until something of this kind was on its screen."""
    page = watched(context, selector)
    page.goto(url, wait_until="commit")
    return page, times(page)[0]
