"""OpenSSH into trials, by ``det ssh-config``: programs, terminals, copies, ports, and what it says if it cannot."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.streams.conftest import StreamCluster
from tests.support.free_ports import free_port
from tests.support.live_trials import Experiment
from tests.support.ssh_user import SshUser
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("streams")]
SERVES = """
import http.server, threading
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "9")
        self.end_headers()
        self.wfile.write(b"from task")
server = http.server.HTTPServer(("127.0.0.1", 0), Page)
print("waits", server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def ssh(stream_cluster: StreamCluster) -> SshUser:
    done = stream_cluster.det("ssh-config")
    assert done.returncode == 0, done.stderr
    return SshUser(Path(stream_cluster.environment["HOME"]), stream_cluster.client_environment)


def host_of(experiment: Experiment) -> str:
    return f"det-trial-{experiment.trial_id}"


def test_a_program_has_input_two_outputs_an_exit_code_and_the_trials_environment(ssh: SshUser, waiting: Experiment):
    host = host_of(waiting)
    done = ssh.ssh(host, "echo $DET_TRIAL_ID; pwd | wc -l; wc -c; echo bad >&2; exit 3", input=bytes(3 << 20))
    assert done.stdout.split() == [b"%d" % waiting.trial_id, b"1", b"%d" % (3 << 20)]
    assert (done.stderr, done.returncode) == (b"bad\n", 3)
    done = ssh.ssh("-o", "SetEnv=FOO=a*b", f"det-task-{waiting.task_id}", 'echo "$FOO"; ls')
    assert done.stdout.split() == [b"a*b", b"run.py"], done.stderr
    done = ssh.ssh(host, "kill -TERM $$")
    assert (done.stdout, done.returncode) == (b"", 255)


def test_a_shell_reads_a_script_from_its_input(ssh: SshUser, waiting: Experiment):
    done = ssh.ssh("-T", host_of(waiting), input=b"a=40\necho $((a + 2))\nexit 4\n")
    assert (done.stdout, done.returncode) == (b"42\n", 4)


def test_a_shell_on_a_terminal_is_resized_and_takes_ctrl_c(ssh: SshUser, waiting: Experiment):
    shell = ssh.on_terminal(host_of(waiting))
    try:
        shell.type("stty size; echo $DET_TRIAL_ID-$TERM\n")
        shell.prints("40 100")
        shell.prints(f"{waiting.trial_id}-xterm-256color")
        shell.resize(50, 120)
        shell.type("while [ \"$(stty size)\" != '50 120' ]; do sleep 0.1; done; echo resi'zed'\n")
        shell.prints("resized")
        shell.type("(echo star'ted'; exec sleep 1000)\n")
        shell.prints("started")
        shell.type("\x03")
        shell.type("echo code=$?\n")
        shell.prints("code=130")
        shell.type("exit 7\n")
        assert shell.ended() == 7
    finally:
        shell.close()


def test_scp_and_rsync_copy_both_ways(ssh: SshUser, waiting: Experiment, tmp_path: Path):
    host = host_of(waiting)
    sent = tmp_path / "a file"
    sent.write_bytes(os.urandom(5 << 20))
    for number, flags in enumerate(((), ("-O",))):
        done = ssh.scp(*flags, str(sent), f"{host}:copy{number}")
        assert done.returncode == 0, done.stderr
        done = ssh.scp(*flags, f"{host}:copy{number}", str(tmp_path / f"back{number}"))
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"back{number}").read_bytes() == sent.read_bytes()
    done = ssh.rsync("-a", str(sent), f"{host}:synced")
    assert done.returncode == 0, done.stderr
    done = ssh.rsync("-a", f"{host}:synced", str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again").read_bytes() == sent.read_bytes()


@pytest.fixture
def serving(stream_cluster: StreamCluster, tmp_path: Path) -> Iterator[tuple[Experiment, int]]:
    """A trial that serves a page on a port of 127.0.0.1, and the port."""
    experiment = stream_cluster.begin(tmp_path, SERVES)
    line = next(line for line in experiment.log if "waits" in line)
    yield experiment, int(line.split("waits ")[1].split()[0])
    experiment.do("kill")
    experiment.nothing_left()


def test_a_forwarded_port_reaches_a_server_of_the_trial_and_no_other_machine(
    ssh: SshUser, serving: tuple[Experiment, int]
):
    experiment, port = serving
    ours, other = free_port(), free_port()
    words = ("-o", "ExitOnForwardFailure=yes", "-L", f"{ours}:localhost:{port}", "-L", f"{other}:192.0.2.1:80")
    with ssh.running(*words, host_of(experiment), "echo up; exec sleep 1000") as running:
        assert running.stdout.readline() == b"up\n"
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", ours), 10) as client, client.makefile("rb") as answer:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert answer.read().endswith(b"from task")
        with socket.create_connection(("127.0.0.1", other), 10) as client:
            assert client.recv(1) == b""
        assert b"only ports of the task itself: localhost, not 192.0.2.1" in running.stderr.readline()


def test_what_ssh_started_ends_with_it(ssh: SshUser, waiting: Experiment):
    with ssh.running(host_of(waiting), "(setsid sleep 4242 &); echo up; exec sleep 4243") as running:
        assert running.stdout.readline() == b"up\n"
        wait_until(lambda: len(sleeping()) == 2, what="both programs run")
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not sleeping(), what="its programs end")


def sleeping() -> list[str]:
    found = subprocess.run(["pgrep", "-f", "^sleep 424[23]$"], capture_output=True, text=True, check=False)
    return found.stdout.split()


def test_a_session_survives_a_restart_of_the_master(stream_cluster: StreamCluster, ssh: SshUser, waiting: Experiment):
    program = "kept=42; echo up; while read line; do echo $line-$kept; done"
    with ssh.running(host_of(waiting), program) as running:
        assert running.stdout.readline() == b"up\n"
        stream_cluster.kill_master()
        stream_cluster.start_master()
        running.stdin.write(b"still\n")
        running.stdin.close()
        assert running.stdout.readline() == b"still-42\n"
        assert running.process.wait(60) == 0


def test_another_key_than_the_one_that_was_shown_to_the_master_is_not_let_in(
    ssh: SshUser, waiting: Experiment, tmp_path: Path
):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "wrong")], check=True)
    done = ssh.ssh("-o", f"IdentityFile={tmp_path / 'wrong'}", "-o", "IdentityAgent=none", host_of(waiting), "true")
    assert done.returncode == 0, "ours is offered too"
    (ssh.folder / "detent" / "id_ed25519").rename(tmp_path / "ours")
    try:
        done = ssh.ssh("-i", str(tmp_path / "wrong"), host_of(waiting), "true")
        assert done.returncode == 255
        assert b"Permission denied (publickey)" in done.stderr
    finally:
        (tmp_path / "ours").rename(ssh.folder / "detent" / "id_ed25519")


def test_what_cannot_be_entered_is_said_in_a_sentence(stream_cluster: StreamCluster, ssh: SshUser, waiting: Experiment):
    waiting.do("kill")
    waiting.nothing_left()
    done = ssh.ssh(host_of(waiting), "true")
    assert done.returncode == 255
    assert done.stderr.decode().splitlines()[0] == (
        f"det: task {waiting.task_id} does not run: it is paused, waits to be retried, or has ended"
    )
    done = ssh.ssh("det-trial-99999", "true")
    assert done.stderr.decode().splitlines()[0] == "det: trial '99999' not found"
    done = ssh.ssh("det-trial-x", "true")
    assert b"'det-trial-x' is no host of a task" in done.stderr
