"""Sign-in links, the session cookie, and signing out."""

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


def operator_headers(cluster: Cluster) -> dict[str, str]:
    return {"Authorization": f"Bearer {cluster.master.secrets.operator_token}"}


async def make_link(cluster: Cluster, **headers: str) -> str:
    answer = await cluster.post("/detent/sign-in/links", {}, **headers)
    assert answer.status_code == 200, answer.text
    path, _, token = answer.json()["path"].partition("#")
    assert path == "/sign-in"
    return str(token)


async def use_link(cluster: Cluster, token: str) -> httpx.Response:
    cluster.client.cookies.clear()
    return await cluster.post("/detent/sign-in", {"token": token}, Authorization="")


async def test_a_link_signs_in_once(cluster: Cluster):
    token = await make_link(cluster)
    first = await use_link(cluster, token)
    assert first.json()["user"]["username"] == "admin"
    cookie = first.headers["set-cookie"]
    session = cookie.split(";")[0]
    me = await cluster.client.get("/detent/session", headers={"Authorization": "", "Cookie": session})
    assert me.json()["user"]["username"] == "admin"
    again = await use_link(cluster, token)
    assert again.status_code == 401
    assert "det master open" in again.json()["error"]["error"]
    assert "set-cookie" not in again.headers


async def test_of_eight_uses_of_a_link_at_once_one_signs_in(cluster: Cluster):
    token = await make_link(cluster)
    answers = await asyncio.gather(*(use_link(cluster, token) for _ in range(8)))
    assert sorted(a.status_code for a in answers) == [200] + [401] * 7


async def test_a_link_expires_after_ten_minutes(tmp_path: Path):
    clock = FixedClock(datetime.now(UTC))
    async with open_cluster(tmp_path, clock) as cluster:
        token = await make_link(cluster)
        clock.at += timedelta(minutes=10)
        assert (await use_link(cluster, token)).status_code == 401


async def test_the_token_of_a_link_is_not_stored_in_plain_text(cluster: Cluster):
    token = await make_link(cluster)
    connection = sqlite3.connect(cluster.master.settings.data / "master.sqlite")
    dump = "\n".join(connection.iterdump())
    connection.close()
    assert token not in dump
    assert token not in repr(cluster.master.own_log)


async def test_a_link_is_made_for_the_own_user_or_with_the_operator_token(cluster: Cluster):
    ask = "/detent/sign-in/links"
    answer = await cluster.post(ask, {"username": "determined"}, **operator_headers(cluster))
    signed = await use_link(cluster, answer.json()["path"].partition("#")[2])
    assert signed.json()["user"]["username"] == "determined"
    assert (await cluster.post(ask, {}, **operator_headers(cluster))).status_code == 400
    assert (await cluster.post(ask, {"username": "nobody"}, **operator_headers(cluster))).status_code == 404
    await login(cluster.client, "determined")
    assert (await cluster.post(ask, {"username": "admin"})).status_code == 403
    assert (await cluster.post(ask, {}, Authorization="Bearer forged")).status_code == 401
    agent = await cluster.join()
    await cluster.create()
    task = cluster.as_task((await agent.wait_for_desired())[0].allocation_id)
    assert (await cluster.post(ask, {}, **task)).status_code == 403


async def test_the_operator_token_makes_no_links_from_another_machine(cluster: Cluster):
    transport = httpx.ASGITransport(app=cluster.app, client=("10.0.0.9", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://master") as far:
        answer = await far.post("/detent/sign-in/links", json={"username": "admin"}, headers=operator_headers(cluster))
    assert answer.status_code == 403


async def test_a_changed_password_ends_the_links_of_the_user(cluster: Cluster):
    token = await make_link(cluster)
    assert (await cluster.client.patch("/api/v1/users/1", json={"password": "Another-Horse-8"})).status_code == 200
    assert (await use_link(cluster, token)).status_code == 401


async def test_an_inactive_user_cannot_sign_in_with_a_link(cluster: Cluster):
    answer = await cluster.post("/detent/sign-in/links", {"username": "determined"}, **operator_headers(cluster))
    assert (await cluster.client.patch("/api/v1/users/2", json={"active": False})).status_code == 200
    assert (await use_link(cluster, answer.json()["path"].partition("#")[2])).status_code in (401, 403)
    assert (
        await cluster.post("/detent/sign-in/links", {"username": "determined"}, **operator_headers(cluster))
    ).status_code == 403


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/detent/sign-in", {"username": "admin", "password": PASSWORD}),
        ("/api/v1/auth/login", {"username": "admin", "password": PASSWORD}),
    ],
)
async def test_the_cookie_is_http_only_same_site_and_secure_over_https(
    cluster: Cluster, scheme: str, path: str, body: Any
):
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


async def test_an_empty_cookie_is_no_sign_in(cluster: Cluster):
    cluster.client.cookies.clear()
    headers = {"Authorization": "", "Cookie": f"{cluster.master.authenticator.cookie}="}
    assert (await cluster.client.get("/api/v1/me", headers=headers)).status_code == 401


async def test_two_masters_on_one_host_keep_a_browser_signed_in_at_both(tmp_path: Path):
    """A browser keeps cookies by host, whatever the port, and a cookie replaces an earlier one of the same name."""
    body = {"username": "admin", "password": PASSWORD}
    for name in "ab":
        (tmp_path / name).mkdir()
    # With a password of their own, the masters are no copies of the prepared database, and so not of each other.
    new = {"initial_user_password": PASSWORD}
    async with open_cluster(tmp_path / "a", **new) as a, open_cluster(tmp_path / "b", **new) as b:
        cookies: dict[str, str] = {}
        for each in (a, b):
            # The cookie of the Determined login has the same name at both masters, so the second replaces the first.
            for path in ("/api/v1/auth/login", "/detent/sign-in"):
                name, _, value = (await each.post(path, body)).headers["set-cookie"].split(";")[0].partition("=")
                cookies[name] = value
        headers = {"Authorization": "", "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
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
            assert (await use_link(cluster, "wrong")).status_code == 401
        right = await make_link(cluster)
        refused = await use_link(cluster, right)
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == 8
        clock.at += timedelta(minutes=1)
        assert (await use_link(cluster, right)).status_code == 200


async def test_a_sign_in_without_credentials_or_as_plain_text_is_a_bad_request(cluster: Cluster):
    assert (await cluster.post("/detent/sign-in", {})).status_code == 400
    assert (await cluster.post("/detent/sign-in", {"username": "admin", "password": ""})).status_code == 401
    plain = await cluster.client.post(
        "/detent/sign-in",
        content=f'{{"username": "admin", "password": "{PASSWORD}"}}',
        headers={"Content-Type": "text/plain"},
    )
    assert plain.status_code == 400, "a form of another site sends text/plain without asking"
