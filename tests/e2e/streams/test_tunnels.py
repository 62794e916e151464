"""Tunnels of the master: SSH of shells without a sign-in, and published ports with one."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest
from tests.e2e.streams.conftest import StreamCluster
from tests.support.free_ports import free_port
from tests.support.latency import health_of, measured
from tests.support.ssh_user import SshUser
from tests.support.tunnel_client import connect, tunnel
from tests.support.waiting import wait_until
from websockets.exceptions import InvalidStatus

from determined.client import sign_in
from determined_master.proxy.handshakes import MAX_FAILURES_OF_TASK

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("streams")]
ATTEMPTS = 1000
AT_ONCE = 16


@pytest.fixture
def shell(stream_cluster: StreamCluster) -> Iterator[str]:
    """Returns the id of a shell that runs."""
    body = {"config": {"resources": {"slots": 0}}}
    task_id = str(stream_cluster.session.post("/api/v1/shells", body)["shell"]["id"])
    wait_until(
        lambda: stream_cluster.session.get(f"/api/v1/shells/{task_id}")["shell"]["state"] == "STATE_RUNNING",
        what="it runs",
    )
    yield task_id
    stream_cluster.session.post(f"/api/v1/shells/{task_id}/kill", {})


def ssh_of(cluster: StreamCluster, shell: str, key: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs a program by the real ssh with a key, as clients do that cannot sign in."""
    words = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes"]
    proxy = f"{sys.executable} -m tests.support.tunnel_client {cluster.url}/proxy/{shell}/"
    return subprocess.run(
        ["ssh", "-F", "none", "-i", str(key), *words, "-o", f"ProxyCommand={proxy}", "root@any", "echo in; wc -c"],
        env=cluster.client_environment | {"PATH": "/usr/bin:/bin"},
        input=bytes(1 << 20),
        capture_output=True,
        check=False,
        timeout=60,
    )


def key_of(cluster: StreamCluster, shell: str, folder: Path) -> Path:
    """Writes the key of a shell's user, as its owner gets it from the API."""
    path = folder / "shell-key"
    path.write_text(cluster.session.get(f"/api/v1/shells/{shell}")["shell"]["privateKey"])
    path.chmod(0o600)
    return path


def test_the_key_of_a_shell_lets_ssh_in_without_a_sign_in_also_after_a_restart_and_no_other_does(
    stream_cluster: StreamCluster, shell: str, tmp_path: Path
):
    key = key_of(stream_cluster, shell, tmp_path)
    done = ssh_of(stream_cluster, shell, key)
    assert (done.stdout.split(), done.returncode) == ([b"in", b"1048576"], 0), done.stderr
    stream_cluster.kill_master()
    stream_cluster.start_master()
    wait_until(lambda: "agent-1" in stream_cluster.connected(), what="the agents are back")
    done = ssh_of(stream_cluster, shell, key)
    assert done.returncode == 0, done.stderr
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "wrong")], check=True)
    done = ssh_of(stream_cluster, shell, tmp_path / "wrong")
    assert done.returncode == 255
    assert b"Permission denied (publickey)" in done.stderr


async def attempt(url: str, number: int, key: asyncssh.SSHKey) -> str:
    """Returns how a handshake with a wrong key ended: the status of a refusal, or "denied" by the agent."""
    try:
        async with tunnel(url, source=f"127.0.1.{1 + number % 50}") as sock:
            async with asyncssh.connect(
                sock=sock, known_hosts=None, client_keys=[key], config=None, agent_path=None, username="root"
            ):
                return "admitted"
    except InvalidStatus as refused:
        return str(refused.response.status_code)
    except asyncssh.PermissionDenied:
        return "denied"
    except (OSError, asyncssh.Error):
        return "cut"


@pytest.mark.long  # test_bounds.py refuses a thousand wrong keys
@pytest.mark.budget(90, "a thousand handshakes")
def test_a_thousand_handshakes_with_wrong_keys_are_refused_and_keep_nobody_out(
    stream_cluster: StreamCluster, shell: str, tmp_path: Path
):
    url = f"{stream_cluster.url}/proxy/{shell}/"
    key = key_of(stream_cluster, shell, tmp_path)
    assert ssh_of(stream_cluster, shell, key).returncode == 0
    assert stream_cluster.det("ssh-config").returncode == 0
    user = SshUser(Path(stream_cluster.environment["HOME"]), stream_cluster.client_environment)
    wrong = asyncssh.generate_private_key("ssh-ed25519")

    async def attack() -> tuple[list[str], list[int]]:
        results: list[str] = []
        have_entered = asyncio.Event()

        async def attack_on() -> None:
            while len(results) < ATTEMPTS or not have_entered.is_set():
                results.append(await attempt(url, len(results), wrong))

        attackers = [asyncio.create_task(attack_on()) for _ in range(AT_ONCE)]
        done = await asyncio.gather(
            asyncio.to_thread(ssh_of, stream_cluster, shell, key),
            asyncio.to_thread(user.ssh, f"det-task-{shell}", "true"),
        )
        have_entered.set()
        await asyncio.gather(*attackers)
        return results, [each.returncode for each in done]

    with measured(health_of(stream_cluster.port)) as health:
        results, codes = asyncio.run(attack())
    assert codes == [0, 0]
    counts = Counter(results)
    assert counts.keys() <= {"429", "denied", "cut"}
    assert counts["denied"] > 0
    assert counts["denied"] + counts["cut"] <= MAX_FAILURES_OF_TASK + AT_ONCE
    assert health.failures == []
    assert max(health.seconds) < 2
    assert {"agent-1", "agent-2"} <= stream_cluster.connected()
    assert ssh_of(stream_cluster, shell, key).returncode == 0
    print(f"{dict(counts)}, slowest answer {max(health.seconds):.2f} s")


PUBLISHES = """
import os, socket, sys
server = socket.create_server(("127.0.0.1", int(os.environ["DET_PROXY_PORT_" + sys.argv[1]])))
print("waits", flush=True)
while True:
    client, _ = server.accept()
    while data := client.recv(65536):
        client.sendall(data.upper())
    client.close()
"""


@pytest.fixture
def publishing(stream_cluster: StreamCluster) -> Iterator[tuple[str, int]]:
    """A command that answers on a port, which it publishes for TCP, and the port."""
    port = free_port()
    body = {
        "config": {
            "entrypoint": ["python3", "-c", PUBLISHES, str(port)],
            "resources": {"slots": 0},
            "environment": {"proxy_ports": [{"proxy_port": port, "proxy_tcp": True}, {"proxy_port": port + 1}]},
        }
    }
    task_id = str(stream_cluster.session.post("/api/v1/commands", body)["command"]["id"])
    wait_until(lambda: b"waits" in stream_cluster.det("task", "logs", task_id).stdout, what="it listens")
    yield task_id, port
    stream_cluster.session.post(f"/api/v1/commands/{task_id}/kill", {})


def test_a_published_port_carries_bytes_for_its_owner(stream_cluster: StreamCluster, publishing: tuple[str, int]):
    task_id, port = publishing
    url = f"{stream_cluster.url}/proxy/{task_id}:{port}/"
    with connect(url, token=token_of(stream_cluster)) as link:
        for _ in range(3):
            link.send(b"a" * 300_000)
            received = b""
            while len(received) < 300_000:
                message = link.recv(60)
                assert isinstance(message, bytes)
                received += message
            assert received == b"A" * 300_000


def token_of(cluster: StreamCluster) -> str:
    """Returns the token of the admin's sign-in."""
    return str(cluster.session.headers["Authorization"]).removeprefix("Bearer ")


def status_of(url: str, token: str = "", **headers: str) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refused:
        connect(url, token=token, headers=headers)
    response = refused.value.response
    return response.status_code, (response.body or b"").decode()


def test_a_port_is_refused_to_others_without_a_token_by_a_cookie_and_if_it_is_not_published(
    stream_cluster: StreamCluster, publishing: tuple[str, int]
):
    task_id, port = publishing
    service = f"{stream_cluster.url}/proxy/{task_id}"
    token = token_of(stream_cluster)
    status, text = status_of(f"{service}:{port}/")
    assert (status, "needs the header Authorization" in text) == (401, True)
    assert status_of(f"{service}:{port}/", Cookie=f"auth={token}")[0] == 401
    status, text = status_of(f"{service}:{port + 1}/", token)
    # A port that is not published for TCP may serve a page's websocket.
    assert (status, f"listen on port {port + 1}" in text) == (502, True)
    assert status_of(f"{stream_cluster.url}/proxy/none:{port}/", token)[0] == 404
    eve = other_user(stream_cluster, "eve")
    status, text = status_of(f"{service}:{port}/", eve)
    assert (status, "only admin or an admin may enter it" in text) == (403, True)


def other_user(cluster: StreamCluster, name: str) -> str:
    """Creates a user who is no admin, and returns the token of a sign-in."""
    password = "Correct-horse-7"
    body = {"user": {"username": name, "active": True}, "password": password, "isHashed": False}
    cluster.session.post("/api/v1/users", body)
    return sign_in.token_for(cluster.session, name, password)
