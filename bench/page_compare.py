"""A comparison of a hundred runs of 100,000 points: from the address to all curves of the first panel.

``python -m bench.page_compare [FOLDER]``: FOLDER as filled by ``python -m bench.long_series FOLDER``.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

from bench import datasets, long_series
from bench.browser import chromium, context, visible
from bench.figure import Figure
from bench.servers import Running, master

RUNS = 100
POINTS = 100_000
DRAWN = f'[role=img][aria-label*=" {RUNS} lines"] canvas'
_COLOURS = """() => {
  const canvas = document.querySelector("[role=img] canvas");
  const seen = new Set();
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
  return seen.size;
}"""


@contextmanager
def filled(argument: list[str]) -> Iterator[Running]:
    """Yields a master on the data. ``admin`` has the password of the filled database."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(argument[0]) if argument else Path(name)
        if not argument:
            long_series.fill(folder, RUNS, POINTS, reports=False)
        (folder / "password").write_text(datasets.PASSWORD)
        with master(folder) as running:
            yield running


def figures(folder: list[str] | None = None, rounds: int = 7) -> list[Figure]:
    seconds = []
    path = "/compare?trials=" + ",".join(str(number) for number in range(1, RUNS + 1))
    with filled(folder or []) as running, chromium() as browser:
        for _ in range(rounds):
            with context(browser, running) as created:
                page, taken = visible(created, running.url + path, DRAWN)
                _check(page)
                seconds.append(taken)
    return [Figure(f"compare {RUNS} runs x {POINTS}: the first panel is drawn", 2.0, seconds, unit="s")]


def _check(page: Page) -> None:
    """Checks that the canvas is not empty: lines of eight colours."""
    colours = page.evaluate(_COLOURS)
    if colours < 8:
        raise RuntimeError(f"the panel has {colours} colours")


if __name__ == "__main__":
    for figure in figures(sys.argv[1:]):
        print(figure.line())
