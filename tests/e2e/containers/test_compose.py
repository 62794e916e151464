"""docker-compose starts master, PostgreSQL and an agent; a second server joins by the printed command."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.compiler import IDLE_COMPILER
from tests.support.compose import AGENT_IMAGE, POSTGRES_IMAGE, Compose, need_images
from tests.support.container_engine import ROOT, TASK_IMAGE, containers, need_task_image, remove_containers
from tests.support.live_launchers import example_under, finals, run_bare_launcher
from tests.support.live_machines import Network, network
from tests.support.live_models import DIGITS
from tests.support.object_stores import Store, s3_store
from tests.support.official_cluster import OfficialCluster, until
from tests.support.own_engine import own_engine

from determined.client.session import Session
from determined_master.auth.passwords import client_hash

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.official,
    pytest.mark.torch,
    pytest.mark.budget(90, "starts a whole deployment"),
]

GATE = "train-17"
PORT = "18080"
_FINAL = re.compile(r"final parameters sha256: ([0-9a-f]{64})")


class Lab:
    """The services of docker-compose.yml, and the official client for them."""

    def __init__(self, folder: Path, net: Network, store: Store) -> None:
        folder.chmod(0o755)
        self.network, self.store = net, store
        self.official: OfficialCluster | None = None
        self.data = folder / "agent"
        self.variables = {
            "POSTGRES_IMAGE": POSTGRES_IMAGE,
            "POSTGRES_PASSWORD": "a1b2c3",
            "DETENT_ADDRESS": net.gateway,
            "DETENT_PORT": PORT,
            "DETENT_PAGE_PORTS": f"{int(PORT) + 1}-{int(PORT) + 4}",
            "DETENT_SLOTS": "1",
            "DETENT_AGENT_DATA": str(self.data),
        }
        # As documented, the agent mounts the folders that tasks mount.
        override = folder / "override.yml"
        volumes = [f"{path}:{path}" for path in (folder, IDLE_COMPILER)]
        allowed = {"DET_AGENT_ALLOWED_HOST_PATHS": f"{folder},{IDLE_COMPILER}"}
        override.write_text(yaml.safe_dump({"services": {"agent": {"volumes": volumes, "environment": allowed}}}))
        self.compose = Compose(f"detent-test-{os.getpid()}", self.variables, "docker-compose.yml", override)
        self.url = f"http://{net.gateway}:{PORT}"
        self.folder = folder

    def up(self) -> OfficialCluster:
        self.compose("up", "--detach")
        container = self.compose.container("master")
        password = self.compose.docker("exec", container, "cat", "/var/lib/detent/password").strip()
        body = {"username": "admin", "password": client_hash(password), "isHashed": True}
        with Session(self.url) as session:
            token = str(session.post("/api/v1/auth/login", body)["token"])
        self.official = official = OfficialCluster(
            self.url, self.folder, password, Session(self.url, token=token, timeout=90)
        )
        until(lambda: self.slots(official) == 1)
        return official

    def add_server(self, folder: Path, socket: str) -> None:
        """Runs the printed command with docker-compose.agent.yml, as a person does on the second machine."""
        folder.mkdir()
        shutil.copy(ROOT / "docker-compose.agent.yml", folder)
        command = self.compose("exec", "-T", "master", "det-master", "add-agent", self.url)
        variables = {
            "COMPOSE_PROJECT_NAME": "second",
            "DOCKER_HOST": f"unix://{socket}",
            "DETENT_ENGINE_SOCKET": socket,
            "DETENT_AGENT_DATA": str(folder / "data"),
            "DETENT_AGENT_ID": "second",
            "DETENT_SLOTS": "1",
        }
        subprocess.run(["sh", "-c", command], cwd=folder, env={**os.environ, **variables}, check=True)

    def seed(self, experiment: int) -> int:
        query = f"SELECT seed FROM trials WHERE experiment_id = {experiment}"
        words = ["psql", "-h", "127.0.0.1", "-U", "detent", "-d", "detent", "-tAc", query]
        password = f"PGPASSWORD={self.variables['POSTGRES_PASSWORD']}"
        return int(self.compose.docker("exec", "--env", password, self.compose.container("database"), *words))

    def slots(self, official: OfficialCluster) -> int:
        return sum(len(agent["slots"]) for agent in official.api.get("/api/v1/agents")["agents"])

    def config(self, gates: Path, *folders: Path, **changes: Any) -> dict[str, Any]:
        """Returns the configuration of the digits in a container with checkpoints in the bucket."""
        mounts = [{"host_path": str(path), "container_path": str(path)} for path in (*folders, gates, IDLE_COMPILER)]
        config: dict[str, Any] = yaml.safe_load(DIGITS.configured(gates, bind_mounts=mounts))
        config["checkpoint_storage"] = self.store.config
        config["environment"]["environment_variables"] += self.store.environment_variables
        return config | changes


@pytest.fixture
def lab(engine: None, tmp_path: Path) -> Iterator[Lab]:
    need_task_image()
    need_images()
    with network(1) as net, s3_store(address=net.gateway) as store:
        created = Lab(tmp_path, net, store)
        try:
            yield created
        finally:
            if created.official is not None:
                created.official.api.close()
            print(created.compose("logs", "--tail", "200", "--no-color"))
            created.compose.down()
            remove_containers(f"detent.data={created.data}")


def test_digits_outlive_the_kill_of_each_container_and_a_second_server_joins(
    lab: Lab, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, straight
) -> None:
    official = lab.up()
    gates = tmp_path / "gates"
    gates.mkdir()
    gates.chmod(0o777)  # tasks run as an ordinary user
    (gates / GATE).write_text("preempted")
    experiment = official.create(lab.config(gates), DIGITS.context(tmp_path / "context"))
    until((gates / f"{GATE}.here").exists)
    for service in ("database", "agent", "master"):
        lab.compose.kill(service)
        until(lambda: answers(official))
    official.det("experiment", "pause", experiment)
    until(lambda: not official.held(experiment))
    assert 0 < official.steps(experiment) < DIGITS.steps
    official.det("experiment", "activate", experiment)
    official.reaches(experiment, "COMPLETED")
    assert set(_FINAL.findall(official.logs(experiment))) == {straight("digits").final}
    assert official.trial(experiment)["restarts"] == 0
    assert lab.store.objects()
    until(lambda: not containers(f"detent.data={lab.data}"))

    second = lab.network.machines[0]
    # Uses nsenter, since an engine needs the cgroups in /sys, which `ip netns exec` hides.
    prefix = ["nsenter", f"--net=/run/netns/{second.namespace}"]
    with own_engine(tmp_path_factory.mktemp("second") / "engine", (AGENT_IMAGE, TASK_IMAGE), prefix=prefix) as engine:
        lab.add_server(tmp_path / "second", engine.url.removeprefix("unix://"))
        until(lambda: lab.slots(official) == 2)
        model = example_under("torch_distributed", slots=2)
        config = yaml.safe_load(model.configured(variables=lab.store.environment_variables))
        over_two_servers = official.create(
            config | {"name": "both", "checkpoint_storage": lab.store.config}, model.context(tmp_path / "both")
        )
        official.reaches(over_two_servers, "COMPLETED")
        log = official.logs(over_two_servers)
        # Each server has one slot, so each ran one of the two ranks.
        expected = run_bare_launcher("torch_distributed", "class", 2, lab.seed(over_two_servers), tmp_path / "bare")
        assert finals(log.splitlines()) == expected.finals


def answers(official: OfficialCluster) -> bool:
    try:
        return bool(official.api.get("/api/v1/agents")["agents"])
    except Exception:
        return False
