"""Login, roles, tokens: who may do what, and what is kept of secrets."""

import sqlite3

import pytest
from tests.support.cluster import PASSWORD, Cluster, login

from determined_master.passwords import client_hash


async def test_wrong_password_and_unknown_user_are_told_alike(one: Cluster):
    wrong = await one.post("/api/v1/auth/login", {"username": "admin", "password": client_hash("x"), "isHashed": True})
    unknown = await one.post("/api/v1/auth/login", {"username": "nobody", "password": "x"})
    assert (wrong.status_code, unknown.status_code) == (401, 401)
    assert wrong.json() == unknown.json()


async def test_a_plain_password_works_too(one: Cluster):
    answer = await one.post("/api/v1/auth/login", {"username": "determined", "password": PASSWORD})
    assert answer.status_code == 200


async def test_no_token_and_no_password_is_stored_as_it_is(one: Cluster):
    token = one.client.headers["Authorization"].removeprefix("Bearer ")
    connection = sqlite3.connect(one.master.settings.data / "master.sqlite")
    dump = "\n".join(connection.iterdump())
    connection.close()
    assert token not in dump
    assert PASSWORD not in dump
    assert client_hash(PASSWORD) not in dump


async def test_logout_ends_this_login_alone(one: Cluster):
    first = one.client.headers["Authorization"]
    await login(one.client, "admin")
    assert (await one.post("/api/v1/auth/logout")).status_code == 200
    assert (await one.client.get("/api/v1/me")).status_code == 401
    assert (await one.client.get("/api/v1/me", headers={"Authorization": first})).status_code == 200


async def test_an_inactive_user_is_told_so_and_is_out_at_once(one: Cluster):
    admin = one.client.headers["Authorization"]
    await login(one.client, "determined")
    assert (await one.client.get("/api/v1/me")).status_code == 200
    theirs = one.client.headers["Authorization"]
    one.client.headers["Authorization"] = admin
    assert (await one.client.patch("/api/v1/users/2", json={"active": False})).status_code == 200
    assert (await one.client.get("/api/v1/me", headers={"Authorization": theirs})).status_code in (401, 403)
    answer = await one.post("/api/v1/auth/login", {"username": "determined", "password": PASSWORD})
    assert answer.status_code == 403
    assert "user is not active" in answer.json()["error"]["error"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/users", {"user": {"username": "x"}}),
        ("PATCH", "/api/v1/users/1", {"admin": False}),
        ("PATCH", "/api/v1/users/2", {"admin": True}),
        ("POST", "/api/v1/agents/one/disable", {}),
        ("GET", "/api/v1/master/config", None),
        ("GET", "/api/v1/master/logs", None),
        ("POST", "/detent/drain", {}),
    ],
)
async def test_a_user_is_no_admin(one: Cluster, method: str, path: str, body):
    await one.join()
    await login(one.client, "determined")
    assert (await one.client.request(method, path, json=body)).status_code == 403


async def test_a_users_own_password_and_name_may_be_changed(one: Cluster):
    await login(one.client, "determined")
    assert (
        await one.client.patch("/api/v1/users/2", json={"displayName": "D", "password": "New-Password-1"})
    ).status_code == 200
    assert (await one.client.get("/api/v1/me")).json()["user"]["displayName"] == "D"
    again = await one.post("/api/v1/auth/login", {"username": "determined", "password": "New-Password-1"})
    assert again.status_code == 200


@pytest.mark.parametrize("password", ["short1A", "alllowercase1", "ALLUPPERCASE1", "NoDigitsHere"])
async def test_weak_passwords_are_refused_with_the_reason(one: Cluster, password: str):
    answer = await one.post("/api/v1/users", {"user": {"username": "x"}, "password": password})
    assert answer.status_code == 400
    assert "password needs" in answer.json()["error"]["error"]


async def test_a_task_may_read_and_write_what_is_its_own_and_nothing_else(one: Cluster):
    agent = await one.join()
    experiment = await one.create()
    wish = (await agent.wished())[0]
    await agent.run(wish)
    task = one.as_task(wish.allocation_id)
    assert (await one.client.get("/api/v1/me", headers=task)).json()["user"]["username"] == "admin"
    assert (await one.client.get(f"/api/v1/experiments/{experiment}", headers=task)).status_code == 200
    for path in (f"/api/v1/experiments/{experiment}/kill", "/api/v1/users", "/api/v1/experiments"):
        assert (
            await one.client.post(path, json={"config": "x", "user": {"username": "x"}}, headers=task)
        ).status_code == 403
    bearer = {"Authorization": task["Grpc-Metadata-x-allocation-token"]}
    assert (await one.client.post(f"/api/v1/experiments/{experiment}/kill", json={}, headers=bearer)).status_code == 403
    other = f"/api/v1/allocations/{wish.allocation_id}x/signals/ack_preemption"
    assert (await one.client.post(other, json={}, headers=task)).status_code == 403


async def test_agents_need_the_join_token(one: Cluster):
    assert (await one.client.get(f"/detent/contexts/{'0' * 64}")).status_code == 401
    joined = {"Authorization": f"Bearer {one.master.secrets.join_token}"}
    assert (await one.client.get(f"/detent/contexts/{'0' * 64}", headers=joined)).status_code == 404
    assert (await one.client.get("/api/v1/me", headers=joined)).status_code == 401


async def test_whoever_holds_the_data_folder_may_drain(one: Cluster):
    joined = {"Authorization": f"Bearer {one.master.secrets.join_token}"}
    assert (await one.client.get("/detent/drain", headers=joined)).json() == {"live": []}
    assert (await one.client.post("/detent/drain", json={}, headers=joined)).status_code == 200
    assert (await one.client.get("/detent/drain", headers={"Authorization": "Bearer forged"})).status_code == 401


async def test_files_with_secrets_are_their_owners_alone(one: Cluster):
    for name in ("secret", "agent-token"):
        assert (one.master.settings.data / name).stat().st_mode & 0o777 == 0o600
