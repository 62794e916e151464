"""A cluster whose agent runs tasks in containers of a real engine. One worker runs all of its tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.compiler import IDLE_COMPILER
from tests.support.container_engine import containers, need_task_image, remove_containers
from tests.support.live_cluster import LiveCluster
from tests.support.live_models import MODELS
from tests.support.live_trials import Experiment, create
from tests.support.waiting import wait_until

DOCKER = ("--container-runtime", "docker")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Assigns all tests to one worker, since one of them kills the engine. The marks must be set before xdist reads
    them."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("container-engine"))


class ContainerCluster(LiveCluster):
    """A cluster with one agent that runs containers."""

    @property
    def label(self) -> str:
        return f"detent.data={self.folder / 'agent-1'}"

    @property
    def containers(self) -> list[str]:
        return containers(self.label)

    def start_containers(self, *arguments: str) -> None:
        """Starts the agent, whose containers may mount the folders of tests. ``arguments``: further settings."""
        host_paths = (self.folder.parent, IDLE_COMPILER)
        self.start_agent("agent-1", slots=2, arguments=(*DOCKER, *arguments), host_paths=host_paths)

    def mend(self) -> None:
        if self.master is None or not self.master.is_running:
            self.start_master()
        if "agent-1" not in self.agents or not self.agents["agent-1"].is_running:
            self.start_containers()

    def no_container_left(self) -> None:
        wait_until(lambda: not self.containers, within=20, what="no container is left")


@pytest.fixture(scope="session")
def engine() -> None:
    need_task_image()


@pytest.fixture(scope="session")
def container_cluster(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerCluster]:
    cluster = ContainerCluster(tmp_path_factory.mktemp("containers"))
    try:
        cluster.mend()
        yield cluster
    finally:
        cluster.close()
        remove_containers(cluster.label)


@pytest.fixture
def boxes(container_cluster: ContainerCluster) -> ContainerCluster:
    """Returns the shared cluster of containers after every process runs again."""
    container_cluster.mend()
    return container_cluster


@pytest.fixture
def in_container(boxes: ContainerCluster, tmp_path: Path) -> Callable[..., Experiment]:
    """Creates experiments whose containers mount the folder of the gates and the ``idle_compiler``."""

    def make(model: str = "digits", **changes: Any) -> Experiment:
        mounts = [{"host_path": str(path), "container_path": str(path)} for path in (tmp_path, IDLE_COMPILER)]
        changes["bind_mounts"] = [*mounts, *changes.pop("bind_mounts", [])]
        return create(boxes, MODELS[model], tmp_path, **changes)

    return make
