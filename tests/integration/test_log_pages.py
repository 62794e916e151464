"""Logs by page: both directions, filters and searches that are bounded, long lines, the first error, downloads."""

import asyncio
import subprocess
from typing import Any

import pytest
from tests.support.cluster import Cluster
from tests.support.database_rows import write_rows

from determined_master.logs import log_pager

Line = tuple[str, dict[str, Any]]


async def start_task(cluster: Cluster) -> str:
    agent = await cluster.join()
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    assert desired.spec is not None
    return desired.spec.task_id


async def ship(cluster: Cluster, task_id: str, *texts: str, **more: Any) -> None:
    lines = [{"taskId": task_id, "log": text, **more} for text in texts]
    answer = await cluster.post("/api/v1/task/logs", {"logs": lines})
    assert answer.status_code == 200, answer.text


async def fill(cluster: Cluster, task_id: str, count: int, text: str = "line {}") -> None:
    """Adds lines directly to the database, in a thread: on the loop it would wait for a commit of the same loop."""
    rows = [(task_id, number, text.format(number)) for number in range(count)]
    statement = (
        "INSERT INTO task_logs (task_id, timestamp, level, stdtype, source, log, is_error)"
        " VALUES (?, ?, 'INFO', 'stdout', 'task', ?, 0)"
    )
    await asyncio.to_thread(write_rows, cluster.master.settings.data, statement, rows)


async def page(cluster: Cluster, **query: Any) -> dict[str, Any]:
    body: dict[str, Any] = await cluster.get("/detent/trials/1/logs", **query)
    return body


def texts(body: dict[str, Any]) -> list[str]:
    return [line["text"] for line in body["lines"]]


async def test_an_empty_log_has_an_empty_page(cluster: Cluster):
    await start_task(cluster)
    nothing = {"lines": [], "atStart": True, "atEnd": True, "firstId": None, "lastId": None, "scannedTo": None}
    assert await page(cluster) == nothing
    assert await page(cluster, search="x") == nothing
    assert await cluster.get("/detent/trials/1/logs/first-error") == {"line": None}
    extent = await cluster.get("/detent/trials/1/logs/extent")
    assert extent == {"count": 0, "firstId": None, "lastId": None, "errors": 0, "number": None}
    assert (await cluster.client.get("/detent/trials/1/logs/download")).text == ""
    assert (await cluster.client.get("/detent/trials/9/logs")).status_code == 404
    assert (await cluster.client.get("/detent/logs/lines/9")).status_code == 404


async def test_an_empty_line_is_a_line(cluster: Cluster):
    task_id = await start_task(cluster)
    await ship(cluster, task_id, "", "after it")
    assert texts(await page(cluster)) == ["", "after it"]
    assert texts(await page(cluster, search="after")) == ["after it"]


async def test_log_pages_in_both_directions_contain_every_line(cluster: Cluster):
    await fill(cluster, await start_task(cluster), 25)
    newest = await page(cluster, limit=10)
    assert (newest["atStart"], newest["atEnd"], newest["lastId"]) == (False, True, 25)
    assert texts(newest) == [f"line {i}" for i in range(15, 25)]
    middle = await page(cluster, limit=10, before=newest["firstId"])
    oldest = await page(cluster, limit=10, before=middle["firstId"])
    assert (middle["atStart"], middle["atEnd"], oldest["atStart"], oldest["atEnd"]) == (False, False, True, False)
    assert texts(oldest) + texts(middle) + texts(newest) == [f"line {i}" for i in range(25)]
    first = await page(cluster, limit=20, after=0)
    rest = await page(cluster, limit=20, after=first["lastId"])
    assert (first["atStart"], first["atEnd"], rest["atStart"], rest["atEnd"]) == (True, False, False, True)
    assert texts(first) + texts(rest) == [f"line {i}" for i in range(25)]
    around = await page(cluster, limit=6, around=10)
    assert [line["id"] for line in around["lines"]] == [7, 8, 9, 10, 11, 12]
    refused = await cluster.client.get("/detent/trials/1/logs", params={"before": 3, "after": 1})
    assert refused.status_code == 400


async def test_log_pages_are_filtered_and_searched(cluster: Cluster):
    task_id = await start_task(cluster)
    await ship(cluster, task_id, "Epoch 1: 100%", level="INFO", rankId=0, allocationId=f"{task_id}.1")
    await ship(cluster, task_id, "ValueError: bad", level="LOG_LEVEL_ERROR", rankId=1, stdtype="stderr", source="agent")
    await ship(cluster, task_id, "epoch_2 (100)", containerId="c", agentId="a")

    async def search(**query: Any) -> list[str]:
        return [text[:5] for text in texts(await page(cluster, **query))]

    assert await search(levels=["ERROR", "LOG_LEVEL_CRITICAL"]) == ["Value"]
    assert await search(levels=[""]) == ["epoch"]
    assert await search(rankIds=[1, -1]) == ["Value", "epoch"]
    assert await search(stdtypes=["stderr"], sources=["agent"]) == ["Value"]
    assert await search(allocationIds=[f"{task_id}.1"]) == ["Epoch"]
    assert await search(search="EPOCH") == ["Epoch", "epoch"]
    assert await search(search="0%") == ["Epoch"]
    assert await search(search="h_2") == ["epoch"]
    assert await search(search=r"^epoch.\d", regex=True) == ["epoch"]
    assert await search(search=r"\(1|Value", regex=True, before=3) == ["Value"]
    lines = (await page(cluster))["lines"]
    assert [(line["level"], line["rank"], line["runId"]) for line in lines] == [
        ("INFO", 0, 1),
        ("ERROR", 1, 0),
        ("", None, 0),
    ]
    await ship(cluster, task_id, "ÄRGER")
    assert await search(search="ärger") == ["ÄRGER"]
    assert set(lines[2]) == {
        *("id", "time", "level", "rank", "runId", "allocationId"),
        *("containerId", "agentId", "source", "stdtype", "text", "length"),
    }


@pytest.mark.parametrize("query", [{"search": "needle"}, {"search": "needl.", "regex": True}, {"levels": ["DEBUG"]}])
async def test_a_search_examines_a_bounded_number_of_lines_and_returns_where_to_continue(
    cluster: Cluster, query: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_pager, "SCANNED", 1500)
    task_id = await start_task(cluster)
    await ship(cluster, task_id, "needle", level="DEBUG")
    await fill(cluster, task_id, 4000)
    before, requests = None, 0
    while True:
        body = await page(cluster, **query, **({} if before is None else {"before": before}))
        requests += 1
        if body["scannedTo"] is None:
            break
        assert not body["lines"]
        assert not body["atStart"]
        before = body["scannedTo"]
    assert (requests, texts(body), body["atStart"]) == (3, ["needle"], True)
    forward = await page(cluster, **query, after=1)
    assert (forward["lines"], forward["scannedTo"], forward["atEnd"], forward["atStart"]) == ([], 1501, False, False)


async def test_a_search_with_nested_repetitions_takes_linear_time(cluster: Cluster):
    task_id = await start_task(cluster)
    await ship(cluster, task_id, "a" * 5000 + "b", "aaaa")
    answer = await cluster.client.get("/detent/trials/1/logs", params={"search": "(a+)+$", "regex": True})
    assert answer.status_code == 200, answer.text
    assert [line["text"] for line in answer.json()["lines"]] == ["aaaa"]


@pytest.mark.parametrize("wrong", ["(", "*", "a{2000}", r"(a)\1", "a(?=b)", "(?<!a)b"])
async def test_an_unsupported_regular_expression_is_refused_with_the_reason(cluster: Cluster, wrong: str):
    task_id = await start_task(cluster)
    await ship(cluster, task_id, "ab")
    answer = await cluster.client.get("/detent/trials/1/logs", params={"search": wrong, "regex": True})
    assert answer.status_code == 400, answer.text
    assert "not a supported regular expression" in answer.json()["error"]["error"]
    assert "Lookaround" in answer.json()["error"]["error"]


async def test_a_search_of_a_log_starts_no_process(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    """There are forty searches at once, none of which would end by backtracking."""
    task_id = await start_task(cluster)
    await ship(cluster, task_id, *(["a" * 5000 + "b"] * 200))
    processes: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *argv, **_: processes.append(argv))  # asyncio starts them so too
    query = {"search": "(a+)+$", "regex": True}
    answers = await asyncio.gather(*(cluster.client.get("/detent/trials/1/logs", params=query) for _ in range(40)))
    assert {answer.status_code for answer in answers} == {200}
    assert not processes


async def test_a_line_of_ten_megabytes_is_truncated_in_pages_and_returned_whole_by_its_id(cluster: Cluster):
    task_id = await start_task(cluster)
    long = "ü" * 10_000_000
    await ship(cluster, task_id, long, "\x1b[31mred\x1b[0m\x00\x07")
    first, second = (await page(cluster))["lines"]
    assert (first["text"], first["length"]) == (long[:10_000], 10_000_000)
    assert second["text"] == "\x1b[31mred\x1b[0m\u2400\x07"
    whole = await cluster.get(f"/detent/logs/lines/{first['id']}")
    assert whole["line"]["text"] == long


async def test_the_first_error_and_the_extent_of_a_log_are_returned(cluster: Cluster):
    task_id = await start_task(cluster)
    await ship(cluster, task_id, "fine", "Error rate 3")
    await ship(cluster, task_id, "Traceback (most recent call last):", "ValueError: x", rankId=2)
    first = (await cluster.get("/detent/trials/1/logs/first-error"))["line"]
    assert (first["text"], first["rank"]) == ("Traceback (most recent call last):", 2)
    extent = await cluster.get("/detent/trials/1/logs/extent")
    assert extent == {"count": 4, "firstId": 1, "lastId": 4, "errors": 2, "number": None}
    await ship(cluster, task_id, "more")
    assert (await cluster.get("/detent/trials/1/logs/extent"))["count"] == 5


async def test_the_first_error_is_the_earliest_of_its_attempt_and_the_tasks_own(cluster: Cluster):
    """Lines of two agents arrive in any order; those of master and agent count only if the task wrote none."""
    task_id = await start_task(cluster)

    def at(second: int, run: int, source: str = "task") -> dict[str, Any]:
        time = f"2026-01-01T10:00:{second:02}Z"
        return {"timestamp": time, "allocationId": f"{task_id}.{run}", "source": source}

    async def first(**query: str) -> str:
        return str((await cluster.get("/detent/trials/1/logs/first-error", **query))["line"]["text"])

    await ship(cluster, task_id, "ERROR: attempt 1 of 2 failed", level="ERROR", **at(1, 1, "master"))
    assert await first() == "ERROR: attempt 1 of 2 failed"
    await ship(cluster, task_id, "ConnectionError: peer is gone", **at(9, 1))
    await ship(cluster, task_id, "ValueError: mine", **at(7, 1))
    await ship(cluster, task_id, "train.py: error: unrecognized arguments: --x", **at(3, 2))
    assert await first() == "ValueError: mine"
    assert await first(allocationId=f"{task_id}.2") == "train.py: error: unrecognized arguments: --x"


async def test_the_quoted_line_of_an_earlier_attempt_comes_before_the_error_of_a_later_one(cluster: Cluster):
    task_id = await start_task(cluster)
    first, second = f"{task_id}.1", f"{task_id}.2"
    await ship(cluster, task_id, "loss 0.5", "no data", allocationId=first)
    cause = "attempt 1 of 2 failed: no data (exit code 1); attempt 2 of 2 follows"
    await ship(cluster, task_id, cause, level="ERROR", allocationId=first, source="master")
    await ship(cluster, task_id, "no data", "ValueError: x", allocationId=second)
    line = (await cluster.get("/detent/trials/1/logs/first-error"))["line"]
    assert (line["text"], line["allocationId"]) == ("no data", first)
    later = (await cluster.get("/detent/trials/1/logs/first-error", allocationId=second))["line"]
    assert later["text"] == "ValueError: x"


async def test_lines_are_numbered_within_their_own_log(cluster: Cluster):
    first = await start_task(cluster)
    await fill(cluster, "another", 7)
    await fill(cluster, first, 5)
    await fill(cluster, "another", 3)
    await fill(cluster, first, 4)
    ids = [line["id"] for line in (await page(cluster))["lines"]]
    assert ids == [*range(8, 13), *range(16, 20)]
    numbers = [(await cluster.get("/detent/trials/1/logs/extent", line=each))["number"] for each in ids]
    assert numbers == list(range(1, 10))


async def test_a_download_is_the_whole_log_as_formatted_text(cluster: Cluster):
    task_id = await start_task(cluster)
    await fill(cluster, task_id, 1200)
    await ship(cluster, task_id, "end", level="INFO", rankId=3, containerId="0123456789")
    answer = await cluster.client.get("/detent/trials/1/logs/download")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="trial-1.log"'
    lines = answer.text.splitlines()
    assert len(lines) == 1201
    assert lines[-1].endswith("01234567 [rank=3] || INFO: end")


async def test_a_search_around_a_line_near_the_end_says_where_it_goes_on_among_older_lines(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_pager, "SCANNED", 1500)
    task_id = await start_task(cluster)
    await ship(cluster, task_id, "needle")
    await fill(cluster, task_id, 2000)
    body = await page(cluster, search="needle", around=1990)
    assert (body["lines"], body["atStart"], body["atEnd"], body["scannedTo"]) == ([], False, True, 490)
    body = await page(cluster, search="needle", before=body["scannedTo"])
    assert (texts(body), body["atStart"]) == (["needle"], True)
