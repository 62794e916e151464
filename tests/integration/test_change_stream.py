"""The stream of changes over a real server: sign-in, events, resumption and end."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from tests.support.clock import FixedClock
from tests.support.cluster import PASSWORD, Cluster, login, open_cluster
from tests.support.event_reader import reading
from tests.support.fake_link_master import serving
from tests.support.waiting import eventually

from determined_master import notifications
from determined_master.api.detent import event_stream as stream_module


@pytest.fixture
async def url(cluster: Cluster) -> AsyncIterator[str]:
    async with serving(cluster.app) as server:
        yield server


def token(cluster: Cluster) -> str:
    return cluster.client.headers["Authorization"].removeprefix("Bearer ")


async def test_without_a_login_there_is_no_stream(url: str):
    async with httpx.AsyncClient() as client:
        for headers in ({}, {"Authorization": "Bearer forged"}, {"Cookie": "auth=forged"}):
            assert (await client.get(f"{url}/detent/stream", headers=headers)).status_code == 401


async def test_a_stream_sends_hello_and_then_each_change(cluster: Cluster, url: str):
    async with reading(url, token(cluster)) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        hello = await stream.until("hello")
        assert hello["resumed"] is False
        assert {"build", "version", "now"} <= hello.keys()
        experiment = await cluster.create()
        await stream.change("experiment", experiment)
        await stream.change("cluster")
        await stream.change("events")


async def test_a_cookie_opens_the_stream(cluster: Cluster, url: str):
    signed = await cluster.post("/detent/sign-in", {"username": "admin", "password": PASSWORD})
    cookie = signed.headers["set-cookie"].split(";")[0]
    async with reading(url, "", Authorization="", Cookie=cookie) as stream:
        await stream.until("hello")


@pytest.mark.parametrize("by_header", [True, False])
async def test_a_stream_resumes_after_the_last_event_id(cluster: Cluster, url: str, by_header: bool):
    first = await cluster.create(activate=False)
    async with reading(url, token(cluster)) as stream:
        await stream.until("hello")
        await cluster.client.patch(f"/api/v1/experiments/{first}", json={"name": "a"})
        # Changes come in order: once this one has come, all changes of the first experiment have.
        await stream.change("experiment", await cluster.create(activate=False))
    last = stream.ids[-1]
    second = await cluster.create(activate=False)
    query, headers = ("", {"Last-Event-ID": last}) if by_header else (f"?lastEventId={last}", {})
    async with reading(url, token(cluster), query, **headers) as again:
        assert (await again.until("hello"))["resumed"] is True
        await again.change("experiment", second)
        assert {"kind": "experiment", "id": str(first)} not in again.changes


async def test_a_stream_is_not_resumed_after_a_restart_of_the_master(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster, serving(cluster.app) as url:
        async with reading(url, token(cluster)) as stream:
            await stream.until("hello")
        last = stream.ids[-1]
    async with open_cluster(tmp_path) as cluster, serving(cluster.app) as url:
        async with reading(url, token(cluster), **{"Last-Event-ID": last}) as again:
            assert (await again.until("hello"))["resumed"] is False
            assert again.ids[0] != last


async def test_a_stream_ends_when_the_master_stops(cluster: Cluster, url: str):
    async with reading(url, token(cluster)) as stream:
        await stream.until("hello")
        cluster.master.notifications.close()
        await stream.until("bye", reason="shutdown")
        await asyncio.wait_for(stream.ended.wait(), 1)


async def test_signing_out_ends_the_stream_of_this_login_alone(cluster: Cluster, url: str):
    mine = token(cluster)
    await login(cluster.client, "determined")
    async with reading(url, token(cluster)) as theirs, reading(url, mine) as stream:
        await theirs.until("hello")
        await stream.until("hello")
        assert (await cluster.post("/detent/sign-out", {}, Authorization=f"Bearer {mine}")).status_code == 200
        async with asyncio.timeout(1):
            await stream.until("bye", reason="signed-out")
            await stream.ended.wait()
        experiment = await cluster.create(activate=False)
        await theirs.change("experiment", experiment)


async def test_deactivating_a_user_ends_their_stream_within_a_second(cluster: Cluster, url: str):
    admin = token(cluster)
    await login(cluster.client, "determined")
    async with reading(url, token(cluster)) as stream:
        await stream.until("hello")
        headers = {"Authorization": f"Bearer {admin}"}
        answer = await cluster.client.patch("/api/v1/users/2", json={"active": False}, headers=headers)
        assert answer.status_code == 200
        async with asyncio.timeout(1):
            await stream.until("bye", reason="signed-out")


@pytest.mark.parametrize("is_busy", [True, False])
async def test_a_login_that_expires_ends_its_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_busy: bool):
    monkeypatch.setattr(stream_module, "QUIET_SECONDS", 0.05)
    clock = FixedClock(datetime.now(UTC))
    async with open_cluster(tmp_path, clock) as cluster, serving(cluster.app) as url:
        async with reading(url, token(cluster)) as stream:
            await stream.until("hello")
            clock.at += timedelta(days=8)
            async with asyncio.timeout(60):
                while is_busy and not stream.ended.is_set():
                    cluster.master.notifications.publish({notifications.CLUSTER})
                    await asyncio.sleep(0.01)
            await stream.until("bye", reason="signed-out")


async def test_reports_are_published_as_metrics_and_not_as_changes_of_the_experiment(cluster: Cluster, url: str):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    task = cluster.as_task(desired.allocation_id)
    async with reading(url, token(cluster)) as stream:
        await stream.until("hello")
        await eventually(lambda: cluster.app.state.feed.is_quiet)
        await cluster.post("/api/v1/users", {"user": {"username": "marker"}})
        await stream.change("events")
        events_before = len(stream.events)
        report = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1.0}}}
        for group in ("training", "validation"):
            answer = await cluster.post("/api/v1/trials/1/metrics", {"group": group, "metrics": report}, **task)
            assert answer.status_code == 200
        await stream.change("metrics", experiment)
        await cluster.post("/api/v1/trials/1/progress", {"progress": 0.5}, **task)
        line = {"taskId": f"{desired.allocation_id.rpartition('.')[0]}", "log": "x"}
        await cluster.post("/api/v1/task/logs", {"logs": [line]}, **task)
        await stream.change("logs", line["taskId"])
        changes = [change for _, data in stream.events[events_before:] for change in data["changes"]]
        assert {"kind": "experiment", "id": str(experiment)} not in changes
