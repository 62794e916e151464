"""Clients that follow the log of a running trial: each gets every line once, in order, and others are served."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.latency import Latency, health_of, measured, measured_apart
from tests.support.live_cluster import LiveCluster, live_cluster
from tests.support.live_models import SCRIPT
from tests.support.live_trials import Experiment, create
from tests.support.log_followers import FORMS, Follower, stalled
from tests.support.process_memory import forget_peak, peak_mib
from tests.support.waiting import wait_until

from determined_master.allocations.exit_line import ENDED_WELL
from determined_master.auth.secrets import Secrets

pytestmark = pytest.mark.budget(20, "follows long logs with many connections")

BATCH = 50
MAX_GROWTH_MIB = 150
MAX_SECONDS, MAX_SECONDS_BESIDE_TESTS = 0.1, 0.4
"""Maximum of the time that followers who connect at once add to the slowest other request. The sample runs beside
other tests, which use the processor too."""
WIDE = "w" * 32_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path / "cluster") as created:
        yield created


@pytest.fixture
def running_trial(cluster: LiveCluster, tmp_path: Path) -> Experiment:
    """Returns a trial that runs until its gate is opened."""
    experiment = create(cluster, SCRIPT, tmp_path, held=("step-0-1",))
    experiment.at_gate("step-0-1")
    return experiment


def lines_of(experiment: Experiment, first: int, count: int, text: str = "") -> dict[str, object]:
    task = experiment.task_id
    return {"logs": [{"taskId": task, "log": f"line {first + place} {text}"} for place in range(count)]}


def task_headers(experiment: Experiment) -> dict[str, str]:
    token = Secrets.load(experiment.cluster.data).task_token(f"{experiment.task_id}.1")
    return {"Grpc-Metadata-x-allocation-token": f"Bearer {token}"}


async def write_lines(client: httpx.AsyncClient, experiment: Experiment, first: int, count: int) -> None:
    headers = task_headers(experiment)
    for number in range(first, first + count, BATCH):
        body = lines_of(experiment, number, BATCH)
        (await client.post("/api/v1/task/logs", json=body, headers=headers)).raise_for_status()


@contextlib.contextmanager
def waits_of(experiment: Experiment) -> Iterator[dict[str, Latency]]:
    """Measures /health and a write, the renaming of the experiment, while the block runs."""
    port, path = experiment.cluster.port, f"/api/v1/experiments/{experiment.id}"
    headers = {"Authorization": str(experiment.cluster.session.headers["Authorization"])}
    write = measured_apart(port, path, method="PATCH", headers=headers, body='{"name": "renamed #"}')
    with measured_apart(port, "/health") as answers, write as writes:
        yield {"/health": answers, "a write": writes}


@pytest.mark.parametrize(
    ("count", "lines"), [(30, 500), pytest.param(100, 2000, marks=pytest.mark.long)], ids=["sample", "all"]
)
async def test_each_follower_gets_every_line_once_and_in_order(
    cluster: LiveCluster, running_trial: Experiment, count: int, lines: int
):
    """With n followers, other requests take less than n / 2 times as long as with one follower."""
    headers = {"Authorization": cluster.session.headers["Authorization"]}
    # Shorter than the master keeps idle connections: a client that uses one while the master closes it fails.
    limits = httpx.Limits(max_connections=None, keepalive_expiry=1.0)
    trial_id, task_id = running_trial.trial_id, running_trial.task_id
    followers = [Follower(FORMS[number % len(FORMS)]) for number in range(count)]
    async with httpx.AsyncClient(base_url=cluster.url, limits=limits, timeout=300, headers=headers) as client:
        following = [asyncio.create_task(followers[0].follow(client, trial_id, task_id, ENDED_WELL))]
        with waits_of(running_trial) as alone:
            await write_lines(client, running_trial, 0, lines)
        following += [asyncio.create_task(each.follow(client, trial_id, task_id, ENDED_WELL)) for each in followers[1:]]
        with waits_of(running_trial) as together:
            await write_lines(client, running_trial, lines, lines)
            await asyncio.to_thread(running_trial.open_gate, "step-0-1")
            await asyncio.to_thread(running_trial.ended)
            await asyncio.wait_for(asyncio.gather(*following), 120)
    stored = await asyncio.to_thread(lambda: list(cluster.session.stream(f"/api/v1/trials/{trial_id}/logs")))
    ids = [int(line["id"]) for line in stored]
    for follower in followers:
        assert follower.ids == ids, f"a follower of the {follower.form} form"
        written = [text for text in follower.texts if text.startswith("line ")]
        assert written == [f"line {number} " for number in range(2 * lines)]
    for name, waits in together.items():
        words = f"{waits.median * 1000:.0f} ms in the median, {alone[name].median * 1000:.0f} ms beside one follower"
        print(f"{count} followers, {len(ids)} lines each: {name} took {words}")
        assert waits.failures == []
        assert waits.median < alone[name].median * count / 2


@pytest.mark.parametrize(
    ("count", "most"),
    [(60, MAX_SECONDS_BESIDE_TESTS), pytest.param(200, MAX_SECONDS, marks=pytest.mark.long)],
    ids=["sample", "all"],
)
async def test_followers_who_connect_at_once_delay_no_other_request(
    cluster: LiveCluster, running_trial: Experiment, count: int, most: float
):
    """Without a limit, the first other request waits for the pages of all followers."""
    for first in range(0, 2000, 500):
        cluster.session.post("/api/v1/task/logs", lines_of(running_trial, first, 500, "x" * 100))
    headers = {"Authorization": cluster.session.headers["Authorization"]}
    paths = [f"/api/v1/trials/{running_trial.trial_id}/logs?follow=true"] * count

    async def drain(reader: asyncio.StreamReader) -> None:
        while await reader.read(1 << 16):
            pass

    connections = [await asyncio.open_connection("127.0.0.1", cluster.port) for _ in paths]
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with measured(health_of(cluster.port), pause=0.0) as health:
        await asyncio.to_thread(wait_until, lambda: len(health.seconds) >= 50)
        for path, (_, writer) in zip(paths, connections, strict=True):
            writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode())
        draining = [asyncio.create_task(drain(reader)) for reader, _ in connections]
        begun = len(health.seconds)
        await asyncio.to_thread(wait_until, lambda: len(health.seconds) >= begun + 20, within=60)
    for task in draining:
        task.cancel()
    for _, writer in connections:
        writer.close()
    alone, beside = max(health.seconds[:begun]), max(health.seconds[begun:])
    print(f"{count} followers: /health took {beside * 1000:.0f} ms at most, {alone * 1000:.0f} ms before they came")
    assert health.failures == []
    assert beside < most + alone


@pytest.mark.parametrize("count", [25, pytest.param(100, marks=pytest.mark.long)], ids=["sample", "all"])
async def test_followers_that_stop_reading_do_not_grow_the_masters_memory(
    cluster: LiveCluster, running_trial: Experiment, count: int
):
    for _ in range(10):
        cluster.session.post("/api/v1/task/logs", lines_of(running_trial, 0, 100, WIDE))
    headers = {"Authorization": cluster.session.headers["Authorization"]}
    assert cluster.master is not None
    trial = running_trial.trial_id
    paths = [f"/api/v1/trials/{trial}/logs?follow=true", f"/detent/trials/{trial}/logs/download"]
    before = forget_peak(cluster.master.pid)
    async with stalled(cluster.port, [paths[number % 2] for number in range(count)], headers):
        health = health_of(cluster.port)
        assert [await asyncio.to_thread(health) for _ in range(20)] == [200] * 20
        grown = peak_mib(cluster.master.pid) - before
    print(f"{count} followers that do not read: the master's memory grew by {grown:.0f} MiB")
    assert grown < MAX_GROWTH_MIB
