"""Links that sign in once, the cookie, and the end of a login."""

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.clock import FixedClock
from tests.support.cluster import PASSWORD, Cluster, login, open_cluster

from determined_master.api.rate_limit import MAX_LINK_FAILURES


def joined(cluster: Cluster) -> dict[str, str]:
    return {"Authorization": f"Bearer {cluster.master.secrets.operator_token}"}


async def link(cluster: Cluster, **headers: str) -> str:
    answer = await cluster.post("/detent/sign-in/links", {}, **headers)
    assert answer.status_code == 200, answer.text
    path, _, token = answer.json()["path"].partition("#")
    assert path == "/sign-in"
    return str(token)


async def use(cluster: Cluster, token: str) -> httpx.Response:
    cluster.client.cookies.clear()
    return await cluster.post("/detent/sign-in", {"token": token}, Authorization="")


async def test_a_link_signs_in_once(cluster: Cluster):
    token = await link(cluster)
    first = await use(cluster, token)
    assert first.json()["user"]["username"] == "admin"
    cookie = first.headers["set-cookie"]
    session = cookie.split(";")[0]
    me = await cluster.client.get("/detent/session", headers={"Authorization": "", "Cookie": session})
    assert me.json()["user"]["username"] == "admin"
    again = await use(cluster, token)
    assert again.status_code == 401
    assert "det master open" in again.json()["error"]["error"]
    assert "set-cookie" not in again.headers


async def test_of_two_who_come_at_once_one_is_let_in(cluster: Cluster):
    token = await link(cluster)
    answers = await asyncio.gather(*(use(cluster, token) for _ in range(8)))
    assert sorted(a.status_code for a in answers) == [200] + [401] * 7


async def test_after_ten_minutes_it_is_too_late(tmp_path: Path):
    clock = FixedClock(datetime.now(UTC))
    async with open_cluster(tmp_path, clock) as cluster:
        token = await link(cluster)
        clock.at += timedelta(minutes=10)
        assert (await use(cluster, token)).status_code == 401


async def test_nothing_of_a_link_is_stored_as_it_is(cluster: Cluster):
    token = await link(cluster)
    connection = sqlite3.connect(cluster.master.settings.data / "master.sqlite")
    dump = "\n".join(connection.iterdump())
    connection.close()
    assert token not in dump
    assert token not in repr(cluster.master.own_log)


async def test_a_link_is_for_oneself_or_from_the_data_folder(cluster: Cluster):
    ask = "/detent/sign-in/links"
    answer = await cluster.post(ask, {"username": "determined"}, **joined(cluster))
    signed = await use(cluster, answer.json()["path"].partition("#")[2])
    assert signed.json()["user"]["username"] == "determined"
    assert (await cluster.post(ask, {}, **joined(cluster))).status_code == 400
    assert (await cluster.post(ask, {"username": "nobody"}, **joined(cluster))).status_code == 404
    await login(cluster.client, "determined")
    assert (await cluster.post(ask, {"username": "admin"})).status_code == 403
    assert (await cluster.post(ask, {}, Authorization="Bearer forged")).status_code == 401
    agent = await cluster.join()
    await cluster.create()
    task = cluster.as_task((await agent.wait_for_desired())[0].allocation_id)
    assert (await cluster.post(ask, {}, **task)).status_code == 403


async def test_an_agent_elsewhere_makes_no_links(cluster: Cluster):
    transport = httpx.ASGITransport(app=cluster.app, client=("10.0.0.9", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://master") as far:
        answer = await far.post("/detent/sign-in/links", json={"username": "admin"}, headers=joined(cluster))
    assert answer.status_code == 403


async def test_a_changed_password_ends_the_links_too(cluster: Cluster):
    token = await link(cluster)
    assert (await cluster.client.patch("/api/v1/users/1", json={"password": "Another-Horse-8"})).status_code == 200
    assert (await use(cluster, token)).status_code == 401


async def test_the_inactive_are_not_let_in(cluster: Cluster):
    answer = await cluster.post("/detent/sign-in/links", {"username": "determined"}, **joined(cluster))
    assert (await cluster.client.patch("/api/v1/users/2", json={"active": False})).status_code == 200
    assert (await use(cluster, answer.json()["path"].partition("#")[2])).status_code in (401, 403)
    assert (
        await cluster.post("/detent/sign-in/links", {"username": "determined"}, **joined(cluster))
    ).status_code == 403


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/detent/sign-in", {"username": "admin", "password": PASSWORD}),
        ("/api/v1/auth/login", {"username": "admin", "password": PASSWORD}),
    ],
)
async def test_the_cookie_is_out_of_reach(cluster: Cluster, scheme: str, path: str, body: Any):
    headers = {"X-Forwarded-Proto": scheme, "X-Forwarded-Prefix": "/cluster"}
    cookie = (await cluster.post(path, body, **headers)).headers["set-cookie"]
    assert "; HttpOnly" in cookie
    assert "; SameSite=strict" in cookie
    assert "; Path=/cluster" in cookie
    assert ("; Secure" in cookie) == (scheme == "https")


async def test_signing_out_ends_the_session(cluster: Cluster):
    signed = await cluster.post("/detent/sign-in", {"username": "admin", "password": PASSWORD})
    session = signed.headers["set-cookie"].split(";")[0]
    cluster.client.cookies.clear()
    headers = {"Authorization": "", "Cookie": session, "Sec-Fetch-Site": "same-origin"}
    out = await cluster.post("/detent/sign-out", {}, **headers)
    assert out.status_code == 200
    assert 'auth=""' in out.headers["set-cookie"]
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert (await cluster.client.get("/detent/session", headers=headers)).status_code == 401


async def test_two_masters_on_one_host_keep_a_browser_signed_in_at_both(tmp_path: Path):
    """A browser's cookies are those of the host, whatever the port; what is set later takes the place of its like."""
    body = {"username": "admin", "password": PASSWORD}
    for name in "ab":
        (tmp_path / name).mkdir()
    # A password of its own: neither is a copy of the other tests' database, and so of the other.
    new = {"initial_user_password": PASSWORD}
    async with open_cluster(tmp_path / "a", **new) as a, open_cluster(tmp_path / "b", **new) as b:
        kept: dict[str, str] = {}
        for each in (a, b):
            # The older sign-in keeps its name, and is the other master's for one of them.
            for path in ("/api/v1/auth/login", "/detent/sign-in"):
                name, _, value = (await each.post(path, body)).headers["set-cookie"].split(";")[0].partition("=")
                kept[name] = value
        headers = {"Authorization": "", "Cookie": "; ".join(f"{name}={value}" for name, value in kept.items())}
        for each in (a, b):
            each.client.cookies.clear()
            assert (await each.client.get("/detent/session", headers=headers)).status_code == 200
        out = await a.post("/detent/sign-out", {}, **headers | {"Sec-Fetch-Site": "same-origin"})
        assert out.status_code == 200
        assert (await b.client.get("/detent/session", headers=headers)).status_code == 200


async def test_wrong_sign_in_links_are_rate_limited(tmp_path: Path):
    clock = FixedClock(datetime.now(UTC))
    async with open_cluster(tmp_path, clock) as cluster:
        for _ in range(MAX_LINK_FAILURES):
            assert (await use(cluster, "wrong")).status_code == 401
        right = await link(cluster)
        refused = await use(cluster, right)
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == 8
        clock.at += timedelta(minutes=1)
        assert (await use(cluster, right)).status_code == 200


async def test_without_anything_it_is_a_bad_request(cluster: Cluster):
    assert (await cluster.post("/detent/sign-in", {})).status_code == 400
    assert (await cluster.post("/detent/sign-in", {"username": "admin", "password": ""})).status_code == 401
    plain = await cluster.client.post(
        "/detent/sign-in",
        content=f'{{"username": "admin", "password": "{PASSWORD}"}}',
        headers={"Content-Type": "text/plain"},
    )
    assert plain.status_code == 400, "a form of another site sends text/plain without asking"
