"""Failed sign-ins are limited per address and name on every route, and the last admin cannot be locked out."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.support.cluster import PASSWORD, Cluster, open_cluster

from determined_master.api.rate_limit import MAX_FAILURES

WRONG = [
    ("/api/v1/auth/login", {"username": "admin", "password": "Wrong-Password-1", "isHashed": False}),
    ("/detent/sign-in", {"username": "admin", "password": "Wrong-Password-1"}),
]


RIGHT = {"username": "admin", "password": PASSWORD, "isHashed": False}


@pytest.mark.parametrize(("path", "body"), WRONG, ids=["login", "password on the page"])
async def test_wrong_passwords_for_one_name_count_together_on_all_routes_and_limit_no_other_name(
    cluster: Cluster, path: str, body: dict[str, str]
):
    for _ in range(MAX_FAILURES):
        assert (await cluster.client.post(path, json=body)).status_code == 401
    for other, wrong in WRONG:
        assert (await cluster.client.post(other, json=wrong)).status_code == 429
    assert (await cluster.client.post("/api/v1/auth/login", json=RIGHT)).status_code == 429
    colleague = await cluster.client.post("/api/v1/auth/login", json=RIGHT | {"username": "determined"})
    assert colleague.status_code == 200


async def test_spellings_of_one_name_count_together(cluster: Cluster):
    for number in range(MAX_FAILURES):
        name = "".join(letter.upper() if number >> place & 1 else letter for place, letter in enumerate("admin"))
        answer = await cluster.client.post(WRONG[0][0], json=WRONG[0][1] | {"username": name})
        assert answer.status_code == 401
    assert (await cluster.client.post("/api/v1/auth/login", json=RIGHT)).status_code == 429


async def test_of_300_wrong_passwords_at_once_ten_are_checked(cluster: Cluster):
    path, body = WRONG[0]
    answers = await asyncio.gather(*(cluster.client.post(path, json=body) for _ in range(300)))
    assert Counter(answer.status_code for answer in answers) == {401: MAX_FAILURES, 429: 300 - MAX_FAILURES}


async def test_a_forwarded_address_counts_only_from_a_trusted_proxy(tmp_path: Path):
    path, body = WRONG[0]

    async def statuses(cluster: Cluster) -> set[int]:
        spoofed = [{"X-Forwarded-For": f"10.0.0.{number}"} for number in range(2 * MAX_FAILURES)]
        return {(await cluster.client.post(path, json=body, headers=each)).status_code for each in spoofed}

    for name in ("none", "other", "trusted"):
        (tmp_path / name).mkdir()
    async with open_cluster(tmp_path / "none") as cluster:
        assert await statuses(cluster) == {401, 429}
    async with open_cluster(tmp_path / "other", trusted_proxies=("10.1.0.0/16",)) as cluster:
        assert await statuses(cluster) == {401, 429}
    async with open_cluster(tmp_path / "trusted", trusted_proxies=("127.0.0.1",)) as cluster:
        assert await statuses(cluster) == {401}


@pytest.mark.parametrize("change", [{"admin": False}, {"active": False}])
async def test_the_last_admin_stays_admin(cluster: Cluster, change: dict[str, bool]):
    users = (await cluster.get("/api/v1/users"))["users"]
    ids = {user["username"]: user["id"] for user in users}
    refused = await cluster.client.patch(f"/api/v1/users/{ids['admin']}", json=change)
    assert refused.status_code == 400
    assert "last active admin" in refused.json()["error"]["error"]
    promoted = await cluster.client.patch(f"/api/v1/users/{ids['determined']}", json={"admin": True})
    assert promoted.status_code == 200
    assert (await cluster.client.patch(f"/api/v1/users/{ids['admin']}", json=change)).status_code == 200
