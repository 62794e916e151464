"""Users: sign-in, roles, tokens, links to users of agents, and the secrets that are stored."""

import sqlite3
from pathlib import Path

import pytest
from tests.support.cluster import PASSWORD, Cluster, login, open_cluster

from determined.link.messages import RunAs
from determined_master.auth.passwords import client_hash


async def test_a_wrong_password_and_an_unknown_user_get_the_same_answer(cluster: Cluster):
    wrong = await cluster.post(
        "/api/v1/auth/login", {"username": "admin", "password": client_hash("x"), "isHashed": True}
    )
    unknown = await cluster.post("/api/v1/auth/login", {"username": "nobody", "password": "x"})
    assert (wrong.status_code, unknown.status_code) == (401, 401)
    assert wrong.json() == unknown.json()


async def test_a_password_that_is_not_hashed_signs_in(cluster: Cluster):
    answer = await cluster.post("/api/v1/auth/login", {"username": "determined", "password": PASSWORD})
    assert answer.status_code == 200


async def test_no_token_and_no_password_is_stored_in_plain_text(cluster: Cluster):
    token = cluster.client.headers["Authorization"].removeprefix("Bearer ")
    connection = sqlite3.connect(cluster.master.settings.data / "master.sqlite")
    dump = "\n".join(connection.iterdump())
    connection.close()
    assert token not in dump
    assert PASSWORD not in dump
    assert client_hash(PASSWORD) not in dump


async def test_logout_ends_this_login_alone(cluster: Cluster):
    first = cluster.client.headers["Authorization"]
    await login(cluster.client, "admin")
    assert (await cluster.post("/api/v1/auth/logout")).status_code == 200
    assert (await cluster.client.get("/api/v1/me")).status_code == 401
    assert (await cluster.client.get("/api/v1/me", headers={"Authorization": first})).status_code == 200


async def test_an_inactive_user_loses_access_at_once_and_is_refused_with_the_reason(cluster: Cluster):
    admin = cluster.client.headers["Authorization"]
    await login(cluster.client, "determined")
    assert (await cluster.client.get("/api/v1/me")).status_code == 200
    theirs = cluster.client.headers["Authorization"]
    cluster.client.headers["Authorization"] = admin
    assert (await cluster.client.patch("/api/v1/users/2", json={"active": False})).status_code == 200
    assert (await cluster.client.get("/api/v1/me", headers={"Authorization": theirs})).status_code in (401, 403)
    answer = await cluster.post("/api/v1/auth/login", {"username": "determined", "password": PASSWORD})
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
async def test_operations_of_admins_are_refused_to_other_users(cluster: Cluster, method: str, path: str, body):
    await cluster.join()
    await login(cluster.client, "determined")
    assert (await cluster.client.request(method, path, json=body)).status_code == 403


async def test_a_users_own_password_and_name_may_be_changed(cluster: Cluster):
    await login(cluster.client, "determined")
    assert (
        await cluster.client.patch("/api/v1/users/2", json={"displayName": "D", "password": "New-Password-1"})
    ).status_code == 200
    assert (await cluster.client.get("/api/v1/me")).json()["user"]["displayName"] == "D"
    again = await cluster.post("/api/v1/auth/login", {"username": "determined", "password": "New-Password-1"})
    assert again.status_code == 200


@pytest.mark.parametrize("password", ["short1A", "alllowercase1", "ALLUPPERCASE1", "NoDigitsHere"])
async def test_weak_passwords_are_refused_with_the_reason(cluster: Cluster, password: str):
    answer = await cluster.post("/api/v1/users", {"user": {"username": "x"}, "password": password})
    assert answer.status_code == 400
    assert "password needs" in answer.json()["error"]["error"]


async def test_a_task_token_reads_as_its_user_but_does_not_act_as_its_user(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    task = cluster.as_task(desired.allocation_id)
    assert (await cluster.client.get("/api/v1/me", headers=task)).json()["user"]["username"] == "admin"
    assert (await cluster.client.get(f"/api/v1/experiments/{experiment}", headers=task)).status_code == 200
    for path in (f"/api/v1/experiments/{experiment}/kill", "/api/v1/users", "/api/v1/experiments"):
        assert (
            await cluster.client.post(path, json={"config": "x", "user": {"username": "x"}}, headers=task)
        ).status_code == 403
    bearer = {"Authorization": task["Grpc-Metadata-x-allocation-token"]}
    assert (
        await cluster.client.post(f"/api/v1/experiments/{experiment}/kill", json={}, headers=bearer)
    ).status_code == 403
    other = f"/api/v1/allocations/{desired.allocation_id}x/signals/ack_preemption"
    assert (await cluster.client.post(other, json={}, headers=task)).status_code == 403


async def test_agents_need_the_join_token(cluster: Cluster):
    assert (await cluster.client.get(f"/detent/contexts/{'0' * 64}")).status_code == 401
    joined = {"Authorization": f"Bearer {cluster.master.secrets.join_token}"}
    assert (await cluster.client.get(f"/detent/contexts/{'0' * 64}", headers=joined)).status_code == 404
    assert (await cluster.client.get("/api/v1/me", headers=joined)).status_code == 401


async def test_the_owner_of_the_data_folder_may_drain_and_agents_may_not(cluster: Cluster):
    operator = {"Authorization": f"Bearer {cluster.master.secrets.operator_token}"}
    assert (await cluster.client.get("/detent/drain", headers=operator)).json() == {"live": []}
    assert (await cluster.client.post("/detent/drain", json={}, headers=operator)).status_code == 200
    joined = {"Authorization": f"Bearer {cluster.master.secrets.join_token}"}
    assert (await cluster.client.get("/detent/drain", headers=joined)).status_code == 401
    link = {"username": "admin"}
    assert (await cluster.client.post("/detent/sign-in/links", json=link, headers=joined)).status_code == 401
    assert (await cluster.client.post("/detent/sign-in/links", json=link, headers=operator)).status_code == 200
    assert (await cluster.client.get("/detent/drain", headers={"Authorization": "Bearer forged"})).status_code == 401


async def test_files_with_secrets_are_readable_by_their_owner_alone(cluster: Cluster):
    for name in ("secret", "agent-token", "operator-token"):
        assert (cluster.master.settings.data / name).stat().st_mode & 0o777 == 0o600


GROUP = {"agentUid": 1001, "agentUser": "ada", "agentGid": 1002, "agentGroup": "lab"}


async def test_the_link_with_an_agents_user_is_stored_and_returned(cluster: Cluster):
    answer = await cluster.post(
        "/api/v1/users", {"user": {"username": "ada", "active": False, "agentUserGroup": GROUP}}
    )
    assert answer.json()["user"]["agentUserGroup"] == GROUP
    assert answer.json()["user"]["active"] is False
    user_id = answer.json()["user"]["id"]
    assert (await cluster.get(f"/api/v1/users/{user_id}"))["user"]["agentUserGroup"] == GROUP
    changed = GROUP | {"agentUid": 7}
    answer = await cluster.client.patch(f"/api/v1/users/{user_id}", json={"agentUserGroup": changed})
    assert answer.json()["user"]["agentUserGroup"] == changed
    assert (await cluster.get("/api/v1/me"))["user"]["agentUserGroup"] is None
    await login(cluster.client, "determined")
    assert (await cluster.client.patch("/api/v1/users/2", json={"agentUserGroup": GROUP})).status_code == 403


async def test_a_linked_users_trial_carries_the_identity(cluster: Cluster):
    assert (await cluster.client.patch("/api/v1/users/1", json={"agentUserGroup": GROUP})).status_code == 200
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    assert desired.spec is not None
    assert desired.spec.run_as == RunAs(uid=1001, gid=1002, user="ada", group="lab")
    assert desired.spec.is_cluster_storage


@pytest.mark.parametrize(
    "wrong",
    [
        GROUP | {"agentUid": -1},
        GROUP | {"agentUid": 2**32 - 1},  # the kernel reads it as "unchanged"
        GROUP | {"agentUid": "1"},
        {"agentUid": 1},
        {"agentUid": 1, "agentGid": 1},
        {"agentUid": 1, "agentGid": 1, "agentUser": "ada"},
        {"agentUser": "ada", "agentGroup": "lab"},
        GROUP | {"agentUser": "a:0:0"},
        GROUP | {"agentGroup": "x\ny"},
        GROUP | {"agentUser": "a" * 33},
    ],
)
async def test_an_invalid_link_with_an_agents_user_is_refused_and_an_empty_one_removes_it(
    cluster: Cluster, wrong: dict[str, object]
):
    assert (await cluster.client.patch("/api/v1/users/1", json={"agentUserGroup": GROUP})).status_code == 200
    assert (await cluster.client.patch("/api/v1/users/1", json={"agentUserGroup": wrong})).status_code == 400
    assert (await cluster.get("/api/v1/me"))["user"]["agentUserGroup"] == GROUP
    assert (await cluster.client.patch("/api/v1/users/1", json={"agentUserGroup": {}})).status_code == 200
    assert (await cluster.get("/api/v1/me"))["user"]["agentUserGroup"] is None


@pytest.mark.parametrize("name", ["admin", "ADMIN", " Ada L. "])
async def test_a_display_name_of_another_user_is_refused(cluster: Cluster, name: str):
    assert (await cluster.client.patch("/api/v1/users/1", json={"displayName": "Ada L."})).status_code == 200
    assert (await cluster.client.patch("/api/v1/users/1", json={"displayName": "ada l."})).status_code == 200
    answer = await cluster.client.patch("/api/v1/users/2", json={"displayName": name})
    assert answer.status_code == 409
    assert "another user" in answer.json()["error"]["error"]
    answer = await cluster.post("/api/v1/users", {"user": {"username": "new", "displayName": name}})
    assert answer.status_code == 409


@pytest.mark.parametrize(("setting", "status"), [("admin", 403), ("users", 200)])
async def test_users_may_read_the_masters_log_only_if_master_logs_is_users(tmp_path: Path, setting: str, status: int):
    async with open_cluster(tmp_path, master_logs=setting) as cluster:
        await login(cluster.client, "determined")
        assert (await cluster.client.get("/api/v1/master/logs")).status_code == status


@pytest.mark.parametrize("path", ["raw", "aggregated", "allocations-csv"])
async def test_reports_of_resource_usage_answer_501(cluster: Cluster, path: str):
    for start in ("/resources/allocation/", "/api/v1/resources/allocation/"):
        if path != "allocations-csv" or start.startswith("/resources"):
            answer = await cluster.client.get(start + path)
            assert answer.status_code == 501
            assert "does not support" in answer.json()["error"]["error"]


async def test_a_name_with_capitals_beyond_ascii_signs_in_and_is_taken_only_once(cluster: Cluster):
    body = {"user": {"username": "Ärger", "active": True}, "password": PASSWORD}
    assert (await cluster.post("/api/v1/users", body)).status_code == 200
    for name in ("Ärger", "ärger", "ÄRGER"):
        answer = await cluster.post("/api/v1/auth/login", {"username": name, "password": PASSWORD})
        assert answer.status_code == 200, name
    taken = {"user": {"username": "äRGER", "active": True}, "password": PASSWORD}
    assert (await cluster.post("/api/v1/users", taken)).status_code == 409
