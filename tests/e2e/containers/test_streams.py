"""Programs beside a trial in a container, and a port that only its own network has."""

import subprocess
import urllib.request
from pathlib import Path

import pytest
from tests.e2e.containers.conftest import ContainerCluster
from tests.support.live_cluster import python
from tests.support.live_trials import Experiment
from tests.support.terminal_program import TerminalProgram
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


def test_a_shell_and_a_port_of_a_trial_in_a_container(boxes: ContainerCluster, tmp_path: Path):
    (tmp_path / "run.py").write_text(SERVES)
    body = {"config": CONFIG, "configName": "serves.yaml", "activate": True}
    experiment = Experiment(boxes, int(submissions.create(boxes.session, body, pack(tmp_path))["experiment"]["id"]))
    line = wait_until(lambda: next((each for each in experiment.log if "waits on" in each), ""), what="it serves")
    trial, environment = str(experiment.trial_id), {**boxes.client_environment, "TERM": "xterm"}

    shell = TerminalProgram(python("determined_cli", "trial", "shell", trial), environment)
    shell.type("echo trial-$DET_TRIAL_ID; ls; test -f /.dockerenv && echo in'side'; stty size\n")
    shell.prints(f"trial-{trial}")
    shell.prints("page.txt")
    shell.prints("inside")
    shell.prints("40 100")
    shell.type("exit 7\n")
    assert shell.ended() == 7
    shell.close()

    argv = python("determined_cli", "trial", "port-forward", trial, f":{line.split()[-1]}")
    forwarding = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)
    assert forwarding.stdout is not None
    with forwarding.stdout:
        address = forwarding.stdout.readline().split()[1]
        with urllib.request.urlopen(f"http://{address}/page.txt", timeout=60) as answer:
            assert answer.read() == b"from the container"
    forwarding.terminate()
    forwarding.wait(60)
    experiment.do("kill")
    boxes.no_container_left()


def test_a_shell_of_its_own_runs_in_a_container_after_its_hooks_and_is_killed_at_once(
    boxes: ContainerCluster, tmp_path: Path
):
    (tmp_path / "startup-hook.sh").write_text("touch made-by-hook\n")
    environment = {**boxes.client_environment, "TERM": "xterm"}
    words = ("shell", "start", "--config", "resources.slots=0", "-c", str(tmp_path))
    shell = TerminalProgram(python("determined_cli", *words), environment)
    shell.prints("Started shell ")
    shell_id = shell.prints(" (")
    shell.type("ls; echo a-$DET_TASK_TYPE; test -f /.dockerenv && echo in'side'; exit 7\n")
    shell.prints("made-by-hook")
    shell.prints("a-SHELL")
    shell.prints("inside")
    assert shell.ended() == 7
    shell.close()
    killed = subprocess.run(python("determined_cli", "shell", "kill", shell_id), env=environment, check=False)
    assert killed.returncode == 0
    boxes.no_container_left()
