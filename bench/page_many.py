"""The list of 10,000 experiments with 2,000 metric names each: opened, scrolled, and its columns chosen.

``python -m bench.page_many [FOLDER]``: FOLDER as filled by ``python -m bench.many_experiments FOLDER``.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page

from bench.browser import chromium, context, visible
from bench.figure import Figure
from bench.many_experiments import EXPERIMENTS, METRICS, fill
from bench.servers import master

ROW = "[role=grid] [role=row] a"
FRAME_MS = 50
COLUMNS = [f"training.layer{number:04d}/gradient_norm.mean" for number in range(0, METRICS - 1, METRICS // 6)][:6]
_SCROLL = """async () => {
  const frame = document.querySelector("[role=grid]");
  const end = frame.scrollHeight - frame.clientHeight;
  const tasks = [];
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((task) => task.duration)));
  observer.observe({ type: "longtask" });
  const frames = [];
  const next = () => new Promise(requestAnimationFrame);
  let last = await next();
  const drawn = async () => {
    const now = await next();
    frames.push(now - last);
    last = now;
  };
  for (let at = 0; at <= end + 1200; at += 1200) {
    frame.scrollTop = at;
    await drawn();
  }
  for (let jump = 1; jump <= 30; jump += 1) {
    frame.scrollTop = end * ((jump * 0.381966) % 1);
    for (let wait = 0; wait < 15; wait += 1) await drawn();
  }
  frame.scrollTop = end;
  for (let wait = 0; wait < 60; wait += 1) await drawn();
  observer.disconnect();
  return { frames, tasks };
}"""
_PICKER = """async () => {
  const start = performance.now();
  [...document.querySelectorAll("button")].find((each) => each.textContent === "Columns").click();
  const next = () => new Promise(requestAnimationFrame);
  while (document.querySelectorAll("[role=dialog] label small").length < 20) await next();
  return (await next()) - start;
}"""
_EMPTY = '<div role="grid" style="height: 800px; overflow: auto"><div style="height: 360000px"></div></div>'


@contextmanager
def filled(argument: list[str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(argument[0]) if argument else Path(name) / "data"
        if not argument:
            fill(folder)
        yield folder


def figures(folder: list[str] | None = None, rounds: int = 7) -> list[Figure]:
    seconds, pickers = [], []
    ours: list[dict[str, list[float]]] = []
    empty: list[dict[str, list[float]]] = []
    path = "/?" + urlencode([("col", column) for column in ["id", "name", "state", *COLUMNS]])
    with filled(folder or []) as data, master(data) as running, chromium() as browser:
        for _ in range(rounds):
            with context(browser, running) as created:
                page, taken = visible(created, running.url + path, ROW)
                seconds.append(taken)
                page.wait_for_timeout(500)
                pickers.append(page.evaluate(_PICKER) / 1000)
                page.keyboard.press("Escape")
                ours.append(_scrolled(page))
                page.get_by_role("link", name=" 1", exact=False).last.wait_for()
            with context(browser) as created:
                page = created.new_page()
                page.set_content(_EMPTY)
                empty.append(_scrolled(page))
    longest = [max(scroll["frames"]) for scroll in ours]
    return [
        Figure(f"list of {EXPERIMENTS} x {METRICS}: first rows", 1.0, seconds, unit="s"),
        Figure("the same, scrolled: longest frame", FRAME_MS, longest, unit="ms", note=_words(ours, empty)),
        Figure("the same: the picker of columns opens", 0.3, pickers, unit="s"),
    ]


def _scrolled(page: Page) -> Any:
    return page.evaluate(_SCROLL)


def _words(ours: list[dict[str, list[float]]], empty: list[dict[str, list[float]]]) -> str:
    frames = [length for scroll in ours for length in scroll["frames"]]
    over = sum(length > FRAME_MS for length in frames)
    task = max((length for scroll in ours for length in scroll["tasks"]), default=0.0)
    blank = max(length for scroll in empty for length in scroll["frames"])
    return f"{over} of {len(frames)} over {FRAME_MS} ms, longest task {task:.0f} ms; an empty page's longest frame {blank:.0f} ms"


if __name__ == "__main__":
    for figure in figures(sys.argv[1:]):
        print(figure.line())
