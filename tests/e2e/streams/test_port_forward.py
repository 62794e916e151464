"""``det task port-forward``: a page of a task from this machine, and ports on which nobody listens."""

import subprocess
import urllib.request
from pathlib import Path

import pytest
from tests.e2e.streams.conftest import StreamCluster
from tests.support.free_ports import free_port
from tests.support.live_cluster import python
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("streams")]
SERVES = """
import http.server, pathlib
pathlib.Path("page.txt").write_text("from the task" * 100_000)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print("waits on", server.server_address[1], flush=True)
server.serve_forever()
"""


class Forwarding:
    """``det task port-forward``, and the port of this machine on which it listens."""

    def __init__(self, cluster: StreamCluster, experiment: Experiment, port: int) -> None:
        argv = python("determined_cli", "task", "port-forward", experiment.task_id, f":{port}")
        self.process = subprocess.Popen(
            argv, env=cluster.client_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()

    @property
    def address(self) -> str:
        return self.line.split()[1]

    def close(self) -> str:
        """Ends it as Ctrl-C does. Returns what it has said."""
        self.process.terminate()
        return self.process.communicate(timeout=60)[1]


def test_a_page_of_a_task_is_fetched_several_times_through_a_forwarded_port(
    stream_cluster: StreamCluster, tmp_path: Path
):
    experiment = stream_cluster.begin(tmp_path, SERVES)
    port = int(next(line for line in experiment.log if "waits on" in line).split()[-1])
    forwarding = Forwarding(stream_cluster, experiment, port)
    for _ in range(3):
        with urllib.request.urlopen(f"http://{forwarding.address}/page.txt", timeout=60) as answer:
            assert answer.read() == b"from the task" * 100_000
    assert forwarding.close() == ""
    experiment.do("kill")
    experiment.nothing_left()


def test_a_published_port_of_a_new_experiment_is_reached_while_its_log_is_followed(
    stream_cluster: StreamCluster, tmp_path: Path
):
    context, port = tmp_path / "context", free_port()
    context.mkdir()
    (context / "run.py").write_text(SERVES.replace('("127.0.0.1", 0)', f'("127.0.0.1", {port})'))
    config = tmp_path / "config.yaml"
    config.write_text("entrypoint: python3 run.py\nsearcher: {name: single, metric: loss}\nmax_restarts: 0\n")
    argv = python("determined_cli", "e", "create", str(config), str(context), "--publish", f":{port}")
    process = subprocess.Popen(
        argv, env=stream_cluster.client_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    experiment = Experiment(stream_cluster, int(process.stdout.readline().split()[-1]))
    address = next(line.split()[1] for line in process.stderr if line.startswith("Forwarding "))
    wait_until(lambda: any("waits on" in line for line in experiment.log), what="it serves")
    with urllib.request.urlopen(f"http://{address}/page.txt", timeout=60) as answer:
        assert answer.read() == b"from the task" * 100_000
    experiment.do("kill")
    process.communicate(timeout=60)
    refused = stream_cluster.det("e", "create", str(config), str(context), "-p", "nothing")
    assert b"'nothing' is no port" in refused.stderr


def test_a_port_on_which_nobody_listens_is_named_and_the_command_goes_on(
    stream_cluster: StreamCluster, waiting: Experiment
):
    forwarding = Forwarding(stream_cluster, waiting, 1)
    for _ in range(2):
        with pytest.raises(OSError):
            urllib.request.urlopen(f"http://{forwarding.address}/", timeout=60)
    assert forwarding.close() == "det: cannot connect to port 1 of the task: nobody listens there\n" * 2
