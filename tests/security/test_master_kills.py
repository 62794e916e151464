"""Kills of the master while clients report metrics: every answered report is stored exactly once."""

import contextlib
import random
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import metric_reporter
from tests.support.live_cluster import LiveCluster, Program, live_cluster
from tests.support.waiting import wait_until

from determined_master.auth.secrets import Secrets

pytestmark = pytest.mark.budget(20, "kills and starts a master again and again")

CLIENTS = 8
SEED = 11
MAX_REPORTS_BETWEEN_KILLS = 120
CONFIG = f"""
name: reporters
entrypoint: "true"
searcher: {{name: grid, metric: loss, max_concurrent_trials: {CLIENTS}}}
hyperparameters: {{x: {{type: categorical, vals: {list(range(CLIENTS))}}}}}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    """Yields a cluster without agents, so that each trial has an attempt that waits for slots."""
    with live_cluster(tmp_path / "cluster", slots=0) as created:
        yield created


def stored(cluster: LiveCluster, query: str) -> list[tuple[int, ...]]:
    with contextlib.closing(sqlite3.connect(cluster.data / "master.sqlite")) as connection:
        return connection.execute(query).fetchall()


def start_reporters(cluster: LiveCluster, folder: Path) -> dict[int, Program]:
    """Starts one reporting process for each trial; returns them by trial id."""
    answer = cluster.session.post("/api/v1/experiments", {"config": CONFIG, "activate": True})
    path = f"/api/v1/experiments/{answer['experiment']['id']}/trials"
    wait_until(lambda: len(stored(cluster, "SELECT id FROM allocations")) == CLIENTS, what="an attempt of each trial")
    secrets = Secrets.load(cluster.data)
    reporters = {}
    for trial in cluster.session.get(path)["trials"]:
        number, token = int(trial["id"]), secrets.task_token(f"{trial['taskId']}.1")
        argv = [sys.executable, "-P", metric_reporter.__file__, cluster.url, token, str(number)]
        argv += [str(folder / f"answered-{number}"), str(folder / "stop")]
        reporters[number] = Program(argv, folder / f"reporter-{number}.log", cluster.environment)
    assert len(reporters) == CLIENTS
    return reporters


def answered(folder: Path, number: int) -> list[int]:
    path = folder / f"answered-{number}"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)], ids=["sample", "all"])
def test_every_answered_report_is_stored_once_over_kills_of_the_master(
    cluster: LiveCluster, tmp_path: Path, kills: int
):
    moments = random.Random(SEED)
    reporters = start_reporters(cluster, tmp_path)
    try:
        for _ in range(kills):
            before = sum(len(answered(tmp_path, number)) for number in reporters)
            wanted = before + moments.randrange(CLIENTS, MAX_REPORTS_BETWEEN_KILLS)
            wait_until(lambda n=wanted: sum(len(answered(tmp_path, each)) for each in reporters) >= n)
            cluster.kill_master()
            cluster.start_master()
        total = sum(len(answered(tmp_path, number)) for number in reporters) + CLIENTS
        wait_until(lambda: sum(len(answered(tmp_path, each)) for each in reporters) >= total)
        (tmp_path / "stop").touch()
        codes = {reporter.process.wait(90) for reporter in reporters.values()}
    finally:
        for reporter in reporters.values():
            reporter.end(signal.SIGKILL)
    assert codes == {0}, [reporter.log.read_text()[-500:] for reporter in reporters.values()]
    check(cluster, tmp_path, reporters, kills)


def check(cluster: LiveCluster, folder: Path, reporters: dict[int, Program], kills: int) -> None:
    """Checks that the API returns exactly the answered reports, and that none is stored twice, not even archived."""
    count = 0
    for number in reporters:
        query = {"trialIds": [number]}
        pages = cluster.session.stream("/api/v1/trials/metrics/training_metrics", query)
        reports = [report for page in pages for report in page["metrics"]]
        reported = [(int(each["totalBatches"]), each["metrics"]["avg_metrics"]["loss"]) for each in reports]
        expected = [(step, metric_reporter.loss_of(number, step)) for step in answered(folder, number)]
        assert reported == expected, f"trial {number}"
        count += len(reported)
    assert stored(cluster, "SELECT count(*) FROM metrics") == [(count,)]
    print(f"{kills} kills, {len(reporters)} clients, {count} reports answered, each there once")
