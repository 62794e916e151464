"""The first visit of the page with an empty cache, against MLflow's: bytes of code, and time until ready for input."""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser

from bench import mlflow_server
from bench.browser import chromium, context, times, watched
from bench.figure import Figure, paired
from bench.servers import Running, cluster
from bench.submitting import context_of, create, until_completed

NAMES = ["digits", "faces", "letters"]
ROW = "[role=grid] [role=row] a"
_CONFIG = "name: {}\nentrypoint: 'true'\nsearcher: {{name: single, metric: loss, max_length: {{batches: 1}}}}\n"


class Loads:
    """Each call loads one page in a new browser context and returns the seconds. ``bytes``: bytes of code of each load."""

    def __init__(self, browser: Browser, url: str, row: str, running: Running | None = None) -> None:
        self._browser, self._url, self._row, self._running = browser, url, row, running
        self.bytes: list[int] = []

    def __call__(self) -> float:
        with context(self._browser, self._running) as created:
            page = watched(created, self._row)
            code: set[str] = set()
            sizes: dict[str, int] = {}
            wire = created.new_cdp_session(page)
            wire.send("Network.enable")
            wire.on(
                "Network.responseReceived",
                lambda event: code.add(event["requestId"]) if _is_code(event["response"]["mimeType"]) else None,
            )
            wire.on(
                "Network.loadingFinished",
                lambda event: sizes.__setitem__(event["requestId"], int(event["encodedDataLength"])),
            )
            page.goto(self._url, wait_until="commit")
            seconds = times(page)[1]
            self.bytes.append(sum(size for name, size in sizes.items() if name in code))
        return seconds


def _is_code(mime: str) -> bool:
    return "javascript" in mime or mime == "text/css"


@contextmanager
def _servers() -> Iterator[tuple[Running, str]]:
    with tempfile.TemporaryDirectory() as name, mlflow_server.mlflow(Path(name) / "mlflow") as url:
        mlflow_server.add_runs(url, NAMES)
        with cluster(Path(name) / "data") as running:
            source = Path(name) / "train.py"
            source.write_text("")
            files = context_of(Path(name) / "context", [source])
            with running.session() as session:
                for experiment_name in NAMES:
                    until_completed(session, create(session, _CONFIG.format(experiment_name), files)[0])
            yield running, url


def figures(rounds: int = 9) -> list[Figure]:
    mlflow_server.program()
    with chromium() as browser, _servers() as (running, url):
        ours = Loads(browser, f"{running.url}/", ROW, running)
        theirs = Loads(browser, f"{url}/#/experiments", mlflow_server.ROW)
        ours(), theirs()  # both servers read their files once
        ours.bytes.clear(), theirs.bytes.clear()
        ratios, note = paired(ours, theirs, rounds)
    of = [a / b for a, b in zip(ours.bytes, theirs.bytes, strict=True)]
    size = f"{statistics.median(ours.bytes) / 1000:.0f} against {statistics.median(theirs.bytes) / 1000:.0f} kB"
    return [
        Figure("first load, JS and CSS on the wire / MLflow", 0.15, of, note=size),
        Figure("first load until ready for input / MLflow", 0.3, ratios, note=f"{note} s"),
    ]


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
