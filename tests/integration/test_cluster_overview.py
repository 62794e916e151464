"""The cluster overview, slot holds and usage, and pages of checkpoints and events."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.checkpoints import checkpoint_uuid
from tests.support.clock import FixedClock
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.seeded_cluster import seed_cluster
from tests.support.waiting import eventually

from determined_master.events import search_queries

pytestmark = pytest.mark.budget(10, "computes the use of slots over many holds")

TWO = CONFIG + "resources: {slots_per_trial: 2}\n"


async def overview(cluster: Cluster) -> Any:
    return await cluster.get("/detent/cluster/overview")


async def test_the_overview_shows_held_slots_and_the_queue(cluster: Cluster):
    agent = await cluster.join(slots=2)
    await cluster.create(TWO)
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    await cluster.create(CONFIG.replace("tiny", "second"))

    async def waits() -> Any:
        page = await overview(cluster)
        return page if any("slot" in entry["waiting"] for entry in page["queue"]) else None

    page = await eventually(waits)
    (row,) = page["agents"]
    assert (row["id"], row["connected"], row["enabled"]) == ("one", True, True)
    assert [slot["id"] for slot in row["slots"]] == [0, 1]
    held = row["slots"][0]["held"]
    assert (held["trialId"], held["experimentId"], held["name"], held["rank"]) == (1, 1, "tiny", 0)
    assert held["allocationId"] == desired.allocation_id
    waiting, running = page["queue"]
    assert (waiting["name"], waiting["state"], waiting["username"]) == ("second", "STATE_QUEUED", "admin")
    assert (running["state"], running["waiting"], running["slots"]) == ("STATE_RUNNING", "", 2)
    assert [(each["kind"], each["agents"]) for each in page["queue"]] == [("TRIAL", []), ("TRIAL", ["one"])]
    await cluster.post("/api/v1/agents/one/slots/1/disable", {"drain": True})
    slots = (await overview(cluster))["agents"][0]["slots"]
    assert [(slot["enabled"], slot["draining"]) for slot in slots] == [(True, False), (False, True)]
    await cluster.master.agents.disconnected("one")
    assert (await overview(cluster))["agents"][0]["connected"] is False


PORTS = """environment:
  proxy_ports:
    - {proxy_port: 5005, proxy_tcp: true}
    - {proxy_port: 8899, default_service_id: true}
    - {proxy_port: 6006}
"""


async def test_declared_ports_are_listed_once_a_task_is_placed(cluster: Cluster):
    experiment = await cluster.create(CONFIG + PORTS)
    assert await eventually(lambda: listed_ports(cluster)) == [[]]
    assert [each["proxyPorts"] for each in (await summaries(cluster)).values()] == [[]]
    agent = await cluster.join(slots=2)
    await agent.run((await agent.wait_for_desired())[0])
    config = f"entrypoint: [sleep, '60']\nresources: {{slots: 0}}\n{PORTS}"
    answer = await cluster.post("/api/v1/commands", {"config": yaml.safe_load(config)})
    command = answer.json()["command"]["id"]
    await eventually(lambda: places(cluster, 2))
    assert await listed_ports(cluster) == [[8899, 6006]] * 2
    found = {each["taskId"]: each["proxyPorts"] for each in (await summaries(cluster)).values()}
    (trial,) = (await cluster.get(f"/api/v1/experiments/{experiment}/trials"))["trials"]
    assert found.keys() == {command, trial["taskIds"][0]}
    for task_id, ports in found.items():
        assert [(each["serviceId"], each["port"], each["proxyTcp"]) for each in ports] == [
            (f"{task_id}:5005", 5005, True),
            (task_id, 8899, False),
            (f"{task_id}:6006", 6006, False),
        ]
    plain = (await cluster.get("/tasks")).values()
    assert {each["task_id"]: [port["service_id"] for port in each["proxy_ports"]] for each in plain} == {
        task_id: [port["serviceId"] for port in ports] for task_id, ports in found.items()
    }


async def listed_ports(cluster: Cluster) -> list[list[int]]:
    return [each["ports"] for each in (await overview(cluster))["queue"]]


async def summaries(cluster: Cluster) -> Any:
    return (await cluster.get("/api/v1/tasks"))["allocationIdToSummary"]


async def places(cluster: Cluster, count: int) -> bool:
    return sum(bool(each["agents"]) for each in (await overview(cluster))["queue"]) == count


async def test_the_queue_is_in_the_order_of_the_scheduler(cluster: Cluster):
    for priority in (42, 7, 42):
        await cluster.create(CONFIG + f"resources: {{priority: {priority}}}\n")

    async def all_wait() -> Any:
        queue = (await overview(cluster))["queue"]
        return queue if len(queue) == 3 else None

    assert [entry["experimentId"] for entry in await eventually(all_wait)] == [2, 1, 3]


async def test_holds_and_usage_count_the_time_of_slots(tmp_path: Path):
    start = datetime.now(UTC)
    clock = FixedClock(start)
    async with open_cluster(tmp_path, clock) as cluster:
        agent = await cluster.join(slots=2)
        await cluster.create(TWO)
        desired = (await agent.wait_for_desired())[0]
        await agent.run(desired)
        clock.at += timedelta(seconds=50)
        await agent.exit(desired)
        clock.at += timedelta(seconds=50)
        holds = (await cluster.get("/detent/cluster/holds"))["holds"]
        assert [(h["slotId"], h["trialId"], h["exitReason"]) for h in holds] == [
            (0, 1, "completed"),
            (1, 1, "completed"),
        ]
        span = {"from": start.isoformat(), "to": clock.at.isoformat()}
        usage = await cluster.get("/detent/cluster/usage", buckets=4, **span)
        assert usage["slots"] == 2
        assert [bucket["busySlotSeconds"] for bucket in usage["buckets"]] == [50.0, 50.0, 0.0, 0.0]
        assert {bucket["seconds"] for bucket in usage["buckets"]} == {25.0}
        later = await cluster.get("/detent/cluster/holds", **{"from": (start + timedelta(seconds=60)).isoformat()})
        assert later["holds"] == []


async def test_the_current_usage_bucket_ends_now_and_later_ones_have_no_time(tmp_path: Path):
    """Otherwise the usage seems to fall to zero at the end while all slots are busy."""
    start = datetime.now(UTC)
    clock = FixedClock(start)
    async with open_cluster(tmp_path, clock) as cluster:
        agent = await cluster.join(slots=2)
        await cluster.create(TWO)
        await agent.run((await agent.wait_for_desired())[0])
        clock.at += timedelta(seconds=60)
        span = {"from": start.isoformat(), "to": (start + timedelta(seconds=200)).isoformat()}
        buckets = (await cluster.get("/detent/cluster/usage", buckets=4, **span))["buckets"]
        assert [each["seconds"] for each in buckets] == [50.0, 10.0, 0.0, 0.0]
        assert [each["busySlotSeconds"] for each in buckets] == [100.0, 20.0, 0.0, 0.0]


@pytest.mark.parametrize("path", ["/detent/cluster/holds", "/detent/cluster/usage"])
async def test_an_empty_time_range_or_no_bucket_is_a_bad_request(cluster: Cluster, path: str):
    query = {"from": "2030-01-01T00:00:00Z", "to": "2030-01-01T00:00:00"}
    assert (await cluster.client.get(path, params=query)).status_code == 400
    assert (await cluster.client.get("/detent/cluster/usage", params={"buckets": 0})).status_code == 400
    old = await cluster.client.get("/detent/cluster/usage", params={"from": "1900-01-01T00:00:00Z"})
    assert (old.status_code, "at most 366 days" in old.text) == (400, True)


async def test_checkpoints_are_listed_in_pages(cluster: Cluster):
    seeded = await seed_cluster(cluster)
    task = cluster.as_task(seeded.allocation)
    for number in range(5):
        body = {"uuid": checkpoint_uuid(number), "taskId": seeded.task, "metadata": {"steps_completed": 10 + number}}
        await cluster.post("/api/v1/checkpoints", body | {"resources": {"a/": 0, "a/b": 4}}, **task)
    first = await cluster.get("/detent/checkpoints", limit=4)
    assert [c["uuid"] for c in first["checkpoints"]] == [checkpoint_uuid(n) for n in (4, 3, 2, 1)]
    assert (first["checkpoints"][0]["isLatest"], first["checkpoints"][1]["isLatest"]) == (True, False)
    assert (first["checkpoints"][0]["files"], first["checkpoints"][0]["size"]) == (1, 4)
    rest = await cluster.get("/detent/checkpoints", limit=4, before=first["next"])
    assert rest["next"] is None
    oldest = rest["checkpoints"][-1]
    assert (oldest["uuid"], oldest["isBest"], oldest["validation"]) == (seeded.checkpoint, True, 0.5)
    assert not rest["checkpoints"][0]["isBest"]
    assert oldest["experimentName"] == "tiny"
    await cluster.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [checkpoint_uuid(4)]})
    of_one = await cluster.get("/detent/experiments/1/checkpoints", state="STATE_DELETED")
    assert [(c["uuid"], c["state"]) for c in of_one["checkpoints"]] == [(checkpoint_uuid(4), "STATE_DELETED")]
    for path, query in (("/detent/checkpoints", {"experimentId": 2}), ("/detent/experiments/2/checkpoints", {})):
        assert (await cluster.client.get(path, params=query)).status_code == 404
    for before in ("x", "-", "9" * 30, "²-a"):
        assert (await cluster.client.get("/detent/checkpoints", params={"before": before})).status_code == 400
    assert (await cluster.client.get("/detent/checkpoints", params={"limit": 501})).status_code == 400


async def test_events_are_listed_in_pages_and_filtered(cluster: Cluster):
    await cluster.create(activate=False)
    await cluster.client.patch("/api/v1/experiments/1", json={"name": "other"})
    newest = await cluster.get("/detent/events", limit=2)
    assert newest["events"][0]["text"] == "admin changed name of experiment 1"
    assert newest["next"] == newest["events"][1]["id"]
    older = await cluster.get("/detent/events", before=newest["next"])
    assert older["events"]
    assert all(event["id"] < newest["next"] for event in older["events"])
    assert older["next"] is None
    about = await cluster.get("/detent/events", targetType="experiment", targetId=1)
    assert [event["kind"] for event in about["events"]] == ["changed", "created"]
    assert {e["kind"] for e in (await cluster.get("/detent/events", kind="logged_in", actor="admin"))["events"]} == {
        "logged_in"
    }
    assert (await cluster.get("/detent/events", actor="nobody"))["events"] == []


async def search_events(cluster: Cluster, text: str, **more: Any) -> list[str]:
    return [event["text"] for event in (await cluster.get("/detent/events", search=text, **more))["events"]]


async def test_events_are_found_by_any_words_of_their_sentences(cluster: Cluster):
    await cluster.create(CONFIG.replace("tiny", "'half \"100%_off\" é'"), activate=False)
    await cluster.client.post("/api/v1/experiments/1/activate")
    await cluster.client.post("/api/v1/experiments/1/pause")
    await cluster.client.post("/api/v1/experiments/1/kill")
    every = (await cluster.get("/detent/events", limit=500))["events"]
    assert len(every) > 4
    for event in every:
        for words in (event["text"], *event["text"].split(), event["text"].upper()):
            assert event["text"] in await search_events(cluster, words, limit=500), (words, event)
    # The activation, which was from PAUSED, is not found. An attempt may have ended because of the pause.
    paused = [
        text for text in await search_events(cluster, "PAUSED admin experiment") if not text.startswith("attempt")
    ]
    assert paused == ["admin paused experiment 1"]
    assert await search_events(cluster, "100%_off") == ['admin created experiment 1 (half "100%_off" é)']
    assert await search_events(cluster, "100__off") == []
    await cluster.create(CONFIG.replace("tiny", "Ä-Test"), activate=False)
    for word in ("Ä-Test", "ä-test", "Ä-TEST"):
        assert await search_events(cluster, word) == ["admin created experiment 2 (Ä-Test)"]
    assert await search_events(cluster, "100%off") == []


async def test_a_search_of_events_is_paged_and_combined_with_filters(cluster: Cluster):
    for experiment_id in range(1, 4):
        await cluster.create(activate=False)
        await cluster.client.patch(f"/api/v1/experiments/{experiment_id}", json={"name": "other"})
    first = await cluster.get("/detent/events", search="created", limit=2)
    assert [event["targetId"] for event in first["events"]] == ["3", "2"]
    rest = await cluster.get("/detent/events", search="created", limit=2, before=first["next"], targetType="experiment")
    assert [event["targetId"] for event in rest["events"]] == ["1"]
    assert rest["next"] is None
    assert await search_events(cluster, "created", actor="nobody") == []


async def test_the_next_page_of_an_event_search_starts_where_the_examination_stopped(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(search_queries, "MAX_EXAMINED", 1)
    await cluster.create(activate=False)
    for _ in range(2):
        await cluster.client.post("/api/v1/experiments/1/activate")
        await cluster.client.post("/api/v1/experiments/1/pause")
    page = await cluster.get("/detent/events", search="admin activated experiment", limit=1)
    texts = [event["text"] for event in page["events"]]
    while page["next"] is not None:
        page = await cluster.get("/detent/events", search="admin activated experiment", limit=1, before=page["next"])
        texts += [event["text"] for event in page["events"]]
    assert texts == ["admin activated experiment 1"] * 2


async def test_a_search_of_events_has_at_most_twenty_words(cluster: Cluster):
    answer = await cluster.client.get("/detent/events", params={"search": "a " * 21})
    assert answer.status_code == 400
    assert "at most 20 words, not 21" in answer.text


async def test_every_reading_route_needs_a_login(cluster: Cluster):
    paths = ["cluster/overview", "cluster/holds", "cluster/usage", "events", "checkpoints", "session"]
    paths += ["experiments/1/status", "experiments/1/timeline", "experiments/1/config", "experiments/1/checkpoints"]
    for path in paths:
        assert (await cluster.client.get(f"/detent/{path}", headers={"Authorization": ""})).status_code == 401, path
