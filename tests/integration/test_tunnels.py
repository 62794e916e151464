"""Tunnels at the master: who may open them, and what the agent is asked for."""

import json
from typing import Any
from unittest.mock import AsyncMock

import pytest
from tests.support.cluster import CONFIG, Cluster, login
from tests.support.stream_ends import End, end_of, running, socket_at
from tests.support.waiting import eventually

from determined.streams.records import Kind, Record, decode, encode, encode_offset, record_of
from determined_master.errors import StorageUnavailable
from determined_master.notifications import SESSIONS
from determined_master.proxy import handshakes
from determined_master.ssh import shell_keys
from determined_master.streams.uses import Use
from determined_master.users import repository as users

PORT = 8888
PUBLISHING = CONFIG + f"environment: {{proxy_ports: [{{proxy_port: {PORT}, proxy_tcp: true}}, {{proxy_port: 80}}]}}\n"


async def refusal(end: End) -> tuple[int, str]:
    """Returns the status and the message with which a websocket is refused."""
    start = await end.next()
    assert start["type"] == "websocket.http.response.start", start
    body = (await end.next())["body"]
    return start["status"], json.loads(body)["message"] if body.startswith(b"{") else body.decode()


async def refused(cluster: Cluster, path: str, token: str = "", **options: Any) -> tuple[int, str]:
    async with socket_at(cluster, path, token=token, **options) as client:
        return await refusal(client)


def token_of(cluster: Cluster) -> str:
    return str(cluster.client.headers["authorization"]).removeprefix("Bearer ")


async def test_a_published_port_carries_bytes_both_ways_for_its_owner(cluster: Cluster):
    async with running(cluster, PUBLISHING) as task:
        async with socket_at(cluster, f"/proxy/{task.task_id}:{PORT}/", token=token_of(cluster)) as client:
            message = await task.asked()
            assert (message.port, message.ssh, message.user) == (PORT, None, "admin")
            join = cluster.master.secrets.join_token
            async with end_of(cluster, message.stream_id, message.key, token=join) as agents:
                assert (await agents.next())["type"] == "websocket.accept"
                agents.send(encode_offset(0))
                assert decode(await agents.received()) == 0
                assert (await client.next())["type"] == "websocket.accept"
                client.send(b"GET /")
                assert decode(await agents.received()) == Record(Kind.INPUT, b"GET /")
                agents.send(encode(Record(Kind.OUTPUT, b"hello")))
                assert await client.received() == b"hello"
                agents.send(encode(record_of(Kind.STATUS, {"error": "nobody listens on port 8888 of the task"})))
                assert await client.received() == (1012, "nobody listens on port 8888 of the task")


async def test_a_port_is_refused_to_other_users(cluster: Cluster):
    async with running(cluster, PUBLISHING) as task:
        token = await login(cluster.client, "determined")
        status, text = await refused(cluster, f"/proxy/{task.task_id}:{PORT}/", token)
        assert (status, text) == (403, f"task {task.task_id} belongs to admin; only admin or an admin may enter it")


async def test_a_port_is_refused_without_a_token_in_the_header_and_to_tasks(cluster: Cluster):
    async with running(cluster, PUBLISHING) as task:
        path = f"/proxy/{task.task_id}:{PORT}/"
        for cookie in ("", f"auth={token_of(cluster)}"):
            status, text = await refused(cluster, path, cookie=cookie)
            assert (status, text) == (401, "a tunnel needs the header Authorization: Bearer TOKEN")
        own = cluster.master.secrets.task_token(task.allocation_id)
        assert await refused(cluster, path, own) == (403, "a task token opens no tunnel; this requires a user's login")
        assert (await refused(cluster, path, "wrong"))[0] == 401


@pytest.mark.parametrize("service", ["none:80", "TASK:0", "TASK", "a%2Fb"])
async def test_what_is_no_service_is_not_found(cluster: Cluster, service: str):
    async with running(cluster, PUBLISHING) as task:
        path = f"/proxy/{service.replace('TASK', task.task_id)}/"
        assert (await refused(cluster, path, "" if service == "TASK" else token_of(cluster)))[0] == 404


async def let_in(end: End) -> None:
    """Plays an agent that lets the client of a stream in."""
    assert (await end.next())["type"] == "websocket.accept"
    end.send(encode_offset(0))
    end.send(encode(Record(Kind.ADMITTED)))
    assert decode(await end.received()) == 0


async def test_a_shell_is_entered_without_a_token_and_the_agent_gets_its_key(cluster: Cluster):
    secrets = cluster.master.secrets
    async with running(cluster, is_shell=True, takes_ssh=True) as task:
        async with socket_at(cluster, f"/proxy/{task.task_id}/") as client:
            message = await task.asked()
            assert message.ssh is not None
            assert message.ssh.public_keys == [shell_keys.user_key(secrets.ssh_secret, task.task_id).public_openssh]
            assert cluster.master.streams.uses.of(task.task_id) == Use(0, None), (
                "a stranger keeps the shell from ending"
            )
            async with end_of(cluster, message.stream_id, message.key, token=secrets.join_token) as agents:
                await let_in(agents)
                assert (await client.next())["type"] == "websocket.accept"
                await eventually(lambda: cluster.master.streams.uses.of(task.task_id).open_streams == 1)
                agents.send(encode(Record(Kind.OUTPUT, b"SSH-2.0-Detent\r\n")))
                assert await client.received() == b"SSH-2.0-Detent\r\n"
                client.to_master.put_nowait({"type": "websocket.receive", "text": "SSH-2.0"})
                assert await client.received() == (1003, "a tunnel takes binary messages only")
        await eventually(lambda: cluster.master.streams.uses.of(task.task_id).open_streams == 0)


async def test_ssh_outlives_a_database_that_is_away(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    token = cluster.master.secrets.join_token
    async with running(cluster, is_shell=True, takes_ssh=True) as task:
        async with socket_at(cluster, f"/proxy/{task.task_id}/") as client:
            message = await task.asked()
            async with end_of(cluster, message.stream_id, message.key, token=token) as agents:
                await let_in(agents)
                assert (await client.next())["type"] == "websocket.accept"
                agents.send(encode(Record(Kind.OUTPUT, b"one")))
                assert await client.received() == b"one"
                away = AsyncMock(side_effect=StorageUnavailable(StorageUnavailable.AWAY))
                monkeypatch.setattr(users, "get", away)
                cluster.master.notifications.publish([SESSIONS])
                await eventually(lambda: away.await_count > 0)
                agents.send(encode(Record(Kind.OUTPUT, b"two")))
                assert await client.received() == b"two"


async def test_a_task_that_is_no_shell_has_no_door_without_a_token(cluster: Cluster):
    async with running(cluster, PUBLISHING, takes_ssh=True) as task:
        assert await refused(cluster, f"/proxy/{task.task_id}/") == (404, f"there is no shell {task.task_id}")


async def test_a_shell_of_a_user_who_is_not_active_is_closed(cluster: Cluster):
    async with running(cluster, is_shell=True, takes_ssh=True) as task:
        async with cluster.master.database.write() as session:
            owner = await users.find_by_name(session, "admin")
            assert owner is not None
            owner.active = False
        expected = (403, "the owner of this shell is not active")
        assert await refused(cluster, f"/proxy/{task.task_id}/") == expected


async def test_strangers_who_fail_too_often_are_refused_in_words(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(handshakes, "MAX_FAILURES_OF_ADDRESS", 2)
    for _ in range(2):
        assert (await refused(cluster, "/proxy/none/"))[0] == 404
    status, text = await refused(cluster, "/proxy/none/")
    assert status == 429
    assert "2 SSH connections from 127.0.0.1 showed no key" in text
    assert (await refused(cluster, "/proxy/none/", address="192.0.2.7"))[0] == 404
