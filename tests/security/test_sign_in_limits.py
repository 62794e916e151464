"""Failed sign-ins are limited per address on every route, and the last admin cannot be locked out."""

import pytest
from tests.support.cluster import Cluster

from determined_master.api.rate_limit import MAX_FAILURES

WRONG = [
    ("/api/v1/auth/login", {"username": "admin", "password": "Wrong-Password-1", "isHashed": False}),
    ("/detent/sign-in", {"username": "admin", "password": "Wrong-Password-1"}),
    ("/detent/sign-in", {"token": "no-such-token"}),
]


@pytest.mark.parametrize(("path", "body"), WRONG, ids=["login", "password on the page", "link"])
async def test_guessing_is_slowed_down_and_counted_together(one: Cluster, path: str, body: dict[str, str]):
    for _ in range(MAX_FAILURES):
        assert (await one.client.post(path, json=body)).status_code == 401
    for other, wrong in WRONG:
        assert (await one.client.post(other, json=wrong)).status_code == 429
    right = {"username": "admin", "password": "Correct-Horse-7", "isHashed": False}
    assert (await one.client.post("/api/v1/auth/login", json=right)).status_code == 429


@pytest.mark.parametrize("change", [{"admin": False}, {"active": False}])
async def test_the_last_admin_stays_admin(one: Cluster, change: dict[str, bool]):
    users = (await one.get("/api/v1/users"))["users"]
    ids = {user["username"]: user["id"] for user in users}
    refused = await one.client.patch(f"/api/v1/users/{ids['admin']}", json=change)
    assert refused.status_code == 400
    assert "last active admin" in refused.json()["error"]["error"]
    promoted = await one.client.patch(f"/api/v1/users/{ids['determined']}", json={"admin": True})
    assert promoted.status_code == 200
    assert (await one.client.patch(f"/api/v1/users/{ids['admin']}", json=change)).status_code == 200
