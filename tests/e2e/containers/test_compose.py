"""docker-compose brings up master, PostgreSQL and an agent; a second server joins by the printed command."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.compiler import IDLE_COMPILER
from tests.support.compose import POSTGRES_IMAGE, Compose, need_images
from tests.support.container_engine import containers, need_task_image, remove_containers
from tests.support.live_machines import Network, network
from tests.support.live_models import DIGITS
from tests.support.object_stores import Store, s3_store
from tests.support.official_cluster import OfficialCluster, until

from determined.client.session import Session
from determined_master.passwords import client_hash

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.official, pytest.mark.torch]

GATE = "train-17"
PORT = "18080"
_FINAL = re.compile(r"final parameters sha256: ([0-9a-f]{64})")


class Lab:
    """The services of docker-compose.yml, and the official client beside them."""

    def __init__(self, folder: Path, net: Network, store: Store) -> None:
        folder.chmod(0o755)
        self.network, self.store = net, store
        self.data = folder / "agent"
        self.variables = {
            "POSTGRES_IMAGE": POSTGRES_IMAGE,
            "POSTGRES_PASSWORD": "a1b2c3",
            "DETENT_ADDRESS": net.gateway,
            "DETENT_PORT": PORT,
            "DETENT_SLOTS": "1",
            "DETENT_AGENT_DATA": str(self.data),
        }
        # As the page says: the agent sees the folders that tasks mount.
        override = folder / "override.yml"
        seen = [f"{path}:{path}" for path in (folder, IDLE_COMPILER)]
        override.write_text(yaml.safe_dump({"services": {"agent": {"volumes": seen}}}))
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
        official = OfficialCluster(self.url, self.folder, password, Session(self.url, token=token, timeout=90))
        until(lambda: self.slots(official) == 1)
        return official

    def slots(self, official: OfficialCluster) -> int:
        return sum(len(each["slots"]) for each in official.api.get("/api/v1/agents")["agents"])

    def config(self, gates: Path, *seen: Path, **changes: Any) -> dict[str, Any]:
        """Digits in a container, with its checkpoints in the bucket."""
        mounts = [{"host_path": str(path), "container_path": str(path)} for path in (*seen, gates, IDLE_COMPILER)]
        config: dict[str, Any] = yaml.safe_load(DIGITS.configured(gates, bind_mounts=mounts))
        config["checkpoint_storage"] = self.store.config
        config["environment"]["environment_variables"] += self.store.environment_variables
        return config | changes


@pytest.fixture
def lab(engine: None, tmp_path: Path) -> Iterator[Lab]:
    need_task_image()
    need_images()
    with network(1) as net, s3_store(address=net.gateway) as store:
        made = Lab(tmp_path, net, store)
        try:
            yield made
        finally:
            print(made.compose("logs", "--tail", "200", "--no-color"))
            made.compose.down()
            remove_containers(f"detent.data={made.data}")


def test_digits_outlive_the_kill_of_each_container_and_a_second_server_joins(
    lab: Lab, tmp_path: Path, straight
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


def answers(official: OfficialCluster) -> bool:
    try:
        return bool(official.api.get("/api/v1/agents")["agents"])
    except Exception:
        return False
