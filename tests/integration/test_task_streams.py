"""Streams into tasks at the master: who may open them, into what, and which keys are valid."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from tests.support.cluster import CONFIG, Cluster, login, open_cluster
from tests.support.stream_ends import End, end_of, running
from tests.support.waiting import eventually

from determined.streams.records import SUBPROTOCOL
from determined_master.errors import StorageUnavailable
from determined_master.notifications import SESSIONS
from determined_master.ssh import shell_keys
from determined_master.streams import broker


async def test_the_agent_of_a_task_is_asked_for_the_program_and_both_ends_are_joined(cluster: Cluster):
    token = cluster.master.secrets.join_token
    async with running(cluster) as task:
        answer, message = await task.open(argv=["ls", "-l"], terminal={"rows": 40, "columns": 100, "type": "xterm"})
        assert (message.container_id, message.user, message.is_resumed) == (task.container_id, "admin", False)
        assert message.execution is not None
        assert message.execution.model_dump() == {
            "argv": ["ls", "-l"],
            "terminal": (40, 100),
            "terminal_type": "xterm",
            "environment": {},
        }
        assert (answer["streamId"], answer["sessionId"]) == (message.stream_id, message.session_id)
        async with (
            end_of(cluster, message.stream_id, message.key, token=token) as agents,
            end_of(cluster, answer["streamId"], answer["key"]) as clients,
        ):
            for end in (agents, clients):
                accepted = await end.next()
                assert (accepted["type"], accepted["subprotocol"]) == ("websocket.accept", SUBPROTOCOL)
            clients.send(b"\x00in")
            assert await agents.received() == b"\x00in"
            agents.send(b"\x01out")
            assert await clients.received() == b"\x01out"
            agents.close(4404, "the session has ended")
            assert await clients.received() == (4404, "the session has ended")
        again, message = await task.open(argv=["ls"], sessionId=answer["sessionId"])
        assert (again["sessionId"], message.is_resumed) == (answer["sessionId"], True)


@asynccontextmanager
async def joined(cluster: Cluster) -> AsyncIterator[tuple[End, End]]:
    """Yields the agent's and the client's end of a stream into a new task."""
    async with running(cluster) as task:
        answer, message = await task.open()
        async with (
            end_of(cluster, message.stream_id, message.key, token=cluster.master.secrets.join_token) as agents,
            end_of(cluster, answer["streamId"], answer["key"]) as clients,
        ):
            await agents.next(), await clients.next()
            yield agents, clients


@pytest.mark.parametrize(("code", "passed_on"), [(1000, 1000), (1001, 1012), (1006, 1012), (4400, 4400)])
async def test_the_other_end_learns_whether_a_stream_was_ended_or_cut(cluster: Cluster, code: int, passed_on: int):
    async with joined(cluster) as (agents, clients):
        clients.close(code)
        assert (await agents.received())[0] == passed_on


async def test_a_message_that_is_too_long_ends_the_stream(cluster: Cluster):
    async with joined(cluster) as (agents, clients):
        clients.send(bytes(1 << 20))
        assert (await clients.received())[0] == 1009
        assert (await agents.received())[0] == 1012


async def test_only_an_unused_key_of_the_same_stream_and_side_is_admitted(cluster: Cluster):
    token = cluster.master.secrets.join_token
    async with running(cluster) as task:
        answer, message = await task.open()
        other, _ = await task.open()
        refused = [
            (answer["streamId"], "", ""),
            (answer["streamId"], "wrong", ""),
            (answer["streamId"], other["key"], ""),
            ("0" * 32, answer["key"], ""),
            (answer["streamId"], answer["key"] + "x", ""),
        ]
        for stream_id, key, bearer in refused:
            async with end_of(cluster, stream_id, key, token=bearer) as end:
                assert (await end.next())["type"] == "websocket.close"
        async with (
            end_of(cluster, answer["streamId"], answer["key"]) as clients,
            end_of(cluster, message.stream_id, message.key, token=token) as agents,
        ):
            assert (await clients.next())["type"] == (await agents.next())["type"] == "websocket.accept"
            for key, bearer in ((answer["key"], ""), (message.key, token)):
                async with end_of(cluster, answer["streamId"], key, token=bearer) as end:
                    assert (await end.next())["type"] == "websocket.close"
        async with end_of(cluster, message.stream_id, message.key) as thief:  # without the join token
            assert (await thief.next())["type"] == "websocket.close"


async def test_a_client_whose_agent_does_not_connect_is_told_so(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(broker, "MEETING_SECONDS", 0.1)
    async with running(cluster) as task:
        answer, _ = await task.open()
        async with end_of(cluster, answer["streamId"], answer["key"]) as client:
            await client.next()
            assert await client.received() == (1012, "the agent did not connect the stream in time")


async def test_a_stream_ends_with_the_sign_in_of_its_user(cluster: Cluster):
    async with joined(cluster) as (agents, clients):
        clients.send(b"\x00in")
        assert await agents.received() == b"\x00in"
        assert (await cluster.post("/api/v1/auth/logout")).status_code == 200
        assert await clients.received() == (4401, "you are no longer signed in")
        assert await agents.received() == (1000, "")


async def test_a_stream_outlives_a_database_that_is_away(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    async with joined(cluster) as (agents, clients):
        away = AsyncMock(side_effect=StorageUnavailable(StorageUnavailable.AWAY))
        monkeypatch.setattr(cluster.master.authenticator, "principal", away)
        clients.send(b"\x00one")
        assert await agents.received() == b"\x00one"
        cluster.master.notifications.publish([SESSIONS])
        await eventually(lambda: away.await_count > 0)
        clients.send(b"\x00two")
        assert await agents.received() == b"\x00two"


async def test_a_port_is_asked_for(cluster: Cluster):
    async with running(cluster) as task:
        _, message = await task.open(port=8888)
    assert (message.port, message.execution) == (8888, None)


async def test_ssh_gets_the_clients_key_and_the_answer_has_the_hosts_public_key_only(cluster: Cluster):
    client = shell_keys.user_key(b"a client's", "any").public_openssh
    async with running(cluster, takes_ssh=True) as task:
        answer, message = await task.open(ssh={"publicKey": f"{client} ada@laptop"})
        host = shell_keys.host_key(cluster.master.secrets.ssh_secret, task.task_id)
        assert message.ssh is not None
        assert message.ssh.public_keys == [client]
        assert answer["hostKey"] == host.public_openssh
        assert load_ssh_private_key(message.ssh.host_key.encode(), None).public_key() == load_ssh_public_key(
            host.public_openssh.encode()
        )
        assert (message.execution, message.port) == (None, 0)
        assert "PRIVATE" not in f"{answer} {message!r}"


@pytest.mark.parametrize("key", ["", "ssh-ed25519 AAAA", "x" * 2000])
async def test_ssh_without_a_usable_key_is_refused(cluster: Cluster, key: str):
    async with running(cluster, takes_ssh=True) as task:
        answer = await cluster.post(task.path, {"ssh": {"publicKey": key}})
        assert answer.status_code == 400, answer.text


async def test_an_agent_that_knows_no_ssh_is_not_asked_for_it(cluster: Cluster):
    async with running(cluster) as task:
        key = shell_keys.user_key(b"a client's", "any").public_openssh
        answer = await cluster.post(task.path, {"ssh": {"publicKey": key}})
        assert answer.status_code == 409
        assert "agent one has an earlier version, which knows no SSH" in answer.text


async def test_nobody_but_the_owner_and_admins_enters_a_task_on_an_open_cluster_either(tmp_path: Path):
    async with open_cluster(tmp_path, authorization="open") as cluster, running(cluster) as task:
        token = await login(cluster.client, "determined")
        refused = await cluster.post(task.path, {"argv": ["id"]}, Authorization=f"Bearer {token}")
        assert refused.status_code == 403
        assert refused.json()["error"]["error"] == (
            f"task {task.task_id} belongs to admin; only admin or an admin may enter it"
        )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"argv": []},
        {"argv": ["a"], "port": 1},
        {"ssh": {"publicKey": "ssh-ed25519 AAAA"}, "port": 1},
        {"port": 65536},
        {"argv": ["a\0b"]},
        {"argv": ["x"] * 1001},
        {"argv": ["x" * 40_000, "y" * 40_000]},
        {"argv": ["x"], "terminal": {"rows": 0, "columns": 1}},
        {"argv": ["x"], "terminal": {"rows": 1, "columns": 1, "type": "a b"}},
        {"argv": ["x"], "rank": -1},
        {"argv": ["x"], "sessionId": "short"},
    ],
    ids=lambda body: json.dumps(body)[:60],
)
async def test_a_request_for_no_program_or_beyond_the_bounds_is_refused(cluster: Cluster, body: dict[str, Any]):
    async with running(cluster) as task:
        assert (await cluster.post(task.path, body)).status_code == 400


async def test_a_task_that_does_not_run_and_a_rank_that_is_not_there_are_named(cluster: Cluster):
    async with running(cluster) as task:
        refused = await cluster.post(task.path, {"argv": ["x"], "rank": 7})
        assert (refused.status_code, refused.json()["error"]["error"]) == (
            404,
            f"task {task.task_id} has no rank 7; its ranks are 0 to 0",
        )
        assert (await cluster.post("/detent/tasks/nope/streams", {"argv": ["x"]})).status_code == 404
        await cluster.create(CONFIG)
        waiting = (await cluster.get("/api/v1/experiments/2/trials"))["trials"][0]["taskId"]

        async def is_waiting() -> bool:
            refused = await cluster.post(f"/detent/tasks/{waiting}/streams", {"argv": ["x"]})
            assert refused.status_code == 409
            return "waits for slots" in refused.json()["error"]["error"]

        await eventually(is_waiting)  # once the loop has requested them
    refused = await cluster.post(task.path, {"argv": ["x"]})
    assert (refused.status_code, refused.json()["error"]["error"]) == (
        409,
        "agent one is not connected; its tasks go on, and can be entered when it is",
    )


async def test_an_agent_of_an_earlier_version_is_not_asked(cluster: Cluster):
    async with running(cluster, takes_streams=False) as task:
        refused = await cluster.post(task.path, {"argv": ["x"]})
    assert refused.status_code == 409
    assert "earlier version" in refused.json()["error"]["error"]


async def test_a_user_has_a_bounded_number_of_streams(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(broker, "MAX_STREAMS_PER_USER", 2)
    monkeypatch.setattr(broker, "MEETING_SECONDS", 0.2)
    async with running(cluster) as task:
        await task.open()
        await task.open()
        assert (await cluster.post(task.path, {"argv": ["x"]})).status_code == 429

        async def is_opened() -> bool:
            return (await cluster.post(task.path, {"argv": ["x"]})).status_code == 200

        await eventually(is_opened)  # those to which nobody came are forgotten


async def test_a_stream_uses_its_task_from_its_opening_to_its_end(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    uses, token = cluster.master.streams.uses, cluster.master.secrets.join_token
    async with running(cluster) as task:

        async def is_unused() -> bool:
            use = uses.of(task.task_id)
            return use.open_streams == 0 and use.last_end is not None

        assert (uses.of(task.task_id).open_streams, uses.of(task.task_id).last_end) == (0, None)
        answer, message = await task.open()
        assert uses.of(task.task_id).open_streams == 1
        async with (
            end_of(cluster, message.stream_id, message.key, token=token) as agents,
            end_of(cluster, answer["streamId"], answer["key"]) as clients,
        ):
            await agents.next(), await clients.next()
            assert uses.of(task.task_id).open_streams == 1
            clients.close(1000)
            await eventually(is_unused)
        monkeypatch.setattr(broker, "MEETING_SECONDS", 0.1)
        await task.open()
        assert uses.of(task.task_id).open_streams == 1
        await eventually(is_unused)  # nobody came
