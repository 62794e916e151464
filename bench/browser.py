"""A real Chromium on a page, and times measured by the page's own clock."""

import re
import subprocess
import threading
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
"""The main thread is quiet after so long without a long task."""

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
        raise Skipped("there is no Chromium here: apt install chromium")
    if not (page_folder() / INDEX).exists():
        raise Skipped("the page is not built: make webui")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, *arguments])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(folder: Path, running: Running) -> Iterator[BrowserContext]:
    """Yields a window in which one tab is in front and the others know that they are hidden. (Chromium started by
    Playwright itself makes every page believe that it is in front.)"""
    argv = [CHROMIUM, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={folder}", "--no-first-run"]
    size = ",".join(str(length) for length in VIEW.values())
    with sync_playwright() as playwright, started_chromium([*argv, f"--window-size={size}", *ARGUMENTS]) as address:
        browser = playwright.chromium.connect_over_cdp(address, no_defaults=True)
        try:
            created = browser.contexts[0]
            created.set_default_timeout(WAIT_MS)
            _sign_in(created, running)
            yield created
        finally:
            browser.close()


@contextmanager
def started_chromium(argv: list[str]) -> Iterator[str]:
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if match := re.search(r"listening on (ws://\S+)", line):
                    threading.Thread(
                        target=process.stderr.read, daemon=True
                    ).start()  # otherwise the pipe fills and Chromium stops
                    yield match[1]
                    break
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def context(browser: Browser, running: Running | None = None) -> Iterator[BrowserContext]:
    """Yields a browser context with an empty cache, signed in if ``running`` is given."""
    created = browser.new_context(viewport=VIEW)
    created.set_default_timeout(WAIT_MS)
    try:
        if running is not None:
            _sign_in(created, running)
        yield created
    finally:
        created.close()


def _sign_in(context: BrowserContext, running: Running) -> None:
    headers = {"Authorization": f"Bearer {running.token}"}
    link = context.request.post(f"{running.url}/detent/sign-in/links", data={}, headers=headers).json()["path"]
    body = {"token": link.partition("#")[2]}
    answer = context.request.post(f"{running.url}/detent/sign-in", data=body, headers={"X-Detent-Page": "1"})
    session = answer.json()["sessionId"]
    # The page names the sign-in that it means.
    context.add_init_script(f"location.protocol === 'about:' || localStorage.setItem('detent.sign-in', '{session}')")


def watched(context: BrowserContext, selector: str) -> Page:
    """Opens a page that records when the selector first matches on the screen, and every long task."""
    page = context.new_page()
    page.add_init_script(f"({_WATCH})({selector!r})")
    return page


def times(page: Page) -> tuple[float, float]:
    """Returns the seconds from the start of the navigation until the watched element was on the screen, and until the
    main thread was quiet after it: the end of the last long task (over 50 ms) that is followed by QUIET_MS without one.
    """
    marks: Any = page.wait_for_function(_READY, arg=QUIET_MS, polling=50).json_value()
    return marks["seen"] / 1000, marks["ready"] / 1000


def visible(context: BrowserContext, url: str, selector: str) -> tuple[Page, float]:
    """Opens a page. Returns it and the seconds from the navigation until the selector matched on its screen."""
    page = watched(context, selector)
    page.goto(url, wait_until="commit")
    return page, times(page)[0]
