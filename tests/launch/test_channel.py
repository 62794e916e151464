"""The command channel: mutual proof of the key, requests, commands that end with their caller, and the remote shell."""

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from tests.support.waiting import wait_until

from determined_launch import handshake, process_table, worker_environment
from determined_launch.channel import client, frames, remote_shell, server, verbs
from determined_launch.channel.frames import Closed
from determined_launch.channel.server import Server
from determined_launch.channel.verbs import Attend, Run
from determined_launch.errors import LaunchError

KEY = "5ec2e7" * 10 + "beef"
PROOF = bytes.fromhex(KEY)


def echo(connection, request):
    connection.send_json(frames.ANSWER, request)


@pytest.fixture
def running_server(tmp_path):
    ended = []
    run = Run({"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, str(tmp_path))
    server_under_test = Server("127.0.0.1", 0, PROOF, {"echo": echo, "run": run, "attend": Attend(ended.append)})
    server_under_test.ended = ended
    yield server_under_test
    server_under_test.close()


def run(port, command):
    connection = client.connect("127.0.0.1", port, PROOF, {"verb": "run", "command": command}, patience=5)
    output = {frames.STDOUT: b"", frames.STDERR: b""}
    while True:
        kind, body = connection.receive()
        if kind == frames.EXIT:
            connection.close()
            return body, output
        output[kind] += body


def test_a_request_gets_the_answer_of_the_server(running_server):
    assert client.ask("127.0.0.1", running_server.port, PROOF, {"verb": "echo", "x": 1}, patience=5)["x"] == 1


def test_a_client_with_another_key_is_refused(running_server):
    with pytest.raises(ConnectionError, match="rejected this connection"):
        client.ask("127.0.0.1", running_server.port, b"other", {"verb": "echo"}, patience=5)


def test_a_client_refuses_a_server_without_the_key():
    untrusted = Server("127.0.0.1", 0, b"other", {"echo": echo})
    with pytest.raises(ConnectionError):
        client.ask("127.0.0.1", untrusted.port, PROOF, {"verb": "echo"}, patience=5)
    untrusted.close()


def test_the_proof_of_a_worker_is_refused_by_the_command_channel(running_server):
    with socket.create_connection(("127.0.0.1", running_server.port), timeout=5) as peer:
        with pytest.raises(ConnectionError):
            handshake.prove(peer, PROOF, b"", ends=(b"worker", b"chief"), patience=5)


def test_a_peer_that_is_silent_or_too_slow_is_disconnected_in_time(monkeypatch):
    monkeypatch.setattr(handshake, "SECONDS", 0.5)
    created = Server("127.0.0.1", 0, PROOF, {"echo": echo})
    with socket.create_connection(("127.0.0.1", created.port), timeout=5) as silent:
        with socket.create_connection(("127.0.0.1", created.port), timeout=5) as slow:
            began = time.monotonic()
            silent.recv(32)
            assert silent.recv(1) == b""
            try:
                while time.monotonic() - began < 5:
                    slow.send(b"x")
                    select.select([slow], [], [], 0.05)  # readable as soon as the server hangs up
            except OSError:
                pass
            assert time.monotonic() - began < 3
    created.close()


def test_many_silent_peers_do_not_block_other_clients(running_server):
    silent = [socket.create_connection(("127.0.0.1", running_server.port)) for _ in range(server.MAX_UNPROVED + 40)]
    began = time.monotonic()
    assert client.ask("127.0.0.1", running_server.port, PROOF, {"verb": "echo"}, patience=5)
    assert time.monotonic() - began < 3
    for peer in silent:
        peer.close()


def test_a_server_that_could_not_start_a_thread_answers_the_next_client(running_server, monkeypatch):
    start, failures = threading.Thread.start, []

    def fail_once(thread):
        if not failures:
            failures.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail_once)
        with pytest.raises(ConnectionError):
            client.ask("127.0.0.1", running_server.port, PROOF, {"verb": "echo"}, patience=0)
        assert failures
    assert client.ask("127.0.0.1", running_server.port, PROOF, {"verb": "echo"}, patience=5)


def test_a_frame_over_the_limit_ends_the_connection(running_server):
    with socket.create_connection(("127.0.0.1", running_server.port), timeout=5) as peer:
        handshake.prove(peer, PROOF, b"", ends=server.ENDS, patience=5)
        peer.settimeout(5)
        peer.sendall(struct.pack("!BI", frames.REQUEST, frames.LIMIT + 1))
        assert peer.recv(1) == b""


def test_an_unknown_verb_is_refused(running_server):
    with pytest.raises(Closed, match="no such verb"):
        client.ask("127.0.0.1", running_server.port, PROOF, {"verb": "x"}, patience=5)


def test_the_verb_run_returns_output_and_exit_code(running_server):
    body, output = run(running_server.port, "echo out; echo err >&2; exit 7")
    assert (body, output) == (b'{"code": 7}', {frames.STDOUT: b"out\n", frames.STDERR: b"err\n"})


def test_a_command_is_killed_when_its_caller_disconnects(running_server, monkeypatch):
    monkeypatch.setattr(verbs, "_GRACE_SECONDS", 0.2)
    command = "trap '' TERM; sleep 300 & echo $!; wait"
    connection = client.connect(
        "127.0.0.1", running_server.port, PROOF, {"verb": "run", "command": command}, patience=5
    )
    pid = int(connection.receive()[1])
    connection.close()
    wait_until(lambda: not process_table.command_line(pid))


def test_attend_reports_the_exit_code_or_none_for_a_lost_connection(running_server):
    connection = client.connect("127.0.0.1", running_server.port, PROOF, {"verb": "attend"}, patience=5)
    connection.receive_json(frames.ANSWER)
    connection.send_json(frames.EXIT, {"code": 3})
    wait_until(lambda: running_server.ended == [3])
    connection.close()
    connection = client.connect("127.0.0.1", running_server.port, PROOF, {"verb": "attend"}, patience=5)
    connection.receive_json(frames.ANSWER)
    connection.close()
    wait_until(lambda: running_server.ended == [3, None])


def test_the_error_about_a_port_in_use_names_the_process_that_holds_it(running_server):
    with pytest.raises(LaunchError, match=rf"port {running_server.port} .* in use .* by process {os.getpid()} "):
        Server("127.0.0.1", running_server.port, PROOF, {})


@pytest.mark.parametrize(
    ("words", "host", "command"),
    [
        (["-o", "PasswordAuthentication=no", "-o", "X=no", "h", "true"], "h", ["true"]),
        (["h", "-p", "22", "-i", "key", "-o", "ConnectTimeout=10", "cd x ; y"], "h", ["cd x ; y"]),
        (["-x", "me@h", "a", "-p", "b"], "h", ["a", "-p", "b"]),
        (["-p22", "h"], "h", []),
    ],
)
def test_ssh_arguments_are_split_into_host_and_command(words, host, command):
    assert remote_shell.split(words) == (host, command)


@pytest.fixture
def shell(running_server, tmp_path):
    worker_environment.keep(tmp_path, {"DET_ALLOCATION_KEY": KEY}, {}, sys.executable)
    folder = remote_shell.write(tmp_path, {"far": ("127.0.0.1", running_server.port)}, sys.executable)
    return str(folder / "ssh")


def test_the_remote_shell_returns_output_and_exit_code(shell):
    words = [shell, "-o", "StrictHostKeyChecking=no", "far", "-p", "1", "echo out; echo err >&2; exit 9"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stdout, done.stderr) == (9, "out\n", "err\n")


def test_the_remote_shell_forwards_signals(shell):
    command = "trap 'echo caught; exit 5' TERM; echo up; while :; do sleep 0.05; done"
    child = subprocess.Popen([shell, "far", command], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n"
    child.send_signal(signal.SIGTERM)
    output, _ = child.communicate(timeout=60)
    assert (child.returncode, output) == (5, "caught\n")


def test_the_remote_shell_refuses_hosts_outside_of_the_allocation(shell):
    done = subprocess.run([shell, "example.invalid", "true"], capture_output=True, text=True, timeout=90)
    assert done.returncode == 255
    assert "not a container of this allocation; its containers are: far" in done.stderr


def test_the_stored_worker_environment_is_private_and_restored_without_overriding_set_variables(tmp_path):
    worker_environment.keep(tmp_path, {"DET_SESSION_TOKEN": "t", "A": "kept", "PATH": "/mine"}, {"P": "pinned"}, "py")
    path = tmp_path / "info" / "worker-environment.json"
    assert path.stat().st_mode & 0o777 == 0o600
    before = os.getcwd()
    try:
        restored = worker_environment.restore(str(tmp_path), {"PATH": "/launchers", "A": "set", "P": "set", "H": "1"})
    finally:
        os.chdir(before)
    assert restored == {"DET_SESSION_TOKEN": "t", "A": "set", "PATH": "/mine", "P": "pinned", "H": "1"}
    assert (
        "t" not in worker_environment.bare({"DET_SESSION_TOKEN": "t", "SECRET": "t", "PATH": "/p"}, tmp_path).values()
    )


def test_each_container_runs_a_worker_with_its_own_python():
    line = worker_environment.command("RANK", ["/chief/python", "-m", "m"], "/chief/python")
    assert "/chief/python" not in line
    sent = line[line.index("--") + 1 :]
    assert worker_environment.with_own_python(sent, "/own/python") == ["/own/python", "-m", "m"]
    line = worker_environment.command("RANK", ["sh", "x", "/chief/python"], "/chief/python")
    assert worker_environment.with_own_python(line[line.index("--") + 1 :], "/own") == ["sh", "x", "/chief/python"]
