"""OpenSSH and pages of a trial in a container, whose image has no SSH server."""

import re
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.e2e.containers.conftest import ContainerCluster
from tests.support.free_ports import free_port
from tests.support.live_cluster import python
from tests.support.live_trials import Experiment
from tests.support.ssh_user import SshUser
from tests.support.waiting import wait_until

from determined.client import submissions
from determined.context import pack

pytestmark = pytest.mark.e2e

SERVES = """
import http.server, pathlib
pathlib.Path("page.txt").write_text("from the container")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print("waits on", server.server_address[1], flush=True)
server.serve_forever()
"""
CONFIG = """
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
max_restarts: 0
"""


@pytest.mark.budget(60, "starts a container, and ssh several times")
def test_ssh_and_pages_reach_a_container_without_an_ssh_server_and_leave_nothing(
    boxes: ContainerCluster, tmp_path: Path
):
    (tmp_path / "run.py").write_text(SERVES)
    body = {"config": CONFIG, "configName": "serves.yaml", "activate": True}
    experiment = Experiment(boxes, int(submissions.create(boxes.session, body, pack(tmp_path))["experiment"]["id"]))
    line = wait_until(lambda: next((each for each in experiment.log if "waits on" in each), ""), what="it serves")
    host, port = f"det-trial-{experiment.trial_id}", int(line.split()[-1])
    home = tmp_path / "home"
    home.mkdir()
    environment = boxes.client_environment | {"HOME": str(home)}
    subprocess.run(python("determined_cli", "ssh-config"), env=environment, check=True, capture_output=True)
    ssh = SshUser(home, environment)

    done = ssh.ssh(host, "test -f /.dockerenv && echo inside $DET_TRIAL_ID; wc -c; exit 3", input=bytes(1 << 20))
    assert done.stdout.split() == [b"inside", b"%d" % experiment.trial_id, b"1048576"]
    assert done.returncode == 3
    shell = ssh.on_terminal(host)
    shell.type("stty size; exit 4\n")
    shell.prints("40 100")
    assert shell.ended() == 4
    shell.close()
    sent = subprocess.run(["tar", "-c", "run.py"], cwd=tmp_path, capture_output=True, check=True).stdout
    assert ssh.ssh(host, "mkdir copy; tar -xC copy", input=sent).returncode == 0
    assert ssh.ssh(host, "cat copy/run.py").stdout == (tmp_path / "run.py").read_bytes()
    ours = free_port()
    with ssh.running("-L", f"{ours}:localhost:{port}", host, "echo up; exec sleep 4244") as running:
        assert running.stdout.readline() == b"up\n"
        page = subprocess.run(["curl", "-s", f"http://127.0.0.1:{ours}/page.txt"], capture_output=True, check=True)
        assert page.stdout == b"from the container"
    wait_until(lambda: subprocess.run(["pgrep", "-f", "^sleep 4244"], check=False).returncode == 1, what="it ends")
    done = ssh.scp(f"{host}:page.txt", str(tmp_path / "page"))
    assert done.returncode == 0 or re.search(rb"the task has no sftp-server: install", done.stderr)

    ticket = boxes.session.post(f"/detent/tasks/{experiment.task_id}/open", {"port": port, "path": "/page.txt"})
    with httpx.Client(timeout=60, trust_env=False, follow_redirects=True) as visitor:
        assert visitor.get(str(ticket["url"])).text == "from the container"

    experiment.do("kill")
    boxes.no_container_left()
