"""A search that runs without training: its trials report through the real API with their tasks' tokens."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.fake_agent import running_trials
from bench.servers import Running, master
from determined.client.session import Session

TRIALS = 4
A_SECOND = 2.0
"""Reports of each trial per second."""


@dataclass
class Search:
    running: Running
    session: Session
    experiment: int
    faults: list[str]


@contextmanager
def running_search(folder: Path) -> Iterator[Search]:
    with master(folder) as running, running.session() as session:
        with running_trials(running.url, running.data, session, TRIALS) as tokens:
            ended = threading.Event()
            faults: list[str] = []
            threads = [
                threading.Thread(target=_report, args=(running.url, trial, token, ended, faults), daemon=True)
                for trial, token in tokens.items()
            ]
            for thread in threads:
                thread.start()
            experiment = int(session.get("/api/v1/experiments")["experiments"][0]["id"])
            try:
                yield Search(running, session, experiment, faults)
            finally:
                ended.set()
                for thread in threads:
                    thread.join(10)


def _report(url: str, trial: int, token: str, ended: threading.Event, faults: list[str]) -> None:
    steps, due = 0, time.monotonic() + trial % TRIALS / A_SECOND / TRIALS
    with Session(url, token=token) as session:
        while not ended.wait(max(0.0, due - time.monotonic())):
            due += 1 / A_SECOND
            steps += 1
            metrics = {"avgMetrics": {"loss": 1 / steps, "accuracy": 1 - 1 / steps, "lr": 0.001}}
            body = {"trialId": trial, "trialRunId": 1, "stepsCompleted": steps, "metrics": metrics}
            try:
                session.post(f"/api/v1/trials/{trial}/metrics", {"group": "training", "metrics": body})
            except Exception as error:
                faults.append(f"trial {trial}: {error}")
                return
