"""Network cost of an open page: requests and bytes per minute during live runs, a second visit, and new log lines.

``python -m bench.page_wire [SECONDS]``: SECONDS are counted and scaled to a minute. Bytes are those that the master
sends, headers and the stream of changes included.
"""

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page

from bench.browser import VIEW, chromium, context, visible
from bench.counting_proxy import Counted, counting_proxy
from bench.fake_agent import FakeAgent
from bench.figure import Figure
from bench.servers import Running, master
from determined.client.session import Session
from determined_launch import environment as names

LISTED, MANY, LIVE = 100, 1000, 8
REPORTED = 2000
"""Reports of a run before its page is opened."""
SECONDS = 30.0
LINES = 40
ROW = "[role=grid] [role=row] a"
DRAWN = '[role=img][aria-label*=" line"] canvas'
_CONFIG = (
    "name: {}\nentrypoint: 'true'\nlabels: [bench]\nsearcher: {{name: single, metric: loss}}\n"
    "hyperparameters: {{lr: 0.001, layers: 4, optimizer: adam}}\n"
)
_SHOWN = """(text) => new Promise((done) => {
  const wall = () => performance.timeOrigin + performance.now();
  const look = () => ([...document.querySelectorAll("[data-testid=log-line]")].at(-1)?.textContent.includes(text)
    ? requestAnimationFrame(() => done(wall())) : requestAnimationFrame(look));
  setTimeout(() => done(null), 20000);
  look();
})"""


class Run:
    """A trial whose reports are sent with its task's token."""

    def __init__(self, url: str, trial: int, experiment: int, task: str, token: str) -> None:
        self.trial, self.experiment, self.task = trial, experiment, task
        self._url, self._token = url, token
        self._steps = 0

    def report(self, session: Session, count: int = 1) -> None:
        reports = []
        for _ in range(count):
            self._steps += 1
            figures = {"loss": 1 / self._steps, "accuracy": 1 - 1 / (self._steps + 1), "lr": 0.001}
            body = {
                "trialId": self.trial,
                "trialRunId": 1,
                "stepsCompleted": self._steps,
                "metrics": {"avgMetrics": figures},
            }
            reports.append({"group": "training", "metrics": body})
        if count == 1:
            session.post(f"/api/v1/trials/{self.trial}/metrics", reports[0])
        else:
            session.post(f"/detent/trials/{self.trial}/reports", {"reports": reports})

    def session(self) -> Session:
        return Session(self._url, token=self._token)


@contextmanager
def live_runs(running: Running, session: Session, count: int) -> Iterator[list[Run]]:
    """Yields ``count`` experiments of one trial each, all running on an agent that runs nothing."""
    agent = FakeAgent(running.url, running.data, count)
    thread = threading.Thread(target=lambda: asyncio.run(agent.run()), daemon=True)
    thread.start()
    for number in range(count):
        session.post("/api/v1/experiments", {"config": _CONFIG.format(f"live {number}"), "activate": True})
    if not agent.complete.wait(30):
        raise RuntimeError("the trials were not placed")
    try:
        environments = [desired.spec.environment for desired in agent.desired.values() if desired.spec]
        yield [
            Run(
                running.url,
                int(environment[names.TRIAL_ID]),
                int(environment[names.EXPERIMENT_ID]),
                environment[names.TASK_ID],
                environment[names.SESSION_TOKEN],
            )
            for environment in environments
        ]
    finally:
        agent.stop()
        thread.join(10)


@contextmanager
def reporting(runs: list[Run]) -> Iterator[None]:
    """Each run reports once a second inside the block, at evenly spread moments."""
    ended = threading.Event()
    faults: list[str] = []

    def report(run: Run, due: float) -> None:
        with run.session() as session:
            while not ended.wait(max(0.0, due - time.monotonic())):
                due += 1
                try:
                    run.report(session)
                except Exception as error:
                    faults.append(f"trial {run.trial}: {error}")
                    return

    start = time.monotonic()
    threads = [
        threading.Thread(target=report, args=(run, start + number / len(runs)), daemon=True)
        for number, run in enumerate(runs)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(10)
    if faults:
        raise RuntimeError(faults[0])


class Wire:
    """Counts the requests and bytes of one page over a period."""

    def __init__(self, counted: Counted, created: BrowserContext) -> None:
        self._counted = counted
        self._requests: list[str] = []
        created.on("request", lambda request: self._requests.append(request.url))

    def minute(self, page: Page, seconds: float) -> tuple[float, float, float, str]:
        """Returns requests per second, kB received and sent per minute, and the requested paths."""
        before = replace(self._counted)
        self._requests.clear()
        page.wait_for_timeout(seconds * 1000)
        scale = 60 / seconds / 1000
        paths = [url.removeprefix(self._counted.url).partition("?")[0] for url in self._requests]
        requested = ", ".join(f"{paths.count(path)} {path}" for path in sorted(set(paths)))
        received, sent = self._counted.received - before.received, self._counted.sent - before.sent
        return len(paths) / seconds, received * scale, sent * scale, requested


def figures(seconds: float = SECONDS) -> list[Figure]:
    results: list[Figure] = []
    counted_for = f"{seconds:g} s scaled to a minute"
    with tempfile.TemporaryDirectory() as name, master(Path(name) / "data") as running, running.session() as session:
        _create(session, LISTED - LIVE)
        with live_runs(running, session, LIVE) as runs, chromium() as browser:
            for run in runs:
                with run.session() as own:
                    for _ in range(REPORTED // 100):
                        run.report(own, 100)
            time.sleep(3)  # the index of the list catches up
            of_one_run = _measured(browser, running, runs[:1], "/", ROW, seconds)
            note = f"{counted_for}; {of_one_run[3]}; sends {of_one_run[2]:.0f} kB"
            results.append(
                Figure(f"list of {LISTED} beside one live run: requests", 0.5, [of_one_run[0]], unit="/s", note=note)
            )
            results.append(Figure("the same: bytes a minute", 100, [of_one_run[1]], unit="kB"))
            all_of_them = _measured(browser, running, runs, "/", ROW, seconds)
            note = f"{all_of_them[0]:.2f} requests a second"
            results.append(
                Figure(
                    f"list of {LISTED} beside {LIVE} live runs: bytes a minute",
                    400,
                    [all_of_them[1]],
                    unit="kB",
                    note=note,
                )
            )
            path = f"/experiments/{runs[0].experiment}/metrics"
            curves = _measured(browser, running, runs[:1], path, DRAWN, seconds)
            note = f"{REPORTED} reports before; {curves[3]}"
            results.append(Figure("a live run's metrics: bytes a minute", 150, [curves[1]], unit="kB", note=note))
            lines = _log_lines(browser, running, runs[0])
            note = f"median {statistics.median(lines):.2f} s, worst {max(lines):.2f} s of {len(lines)}"
            p95 = statistics.quantiles(lines, n=20)[18]
            results.append(Figure("new log line shown, 95th percentile", 1.5, [p95], unit="s", note=note))
            _create(session, MANY - LISTED)
            time.sleep(3)
            visits = _second_visits(browser, running)
            results.append(Figure(f"second visit with {MANY} experiments", 60, visits, unit="kB"))
    return results


def _create(session: Session, count: int) -> None:
    for number in range(count):
        session.post("/api/v1/experiments", {"config": _CONFIG.format(f"run {number} of the bench"), "activate": False})


def _measured(
    browser: Browser, running: Running, runs: list[Run], path: str, selector: str, seconds: float
) -> tuple[float, float, float, str]:
    with counting_proxy(running.url) as counted:
        with context(browser, replace(running, url=counted.url)) as created, reporting(runs):
            wire = Wire(counted, created)
            page, _ = visible(created, counted.url + path, selector)
            page.wait_for_timeout(4000)
            return wire.minute(page, seconds)


def _second_visits(browser: Browser, running: Running, times: int = 3) -> list[float]:
    """Returns the kilobytes of a page that is opened again in the same window."""
    kilobytes = []
    with counting_proxy(running.url) as counted, context(browser, replace(running, url=counted.url)) as created:
        page, _ = visible(created, counted.url + "/", ROW)
        page.wait_for_timeout(2000)
        for _ in range(times):
            page.close()
            before = counted.received
            page, _ = visible(created, counted.url + "/", ROW)
            page.wait_for_timeout(2000)
            kilobytes.append((counted.received - before) / 1000)
    return kilobytes


def _log_lines(browser: Browser, running: Running, run: Run, count: int = LINES) -> list[float]:
    """Returns the seconds from the answer to a line's report until the frame that shows it, with a report each second."""
    seconds = []
    with context(browser, running) as created, reporting([run]), run.session() as session:
        _line(session, run, "first")
        page, _ = visible(created, f"{running.url}/experiments/{run.experiment}/logs", "[data-testid=log-line]")
        page.set_viewport_size(VIEW)  # type: ignore[arg-type]  # has both lengths
        page.wait_for_timeout(1500)
        for number in range(count):
            text = f"line {number} of the bench."
            page.evaluate(f"(text) => void (window.benchLine = ({_SHOWN})(text))", text)
            _line(session, run, text)
            answered = time.time() * 1000
            shown_at = page.evaluate("window.benchLine")
            if shown_at is None:
                raise RuntimeError(f"line {number} was not shown within 20 s")
            seconds.append((float(shown_at) - answered) / 1000)
            page.wait_for_timeout(200 + 37 * number % 400)
    return seconds


def _line(session: Session, run: Run, text: str) -> None:
    line = {
        "taskId": run.task,
        "log": f"{text}\n",
        "timestamp": datetime.now(UTC).isoformat(),
        "level": "LOG_LEVEL_INFO",
    }
    session.post("/api/v1/task/logs", {"logs": [line]})


if __name__ == "__main__":
    for figure in figures(*map(float, sys.argv[1:])):
        print(figure.line())
