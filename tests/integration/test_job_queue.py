"""The job queue: its order, and the changes that owners and admins may make."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster, login, open_cluster
from tests.support.waiting import eventually

PATH = "/api/v1/job-queues"


async def queue(cluster: Cluster, pool: str = "default", **query: Any) -> list[dict[str, Any]]:
    answer = await cluster.get("/api/v1/job-queues-v2", resourcePool=pool, **query)
    return [each["full"] for each in answer["jobs"]]


async def create_waiting(cluster: Cluster, count: int) -> list[str]:
    """Creates experiments that wait for slots; returns the ids of all jobs in the order of the queue."""
    before = len(await queue(cluster))
    for _ in range(count):
        await cluster.create()
    await eventually(lambda: _has(cluster, before + count))
    return [each["jobId"] for each in await queue(cluster)]


async def _has(cluster: Cluster, count: int) -> bool:
    return len(await queue(cluster)) >= count


async def update(cluster: Cluster, *updates: dict[str, Any]) -> str:
    """Returns the error, or an empty text."""
    answer = await cluster.post(PATH, {"updates": list(updates)})
    return "" if answer.status_code == 200 else f"{answer.status_code} {answer.json()['error']['error']}"


async def test_the_queue_shows_running_jobs_and_the_number_ahead_of_waiting_ones(cluster: Cluster):
    agent = await cluster.join(slots=1)
    await cluster.create(CONFIG + "resources: {priority: 7, weight: 2.5}\n")
    await agent.wait_for_desired()
    await cluster.create()
    await cluster.create()
    await eventually(lambda: _has(cluster, 3))
    jobs = await queue(cluster)
    assert [(each["summary"]["state"], each["summary"]["jobsAhead"]) for each in jobs] == [
        ("STATE_SCHEDULED", 0),
        ("STATE_QUEUED", 0),
        ("STATE_QUEUED", 1),
    ]
    first = jobs[0]
    assert (first["type"], first["entityId"], first["name"]) == ("TYPE_EXPERIMENT", "1", "tiny")
    assert (first["priority"], first["weight"], first["requestedSlots"], first["allocatedSlots"]) == (7, 2.5, 1, 1)
    assert [each["entityId"] for each in await queue(cluster, states="STATE_QUEUED")] == ["2", "3"]
    assert [each["entityId"] for each in await queue(cluster, orderBy="ORDER_BY_DESC", limit=1)] == ["3"]
    stats = (await cluster.get("/api/v1/job-queues/stats"))["results"]
    assert stats == [{"resourcePool": "default", "stats": {"queuedCount": 2, "scheduledCount": 1}, "aggregates": []}]


async def test_a_job_moves_ahead_of_another_and_its_trial_starts_first(cluster: Cluster):
    first, second, third = await create_waiting(cluster, 3)
    assert await update(cluster, {"jobId": third, "aheadOf": first}) == ""
    assert [each["jobId"] for each in await queue(cluster)] == [third, first, second]
    assert await update(cluster, {"jobId": third, "behindOf": first}) == ""
    assert [each["jobId"] for each in await queue(cluster)] == [first, third, second]
    agent = await cluster.join(slots=2)
    assert {each.allocation_id.split(".")[0] for each in await agent.wait_for_desired(2)} == {"1", "3"}


async def test_a_batch_of_job_changes_is_applied_whole_or_not_at_all(cluster: Cluster):
    first, second = await create_waiting(cluster, 2)
    error = await update(cluster, {"jobId": first, "priority": 60}, {"jobId": second, "priority": 0}, {"jobId": "gone"})
    assert error.startswith("400 a priority must be between 1 and 99; job 'gone' not found")
    assert [each["priority"] for each in await queue(cluster)] == [42, 42]
    assert await update(cluster, {"jobId": first, "priority": 60}, {"jobId": second, "weight": 3}) == ""
    assert [(each["jobId"], each["priority"], each["weight"]) for each in await queue(cluster)] == [
        (second, 42, 3),
        (first, 60, 1),
    ]
    resources = (await cluster.get("/api/v1/experiments/1"))["experiment"]["config"]["resources"]
    assert resources["priority"] == 60


async def test_a_dry_run_says_what_would_change_and_changes_nothing(cluster: Cluster):
    first, second, third = await create_waiting(cluster, 3)
    body = {"updates": [{"jobId": third, "aheadOf": first}], "dryRun": True}
    answer = (await cluster.post("/detent/job-queues", body)).json()
    assert answer == {"changes": [{"jobId": third, "fields": ["position"], "passed": [first, second]}]}
    assert [each["jobId"] for each in await queue(cluster)] == [first, second, third]


async def test_owners_worsen_and_reorder_their_own_jobs_and_no_others(cluster: Cluster):
    (admins,) = await create_waiting(cluster, 1)
    await login(cluster.client, "determined")
    await create_waiting(cluster, 2)
    mine, other = (each["jobId"] for each in await queue(cluster) if each["username"] == "determined")
    assert await update(cluster, {"jobId": mine, "priority": 50}) == ""
    assert await update(cluster, {"jobId": mine, "priority": 42}) == ""
    assert await update(cluster, {"jobId": other, "aheadOf": mine}) == ""
    assert "403 only an admin may give a job a better priority" in await update(
        cluster, {"jobId": mine, "priority": 41}
    )
    assert "403 only an admin may move a job ahead" in await update(cluster, {"jobId": mine, "aheadOf": admins})
    assert "belongs to admin" in await update(cluster, {"jobId": admins, "priority": 90})
    experiment = (await cluster.client.patch("/api/v1/experiments/2", json={"resources": {"priority": 3}})).json()
    assert "better priority than its pool's default" in experiment["error"]["error"]


async def test_a_moved_job_starts_in_the_other_pool(tmp_path: Path):
    pools = [{"pool_name": "default"}, {"pool_name": "big", "description": "eight slots"}]
    async with open_cluster(tmp_path, resource_pools=pools) as cluster:
        (job,) = await create_waiting(cluster, 1)
        big = await cluster.join("big", slots=8, pool="big")
        assert "unknown resource pool" in await update(cluster, {"jobId": job, "resourcePool": "bigg"})
        assert await update(cluster, {"jobId": job, "resourcePool": "big"}) == ""
        (desired,) = await big.wait_for_desired()
        assert desired.allocation_id.startswith("1.")
        assert (await cluster.get("/api/v1/experiments/1"))["experiment"]["resourcePool"] == "big"
        assert await queue(cluster) == []
        assert [each["jobId"] for each in await queue(cluster, "big")] == [job]


async def test_a_place_in_the_queue_of_another_pool_is_refused_until_the_job_has_moved_there(tmp_path: Path):
    pools = [{"pool_name": "default"}, {"pool_name": "big"}]
    async with open_cluster(tmp_path, resource_pools=pools) as cluster:
        job, other = await create_waiting(cluster, 2)
        assert await update(cluster, {"jobId": other, "resourcePool": "big"}) == ""
        expected = (
            f"400 job {job} is not in the queue of the pool big before it has moved there; "
            "change its pool first, and then its place"
        )
        assert await update(cluster, {"jobId": job, "resourcePool": "big", "aheadOf": other}) == expected
        assert [each["jobId"] for each in await queue(cluster)] == [job]
        assert await update(cluster, {"jobId": job, "resourcePool": "big"}) == ""

        async def has_moved() -> bool:
            return len(await queue(cluster, "big")) == 2

        await eventually(has_moved)
        assert await update(cluster, {"jobId": job, "aheadOf": other}) == ""
        assert [each["jobId"] for each in await queue(cluster, "big")] == [job, other]


async def test_a_running_job_that_is_moved_is_preempted_and_starts_in_the_other_pool(tmp_path: Path):
    async with open_cluster(tmp_path, resource_pools=[{"pool_name": "default"}, {"pool_name": "big"}]) as cluster:
        small = await cluster.join("small")
        await cluster.create()
        (desired,) = await small.wait_for_desired()
        await small.run(desired)
        (job,) = [each["jobId"] for each in await queue(cluster)]
        assert await update(cluster, {"jobId": job, "resourcePool": "big"}) == ""
        answer = await cluster.client.get(
            f"/api/v1/allocations/{desired.allocation_id}/signals/preemption", params={"timeout_seconds": 0}
        )
        assert answer.json() == {"preempt": True}
        await cluster.post(f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption", {})
        await small.exit(desired)
        big = await cluster.join("big", pool="big")
        (again,) = await big.wait_for_desired()
        assert again.allocation_id == desired.allocation_id.rpartition(".")[0] + ".2"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"jobId": "gone", "priority": 3}, "404 job 'gone' not found"),
        ({"weight": 0}, "400 a weight must be greater than 0"),
        ({"aheadOf": "gone"}, "400 job gone is not in the queue"),
        ({"aheadOf": "a", "behindOf": "b"}, "400 give ahead_of or behind_of, not both"),
    ],
)
async def test_an_invalid_change_of_a_job_is_refused_with_the_reason(
    cluster: Cluster, change: dict[str, Any], expected: str
):
    (job,) = await create_waiting(cluster, 1)
    assert (await update(cluster, {"jobId": job, **change})).startswith(expected)


async def test_an_unknown_pool_or_state_is_named(cluster: Cluster):
    answer = await cluster.client.get("/api/v1/job-queues-v2", params={"resourcePool": "defalt"})
    assert answer.json()["error"]["error"] == 'unknown resource pool "defalt"; did you mean "default"?'
    answer = await cluster.client.get("/api/v1/job-queues-v2", params={"states": "STATE_LOST"})
    assert "valid states: STATE_QUEUED" in answer.json()["error"]["error"]
