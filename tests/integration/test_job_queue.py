"""The job queue: its order, and who may change which place."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster, cluster, login
from tests.support.waiting import eventually

PATH = "/api/v1/job-queues"


async def queue(one: Cluster, pool: str = "default", **query: Any) -> list[dict[str, Any]]:
    answer = await one.get("/api/v1/job-queues-v2", resourcePool=pool, **query)
    return [each["full"] for each in answer["jobs"]]


async def waiting(one: Cluster, count: int) -> list[str]:
    """Creates experiments that wait, on a cluster on which nothing runs; returns all jobs, first the oldest."""
    before = len(await queue(one))
    for _ in range(count):
        await one.create()
    await eventually(lambda: _has(one, before + count))
    return [each["jobId"] for each in await queue(one)]


async def _has(one: Cluster, count: int) -> bool:
    return len(await queue(one)) >= count


async def update(one: Cluster, *updates: dict[str, Any]) -> str:
    """Returns the error, or an empty text."""
    answer = await one.post(PATH, {"updates": list(updates)})
    return "" if answer.status_code == 200 else f"{answer.status_code} {answer.json()['error']['error']}"


async def test_the_queue_shows_what_runs_and_how_many_wait_ahead(one: Cluster):
    agent = await one.join(slots=1)
    await one.create(CONFIG + "resources: {priority: 7, weight: 2.5}\n")
    await agent.wished()
    await one.create()
    await one.create()
    await eventually(lambda: _has(one, 3))
    shown = await queue(one)
    assert [(each["summary"]["state"], each["summary"]["jobsAhead"]) for each in shown] == [
        ("STATE_SCHEDULED", 0),
        ("STATE_QUEUED", 0),
        ("STATE_QUEUED", 1),
    ]
    first = shown[0]
    assert (first["type"], first["entityId"], first["name"]) == ("TYPE_EXPERIMENT", "1", "tiny")
    assert (first["priority"], first["weight"], first["requestedSlots"], first["allocatedSlots"]) == (7, 2.5, 1, 1)
    assert [each["entityId"] for each in await queue(one, states="STATE_QUEUED")] == ["2", "3"]
    assert [each["entityId"] for each in await queue(one, orderBy="ORDER_BY_DESC", limit=1)] == ["3"]
    stats = (await one.get("/api/v1/job-queues/stats"))["results"]
    assert stats == [{"resourcePool": "default", "stats": {"queuedCount": 2, "scheduledCount": 1}, "aggregates": []}]


async def test_a_job_moves_ahead_of_another_and_its_trial_starts_first(one: Cluster):
    first, second, third = await waiting(one, 3)
    assert await update(one, {"jobId": third, "aheadOf": first}) == ""
    assert [each["jobId"] for each in await queue(one)] == [third, first, second]
    assert await update(one, {"jobId": third, "behindOf": first}) == ""
    assert [each["jobId"] for each in await queue(one)] == [first, third, second]
    agent = await one.join(slots=2)
    assert {each.allocation_id.split(".")[0] for each in await agent.wished(2)} == {"1", "3"}


async def test_a_batch_is_applied_whole_or_not_at_all(one: Cluster):
    first, second = await waiting(one, 2)
    said = await update(one, {"jobId": first, "priority": 60}, {"jobId": second, "priority": 0}, {"jobId": "gone"})
    assert said.startswith("400 a priority must be between 1 and 99; job 'gone' not found")
    assert [each["priority"] for each in await queue(one)] == [42, 42]
    assert await update(one, {"jobId": first, "priority": 60}, {"jobId": second, "weight": 3}) == ""
    assert [(each["jobId"], each["priority"], each["weight"]) for each in await queue(one)] == [
        (second, 42, 3),
        (first, 60, 1),
    ]
    shown = (await one.get("/api/v1/experiments/1"))["experiment"]["config"]["resources"]
    assert shown["priority"] == 60


async def test_a_dry_run_says_what_would_change_and_changes_nothing(one: Cluster):
    first, second, third = await waiting(one, 3)
    body = {"updates": [{"jobId": third, "aheadOf": first}], "dryRun": True}
    answer = (await one.post("/detent/job-queues", body)).json()
    assert answer == {"changes": [{"jobId": third, "fields": ["position"], "passed": [first, second]}]}
    assert [each["jobId"] for each in await queue(one)] == [first, second, third]


async def test_owners_worsen_and_reorder_their_own_jobs_and_no_others(one: Cluster):
    (admins,) = await waiting(one, 1)
    await login(one.client, "determined")
    await waiting(one, 2)
    mine, other = (each["jobId"] for each in await queue(one) if each["username"] == "determined")
    assert await update(one, {"jobId": mine, "priority": 50}) == ""
    assert await update(one, {"jobId": mine, "priority": 42}) == ""
    assert await update(one, {"jobId": other, "aheadOf": mine}) == ""
    assert "403 only an admin may give a job a better priority" in await update(one, {"jobId": mine, "priority": 41})
    assert "403 only an admin may move a job ahead" in await update(one, {"jobId": mine, "aheadOf": admins})
    assert "belongs to admin" in await update(one, {"jobId": admins, "priority": 90})
    experiment = (await one.client.patch("/api/v1/experiments/2", json={"resources": {"priority": 3}})).json()
    assert "better priority than its pool's default" in experiment["error"]["error"]


async def test_a_moved_job_starts_in_the_other_pool(tmp_path: Path):
    pools = [{"pool_name": "default"}, {"pool_name": "big", "description": "eight slots"}]
    async with cluster(tmp_path, resource_pools=pools) as one:
        (job,) = await waiting(one, 1)
        big = await one.join("big", slots=8, pool="big")
        assert "unknown resource pool" in await update(one, {"jobId": job, "resourcePool": "bigg"})
        assert await update(one, {"jobId": job, "resourcePool": "big"}) == ""
        (wish,) = await big.wished()
        assert wish.allocation_id.startswith("1.")
        assert (await one.get("/api/v1/experiments/1"))["experiment"]["resourcePool"] == "big"
        assert await queue(one) == []
        assert [each["jobId"] for each in await queue(one, "big")] == [job]


async def test_a_running_job_that_is_moved_leaves_with_a_checkpoint_and_follows(tmp_path: Path):
    async with cluster(tmp_path, resource_pools=[{"pool_name": "default"}, {"pool_name": "big"}]) as one:
        small = await one.join("small")
        await one.create()
        (wish,) = await small.wished()
        await small.run(wish)
        (job,) = [each["jobId"] for each in await queue(one)]
        assert await update(one, {"jobId": job, "resourcePool": "big"}) == ""
        asked = await one.client.get(
            f"/api/v1/allocations/{wish.allocation_id}/signals/preemption", params={"timeout_seconds": 0}
        )
        assert asked.json() == {"preempt": True}
        await one.post(f"/api/v1/allocations/{wish.allocation_id}/signals/ack_preemption", {})
        await small.exit(wish)
        big = await one.join("big", pool="big")
        (again,) = await big.wished()
        assert again.allocation_id == wish.allocation_id.rpartition(".")[0] + ".2"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"jobId": "gone", "priority": 3}, "404 job 'gone' not found"),
        ({"weight": 0}, "400 a weight must be greater than 0"),
        ({"aheadOf": "gone"}, "400 job gone is not in the queue"),
        ({"aheadOf": "a", "behindOf": "b"}, "400 give ahead_of or behind_of, not both"),
    ],
)
async def test_a_wrong_change_is_named(one: Cluster, change: dict[str, Any], expected: str):
    (job,) = await waiting(one, 1)
    assert (await update(one, {"jobId": job, **change})).startswith(expected)


async def test_an_unknown_pool_or_state_is_named(one: Cluster):
    answer = await one.client.get("/api/v1/job-queues-v2", params={"resourcePool": "defalt"})
    assert answer.json()["error"]["error"] == 'unknown resource pool "defalt"; did you mean "default"?'
    answer = await one.client.get("/api/v1/job-queues-v2", params={"states": "STATE_LOST"})
    assert "valid states: STATE_QUEUED" in answer.json()["error"]["error"]
