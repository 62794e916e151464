"""``det shell``: started, entered from real terminals, and ended when nobody is in it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.streams.conftest import StreamCluster
from tests.support.terminal_program import TerminalProgram
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("streams")]
CONFLICT = 7
"""Exit code for what the state of a thing does not allow."""
NO_SLOTS = ("--config", "resources.slots=0")


@pytest.fixture
def terminals(stream_cluster: StreamCluster) -> Iterator[list[TerminalProgram]]:
    """Programs on terminals, which are closed at the end, as all shells are killed."""
    started: list[TerminalProgram] = []
    yield started
    for program in started:
        program.close()
    for shell in stream_cluster.session.get("/api/v1/shells")["shells"]:
        stream_cluster.session.post(f"/api/v1/shells/{shell['id']}/kill", {})


def described(cluster: StreamCluster, shell_id: str) -> dict[str, Any]:
    return dict(cluster.session.get(f"/api/v1/shells/{shell_id}")["shell"])


@pytest.mark.budget(60, "two shells and a restart of the master")
def test_a_shell_is_started_entered_twice_and_outlives_a_restart_of_the_master(
    stream_cluster: StreamCluster, terminals: list[TerminalProgram], tmp_path: Any
):
    (tmp_path / "startup-hook.sh").write_text("export FROM_HOOK=hooked\ntouch made-by-hook\n")
    first = stream_cluster.on_terminal("shell", "start", *NO_SLOTS, "-c", str(tmp_path))
    terminals.append(first)
    first.prints("Started shell ")
    shell_id = first.prints(" (")
    first.type("ls; echo $DET_TASK_TYPE-$FROM_HOOK\n")
    first.prints("made-by-hook")
    first.prints("SHELL-hooked")
    assert described(stream_cluster, shell_id)["idleSince"] is None
    second = stream_cluster.on_terminal("shell", "open", shell_id[:12])
    terminals.append(second)
    second.type("echo sec'ond'; exit 3\n")
    second.prints("second")
    second.prints(f"shell {shell_id} keeps running. To open it again: det shell open {shell_id}")
    assert second.ended() == 3
    stream_cluster.kill_master()
    stream_cluster.start_master()
    first.type("echo af'ter'\n")
    first.prints("after")
    first.type("exit\n")
    assert first.ended() == 0
    wait_until(lambda: described(stream_cluster, shell_id)["idleSince"], what="it is idle")
    assert described(stream_cluster, shell_id)["state"] == "STATE_RUNNING"


@pytest.mark.budget(60, "waits for the end of an idle shell")
def test_a_shell_that_nobody_is_in_ends_after_its_timeout_and_says_why(
    stream_cluster: StreamCluster, terminals: list[TerminalProgram]
):
    done = stream_cluster.det("shell", "start", "-d", *NO_SLOTS, "--config", "idle_timeout=2s")
    assert done.returncode == 0, done.stderr
    shell_id = done.stdout.decode().strip()
    wait_until(lambda: described(stream_cluster, shell_id)["state"] == "STATE_TERMINATED", what="it ends")
    (described_,) = json.loads(stream_cluster.det("shell", "describe", "--json", shell_id[:12]).stdout)
    assert described_["exit_status"] == "idle for 2 seconds"
    log = stream_cluster.det("shell", "logs", shell_id[:12]).stdout.decode()
    assert "the shell is ended: idle for 2 seconds, without a connection" in log
    opened = stream_cluster.on_terminal("shell", "open", shell_id[:12])
    terminals.append(opened)
    opened.prints(f"shell {shell_id} has ended: idle for 2 seconds; `det shell logs {shell_id}` prints its log")
    assert opened.ended() == CONFLICT


def test_a_shell_that_waits_for_slots_says_so_and_may_be_left(
    stream_cluster: StreamCluster, terminals: list[TerminalProgram]
):
    for _ in range(2):
        assert stream_cluster.det("shell", "start", "-d").returncode == 0
    waiting = stream_cluster.on_terminal("shell", "start")
    terminals.append(waiting)
    waiting.prints("Started shell ")
    shell_id = waiting.prints(" (")
    waiting.prints(f"shell {shell_id} waits: ")
    waiting.type("\x03")
    waiting.prints(f"shell {shell_id} is still being started. To open it: det shell open {shell_id}")
    assert waiting.ended() == 130


def test_a_shell_without_a_terminal_is_refused_before_it_is_started(stream_cluster: StreamCluster):
    before = len(stream_cluster.session.get("/api/v1/shells")["shells"])
    done = stream_cluster.det("shell", "start")
    assert (done.returncode, b"--detach starts one without opening it" in done.stderr) == (1, True)
    assert len(stream_cluster.session.get("/api/v1/shells")["shells"]) == before
