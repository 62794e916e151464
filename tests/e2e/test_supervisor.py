"""``det up`` killed by SIGKILL: master and agent end with it, the task continues, and the next ``det up`` adopts it."""

import contextlib
import os
import signal
import subprocess

import pytest
from tests.support import live_processes
from tests.support.live_cluster import LiveCluster, Program, log_in, python
from tests.support.live_models import MODELS, SCRIPT
from tests.support.live_trials import create
from tests.support.new_database import put_database
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.xdist_group("supervisor"),
    pytest.mark.budget(60, "waits for hung programs"),
]


class UpCluster(LiveCluster):
    """A cluster under ``det up``."""

    supervisor: Program

    def up(self) -> None:
        argv = python("determined_cli", "up", "--data", str(self.data), "--port", str(self.port), "--slots", "1")
        self.supervisor = Program(argv, self.folder / "up.log", self.environment)
        self.url = self.supervisor.announced("ready: ")
        self.session.close()
        self.session = log_in(self.url, self.data)
        self.cluster_id = str(self.session.get("/api/v1/master")["clusterId"])

    def close(self) -> None:
        self.supervisor.end(signal.SIGKILL)
        wait_until(lambda: not self.services(), what="master and agent end with their supervisor")
        super().close()

    def services(self) -> dict[str, int]:
        """Returns the pids of the services on this data folder, by module."""
        pids = {}
        for name in os.listdir("/proc"):
            words = live_processes.command_of(int(name)) if name.isdigit() else []
            if any(word.startswith(str(self.data)) for word in words):
                pids |= {word: int(name) for word in words if word in ("determined_master", "determined_agent")}
        return pids


@contextlib.contextmanager
def started(folder):
    cluster = UpCluster(folder)
    put_database(cluster.data)
    cluster.up()
    with contextlib.closing(cluster):
        yield cluster


@pytest.fixture
def up_cluster(tmp_path):
    with started(tmp_path / "up") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def running_cluster(tmp_path_factory):
    """Yields a cluster for tests after which master, agent and supervisor run on."""
    with started(tmp_path_factory.mktemp("running") / "up") as cluster:
        yield cluster


@pytest.mark.long  # test_kills.py kills the master and the agent
def test_a_task_survives_the_kill_and_restart_of_det_up(up_cluster, tmp_path, same_as_straight, moments):
    batch = moments.randrange(1, 36)
    experiment = create(up_cluster, MODELS["digits"], tmp_path, held=(f"train-{batch}",))
    experiment.at_gate(f"train-{batch}")
    worker = experiment.worker
    up_cluster.supervisor.end(signal.SIGKILL)
    wait_until(lambda: not up_cluster.services(), what="master and agent end with their supervisor")
    assert live_processes.environ_of(worker), "the task runs on"
    up_cluster.up()
    experiment.open_gate(f"train-{batch}")
    same_as_straight(experiment)
    assert experiment.progress["runId"] == 1


@pytest.mark.parametrize("name", ["determined_master", "determined_agent"])
def test_the_supervisor_restarts_a_service_that_died(running_cluster, name):
    old = running_cluster.services()[name]
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: running_cluster.services().get(name, old) != old, what=f"another {name}")
    wait_until(lambda: running_cluster.connected(), what="the agent is connected")


@pytest.mark.long  # the kill below is the harder case
def test_a_task_survives_the_orderly_end_and_restart_of_det_up(up_cluster, tmp_path, same_as_straight, moments):
    """The trial saves first, the experiment stays ACTIVE, and the next ``det up`` continues with the next step."""
    batch = moments.randrange(1, 36)
    experiment = create(up_cluster, MODELS["digits"], tmp_path, gates=(f"train-{batch}",))
    experiment.at_gate(f"train-{batch}")
    assert up_cluster.supervisor.end(signal.SIGTERM) == 0
    assert not up_cluster.services()
    up_cluster.up()
    same_as_straight(experiment)
    assert experiment.progress["runId"] == 2
    assert not [report for report in experiment.reports("training") if report["archived"]]


def test_a_second_det_up_on_the_same_folder_is_refused(running_cluster):
    argv = python("determined_cli", "up", "--data", str(running_cluster.data), "--port", "0")
    second = Program(argv, running_cluster.folder / "second.log", running_cluster.environment)
    assert second.process.wait(60) == 7
    assert str(running_cluster.supervisor.pid) in second.log.read_text()


@pytest.mark.long  # the test below ends what a killed supervisor left, by the same way
@pytest.mark.parametrize("verb", [("down", "--now"), ("down",)])
def test_down_with_a_hung_master_ends_the_tasks_too(up_cluster, tmp_path, verb):
    experiment = create(up_cluster, SCRIPT, tmp_path, held=("step-0-1",))
    experiment.at_gate("step-0-1")
    running = experiment.processes
    assert running
    os.kill(up_cluster.services()["determined_master"], signal.SIGSTOP)
    down = subprocess.run(
        python("determined_cli", *verb, "--data", str(up_cluster.data)),
        env=up_cluster.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not [pid for pid in running if live_processes.environ_of(pid)], "no task runs on"
    assert not live_processes.shims(up_cluster.data)
    assert down.returncode == 0, down.stderr
    assert "stopped" in down.stderr
    assert up_cluster.supervisor.process.wait(60) == 0
    up_cluster.up()
    experiment.open_gate("step-0-1")
    experiment.ended()
    assert up_cluster.session.get(f"/api/v1/trials/{experiment.trial_id}")["trial"]["restarts"] == 0


def test_down_after_a_killed_supervisor_ends_the_leftover_processes(up_cluster, tmp_path):
    experiment = create(up_cluster, SCRIPT, tmp_path, held=("step-0-1",))
    experiment.at_gate("step-0-1")
    running = experiment.processes
    up_cluster.supervisor.end(signal.SIGKILL)
    wait_until(lambda: not up_cluster.services(), what="master and agent end with their supervisor")
    argv = python("determined_cli", "down", "--data", str(up_cluster.data))
    assert subprocess.run(argv, env=up_cluster.environment, check=False).returncode == 0
    assert not [pid for pid in running if live_processes.environ_of(pid)]


def test_a_log_that_has_grown_is_rotated(running_cluster):
    log = running_cluster.data / "logs" / "agent.log"
    with log.open("ab") as file:
        file.truncate(20 << 20)
    wait_until(lambda: (log.parent / "agent.log.1").exists() and log.stat().st_size < 1 << 20, what="a rotated log")
    assert (log.parent / "agent.log.1").stat().st_size <= 16 << 20
