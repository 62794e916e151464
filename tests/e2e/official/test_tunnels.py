"""Shells of the official client, and ports that it publishes while it follows a trial."""

import json
import subprocess
import urllib.request
from pathlib import Path

import pytest
from tests.e2e.official import configs
from tests.support.free_ports import free_port
from tests.support.official_client import OFFICIAL
from tests.support.official_cluster import OfficialCluster, until

pytestmark = [pytest.mark.e2e, pytest.mark.official, pytest.mark.budget(60, "starts the official client as a process")]
SERVES = """
import http.server, os, sys
PORT = int(os.environ["DET_PROXY_PORT_" + sys.argv[1]])
server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), http.server.SimpleHTTPRequestHandler)
print("waits", flush=True)
server.serve_forever()
"""


@pytest.mark.long  # the test below uses the same tunnel; this client waits for a minute
def test_publish_reaches_a_tcp_port_of_the_trial(official: OfficialCluster, tmp_path: Path):
    (tmp_path / "run.py").write_text(SERVES)
    (tmp_path / "page.txt").write_text("from the trial " * 100_000)
    theirs, ours = free_port(), free_port()
    config = configs.script("serves", official=False) | {
        "entrypoint": f"python3 run.py {theirs}",
        "environment": {"proxy_ports": [{"proxy_port": theirs, "proxy_tcp": True}]},
    }
    path = official.folder / "serves.json"
    path.write_text(json.dumps(config))
    argv = [OFFICIAL / "bin" / "det", "experiment", "create", path, tmp_path, "-f", "-p", f"{ours}:{theirs}"]
    with subprocess.Popen(
        argv, env=official.environment, cwd=official.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:

        def page() -> bytes | None:
            try:
                # The client never answers a connection that comes before the trial's port is open.
                with urllib.request.urlopen(f"http://127.0.0.1:{ours}/page.txt", timeout=5) as answer:
                    return bytes(answer.read())
            except OSError:
                return None

        try:
            assert until(page) == (tmp_path / "page.txt").read_bytes()
        finally:
            process.kill()
            (experiment,) = official.api.get("/api/v1/experiments", {"name": "serves"})["experiments"]
            official.api.post(f"/api/v1/experiments/{experiment['id']}/kill", {})
            official.reaches(experiment["id"], "CANCELED")


def test_shell_open_runs_a_program_and_a_shell_over_the_clients_own_tunnel(official: OfficialCluster):
    shell = official.det("shell", "start", "--detach", "--config", "resources.slots=0").strip().splitlines()[-1]
    nowhere = ("--", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
    printed = official.det("shell", "open", shell, *nowhere, "echo in-$DET_TASK_ID; stty -a | grep -c speed")
    assert f"in-{shell}" in printed
    printed = official.det("shell", "open", shell, *nowhere, typed="echo $((40 + 2)); exit\n")
    assert "42" in printed
    assert f"/proxy/{shell}" not in printed
    assert shell in official.det("shell", "list")
    assert "determined.cli.tunnel" in official.det("shell", "show-ssh-command", shell)
    official.det("shell", "kill", shell)
    until(lambda: official.api.get(f"/api/v1/shells/{shell}")["shell"]["state"] == "STATE_TERMINATED")
