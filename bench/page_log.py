"""A log of a million lines: its first page, and the jump to its only error.

``python -m bench.page_log [FOLDER]``: FOLDER as filled by ``python -m bench.long_log FOLDER``.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import datasets, long_log
from bench.browser import chromium, context, visible
from bench.figure import Figure
from bench.servers import Running, master

LINES = 1_000_000
LINE = "[data-testid=log-line]"
_JUMPED = """() => new Promise((done) => {
  let pressed = null;
  addEventListener("keydown", (event) => (pressed = event.timeStamp), { capture: true, once: true });
  const look = () => {
    const target = document.querySelector("[data-testid=log-line][aria-current]")?.getBoundingClientRect();
    const frame = document.querySelector("[role=log]")?.getBoundingClientRect();
    if (target && frame && target.top >= frame.top && target.bottom <= frame.bottom) requestAnimationFrame(() => done(performance.now() - pressed));
    else requestAnimationFrame(look);
  };
  look();
})"""


@contextmanager
def filled(argument: list[str]) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(argument[0]) if argument else Path(name)
        if not argument:
            long_log.fill(folder, LINES)
        (folder / "password").write_text(datasets.PASSWORD)
        with master(folder) as running:
            yield running


def figures(folder: list[str] | None = None, rounds: int = 7) -> list[Figure]:
    opened, jumped = [], []
    with filled(folder or []) as running, chromium() as browser:
        for _ in range(rounds):
            with context(browser, running) as created:
                page, taken = visible(created, f"{running.url}/experiments/1/trials/1/logs", LINE)
                opened.append(taken)
                page.wait_for_timeout(500)
                page.evaluate(f"void (window.benchJump = ({_JUMPED})())")
                page.keyboard.press("e")
                jumped.append(page.evaluate("window.benchJump") / 1000)
                text = page.locator("[data-testid=log-line][aria-current]").inner_text()
                if long_log.ERROR not in text:
                    raise RuntimeError(f"that is not the error: {text}")
    return [
        Figure(f"log of {LINES} lines: the first page", 1.0, opened, unit="s"),
        Figure("the same: the first error, by its key", 1.0, jumped, unit="s"),
    ]


if __name__ == "__main__":
    for figure in figures(sys.argv[1:]):
        print(figure.line())
