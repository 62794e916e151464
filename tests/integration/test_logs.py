"""Logs over the API: batches of output, filters, and following a log until its end."""

import asyncio
import json

import pytest
from tests.support.cluster import Cluster

from determined_master.api.queries import log_tail
from determined_master.logs import repository
from determined_master.logs.repository import Selection


async def setup(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    return agent, desired


async def ship(cluster: Cluster, desired, start, end, *texts, **more):
    lines = [{"timestamp": 1_700_000_000.5 + i, "log": text, **more} for i, text in enumerate(texts)]
    body = {
        "container_id": desired.container_id,
        "allocation_id": desired.allocation_id,
        "task_id": desired.spec.task_id,
    }
    headers = {"Authorization": f"Bearer {cluster.master.secrets.join_token}"}
    answer = await cluster.client.post(
        "/detent/agents/one/output", json={**body, "start": start, "end": end, "lines": lines}, headers=headers
    )
    assert answer.status_code == 200, answer.text
    return answer.json()["committed"]


async def read(cluster: Cluster, **query) -> list[dict]:
    """Returns the lines of the log, without the line break that ends each of them."""
    answer = await cluster.client.get("/api/v1/trials/1/logs", params=query)
    assert answer.status_code == 200, answer.text
    assert "\n\n" not in answer.text
    lines = [json.loads(line)["result"] for line in answer.text.splitlines()]
    assert all(line["log"].endswith("\n") for line in lines)
    return [line | {"log": line["log"].removesuffix("\n")} for line in lines]


async def test_a_batch_sent_twice_is_stored_once(cluster: Cluster):
    _, desired = await setup(cluster)
    assert await ship(cluster, desired, 0, 10, "a") == 10
    assert await ship(cluster, desired, 0, 10, "a") == 10
    assert await ship(cluster, desired, 10, 20, "b") == 20
    assert [line["log"] for line in await read(cluster)] == ["a", "b"]


async def test_a_batch_after_a_gap_is_not_stored_and_answered_with_the_committed_offset(cluster: Cluster):
    _, desired = await setup(cluster)
    assert await ship(cluster, desired, 50, 60, "later") == 0
    assert await read(cluster) == []


async def test_a_line_ends_with_one_line_break_however_it_was_sent(cluster: Cluster):
    _, desired = await setup(cluster)
    await ship(cluster, desired, 0, 1, "bare", "with its end\n", "")
    answer = await cluster.client.get("/api/v1/trials/1/logs")
    lines = [json.loads(line)["result"] for line in answer.text.splitlines()]
    assert [line["log"] for line in lines] == ["bare\n", "with its end\n", "\n"]
    assert [line["message"].count("\n") for line in lines] == [1, 1, 1]


async def test_the_message_of_a_line_has_time_container_rank_and_level(cluster: Cluster):
    _, desired = await setup(cluster)
    await ship(cluster, desired, 0, 1, "hello", level="INFO", rank_id=3)
    line = (await read(cluster))[0]
    assert line["message"] == f"[2023-11-14T22:13:20.500000Z] {desired.container_id[:8]} [rank=3] || INFO: hello\n"
    assert (line["level"], line["rankId"], line["trialId"]) == ("LOG_LEVEL_INFO", 3, 1)


async def test_logs_are_filtered_by_level_rank_stream_and_text(cluster: Cluster):
    _, desired = await setup(cluster)
    await ship(cluster, desired, 0, 1, "one", level="INFO", rank_id=0)
    await ship(cluster, desired, 1, 2, "two", level="ERROR", rank_id=1, stdtype="stderr")
    await ship(cluster, desired, 2, 3, "three 100%")

    async def texts(**query):
        return [line["log"] for line in await read(cluster, **query)]

    assert await texts(levels=["LOG_LEVEL_ERROR", "LOG_LEVEL_CRITICAL"]) == ["two"]
    assert await texts(rankIds=[1]) == ["two"]
    assert await texts(rankIds=[-1]) == ["three 100%"]
    assert await texts(stdtypes=["stderr"]) == ["two"]
    assert await texts(searchText="0%") == ["three 100%"]
    assert await texts(searchText="t.o$", enableRegex=True) == ["two"]
    assert await texts(limit=1) == ["one"]
    assert await texts(limit=2, orderBy="ORDER_BY_DESC") == ["three 100%", "two"]
    assert (
        await cluster.client.get("/api/v1/trials/1/logs", params={"searchText": "(", "enableRegex": True})
    ).text.startswith('{"error"')


async def test_a_regular_expression_is_applied_to_all_pages(cluster: Cluster, monkeypatch):
    monkeypatch.setattr(log_tail, "PAGE_MATCHED", 2)
    _, desired = await setup(cluster)
    for number, text in enumerate(("a1", "b", "a2", "a3", "b", "a4")):
        await ship(cluster, desired, number, number + 1, text)
    query = {"searchText": "^a.$", "enableRegex": True}
    assert [line["log"] for line in await read(cluster, **query)] == ["a1", "a2", "a3", "a4"]
    assert [line["log"] for line in await read(cluster, **query, limit=3, orderBy="ORDER_BY_DESC")] == [
        "a4",
        "a3",
        "a2",
    ]


async def test_a_regular_expression_of_nested_repetitions_blocks_no_other_request(cluster: Cluster):
    _, desired = await setup(cluster)
    await ship(cluster, desired, 0, 1, "a" * 5000 + "b")
    request = cluster.client.get("/api/v1/trials/1/logs", params={"searchText": "(a+)+$", "enableRegex": True})
    endless = asyncio.ensure_future(request)
    async with asyncio.timeout(60):
        while not endless.done():
            assert (await asyncio.wait_for(cluster.client.get("/api/v1/me"), 2)).status_code == 200
    assert endless.result().status_code == 200
    assert endless.result().text == ""


async def test_following_a_log_ends_with_the_trial_and_misses_no_line(cluster: Cluster):
    agent, desired = await setup(cluster)
    following = asyncio.ensure_future(cluster.client.get("/api/v1/trials/1/logs", params={"follow": True}))
    await ship(cluster, desired, 0, 1, "a")
    await agent.exit(desired)
    answer = await asyncio.wait_for(following, 20)
    assert [json.loads(line)["result"]["log"] for line in answer.text.splitlines()] == [
        "a\n",
        "resources exited successfully with a zero exit code\n",
    ]


@pytest.mark.parametrize("path", ["trials/1", "tasks/{}"])
async def test_followed_log_fields_are_sent_again_with_new_values_until_the_end(cluster: Cluster, path: str):
    agent, desired = await setup(cluster)
    await ship(cluster, desired, 0, 1, "a")
    where = f"/api/v1/{path.format(desired.spec.task_id)}/logs/fields"
    first = json.loads((await cluster.client.get(where)).text)["result"]
    assert (first["rankIds"], first["containerIds"]) == ([], [desired.container_id])
    following = asyncio.ensure_future(cluster.client.get(where, params={"follow": True}))
    await ship(cluster, desired, 1, 2, "b", rank_id=1)
    await ship(cluster, desired, 2, 3, "c", rank_id=0)
    await agent.exit(desired)
    answer = await asyncio.wait_for(following, 20)
    answers = [json.loads(line)["result"] for line in answer.text.splitlines()]
    assert answers[-1] == first | {"rankIds": [0, 1], "sources": ["master", "task"]}
    assert [set(each["rankIds"]) for each in answers] == sorted(({*each["rankIds"]} for each in answers), key=len)


async def test_a_task_may_not_write_another_tasks_log(cluster: Cluster):
    _, desired = await setup(cluster)
    task = cluster.as_task(desired.allocation_id)
    own = {
        "logs": [
            {
                "task_id": desired.spec.task_id,
                "log": "x",
                "level": "ERROR",
                "timestamp": "2026-01-01T00:00:00.123456789Z",
            }
        ]
    }
    assert (await cluster.post("/api/v1/task/logs", own, **task)).status_code == 200
    assert (await read(cluster))[0]["level"] == "LOG_LEVEL_ERROR"
    other = {"logs": [{"taskId": "2.other", "log": "x"}]}
    assert (await cluster.post("/api/v1/task/logs", other, **task)).status_code == 403


async def test_a_page_of_a_log_ends_with_the_line_that_fills_it_and_no_line_is_left_out(cluster: Cluster):
    _, desired = await setup(cluster)
    texts = [f"{number} " + "w" * size for number, size in enumerate((200_000, 200_000, 1, 700_000, 1, 1))]
    await ship(cluster, desired, 0, 60, *texts)
    async with cluster.master.database.read() as session:
        page = await repository.page(session, desired.spec.task_id, Selection(), after_id=0, most=500)
    assert [len(row.log) for row in page] == [200_002, 200_002]
    assert [line["log"] for line in await read(cluster)] == texts
    assert [line["log"] for line in await read(cluster, orderBy="ORDER_BY_DESC")] == texts[::-1]
    assert [line["log"] for line in await read(cluster, limit=4)] == texts[:4]
    download = await cluster.client.get("/detent/trials/1/logs/download")
    assert [line.rpartition("|| ")[2] for line in download.text.splitlines()] == texts
