"""Requests generated from the OpenAPI document: none is answered with 500, and lists answer afterwards."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import httpx
import pytest
from tests.support.cluster import Cluster
from tests.support.generated_requests import Generator, Request
from tests.support.seeded_cluster import SeededObjects, seed_cluster

pytestmark = pytest.mark.budget(30, "sends thousands of requests")

SEED = 20261122
ENDLESS = ("/detent/stream",)
ENDING = ("/kill", "/cancel", "/disable", "/early_exit", "/drain", "/delete")
"""Routes that end the task's token. They are requested last."""
SECONDS = 20


@pytest.fixture
def statuses(capsys: pytest.CaptureFixture[str]) -> Iterator[Counter[int]]:
    """Yields a counter of answers by status, and prints it at the end."""
    counts: Counter[int] = Counter()
    yield counts
    with capsys.disabled():
        print(f"{sum(counts.values())} generated requests by status: {dict(sorted(counts.items()))}")


async def sign_in(cluster: Cluster) -> None:
    """Signs in by a link as a user whose id no request contains. Checking a password would take most of the time."""
    token, _expires = await cluster.master.users.make_link("tester", "test")
    token, _row = await cluster.master.users.login_by_link(token)
    cluster.client.headers["Authorization"] = f"Bearer {token}"


async def make_generator(cluster: Cluster) -> tuple[Generator, SeededObjects]:
    for name in ("second", "third", "fourth", "fifth", "tester"):
        answer = await cluster.post("/api/v1/users", {"user": {"username": name, "admin": True}})
        assert answer.status_code == 200
    seeded = await seed_cluster(cluster)
    ids = (seeded.experiment, 1, 2)
    known = {
        **dict.fromkeys(("experiment_id", "experimentId", "trial_id", "trialId", "runId", "user_id", "slot_id"), ids),
        **dict.fromkeys(("trialIds", "ids", "experimentIds", "trialRunId", "project_id", "workspace_id"), (1,)),
        **dict.fromkeys(("task_id", "taskId"), (seeded.task,)),
        **dict.fromkeys(("allocation_id", "allocationId"), (seeded.allocation,)),
        **dict.fromkeys(("uuid", "checkpointUuids"), (seeded.checkpoint,)),
        **dict.fromkeys(("agent_id", "agentId"), (seeded.agent,)),
        "resources_id": (seeded.container,),
        "config": ("{entrypoint: x, name: n, searcher: {name: single, metric: m}}",),
        "group": ("training", "validation", "other"),
        "metricName": ("loss",),
    }
    document = (await cluster.client.get("/detent/openapi.json")).json()
    return Generator(document, known, SEED), seeded


async def send(cluster: Cluster, seeded: SeededObjects, number: int, request: Request) -> int:
    """Sends a request and returns its status. Every third comes from the task and every seventh from an agent."""
    headers = {"content-type": "application/json"}
    if number % 3 == 0:
        headers |= cluster.as_task(seeded.allocation)
    if number % 7 == 0 or ("/agents/" in request.url and request.url.startswith("/detent")):
        headers["Authorization"] = f"Bearer {cluster.master.secrets.join_token}"
    async with asyncio.timeout(SECONDS):
        try:
            answer = await cluster.client.request(request.method, request.url, content=request.body, headers=headers)
        except httpx.InvalidURL:
            return 0
    if answer.status_code == 401 and "Authorization" not in headers:
        await sign_in(cluster)
    return answer.status_code


async def check(cluster: Cluster, count: int, statuses: Counter[int]) -> None:
    generator, seeded = await make_generator(cluster)
    await sign_in(cluster)
    failures: list[str] = []
    most = generator.requests(count * 19 // 20, lambda path: not path.endswith(ENDLESS + ENDING))
    for number, request in enumerate(chain(most, generator.requests(count // 20, lambda path: path.endswith(ENDING)))):
        status = await send(cluster, seeded, number, request)
        statuses[status] += 1
        if status == 500:
            failures.append(str(request))
    await sign_in(cluster)
    failures += [f"afterwards: {url}" for url in await failing_lists(cluster)]
    assert failures == [], f"{len(failures)} failures"
    assert statuses[200] > count / 10


async def failing_lists(cluster: Cluster) -> list[str]:
    """Returns the lists that answer 500."""
    document = (await cluster.client.get("/detent/openapi.json")).json()
    failing = []
    for path, methods in document["paths"].items():
        url = re.sub(r"\{[^}]*\}", "1", path)
        if "get" in methods and not path.endswith(ENDLESS) and (await cluster.client.get(url)).status_code == 500:
            failing.append(url)
    return failing


async def test_no_generated_request_is_answered_with_500(cluster: Cluster, statuses: Counter[int]):
    await check(cluster, 3_000, statuses)


@pytest.mark.long
async def test_no_generated_request_of_a_longer_run_is_answered_with_500(cluster: Cluster, statuses: Counter[int]):
    await check(cluster, 20_000, statuses)
