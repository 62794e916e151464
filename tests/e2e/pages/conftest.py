"""A cluster whose tasks serve pages, and programs that visit them as a browser does."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.streams.conftest import StreamCluster
from tests.support.free_ports import free_port
from tests.support.live_cluster import log_in
from tests.support.live_trials import Experiment
from tests.support.task_server import SERVER

from determined.client.session import Session

NAVIGATION = {
    "sec-fetch-site": "none",
    "sec-fetch-mode": "navigate",
    "sec-fetch-dest": "document",
    "accept": "text/html",
}


@dataclass
class Serving:
    """A trial that serves pages at one port, and websockets at another."""

    cluster: StreamCluster
    experiment: Experiment

    @property
    def ports(self) -> tuple[int, int]:
        line = next(line for line in self.experiment.log if "waits on" in line)
        http_port, websocket_port = re.findall(r"\d+", line.rpartition("waits on")[2])
        return int(http_port), int(websocket_port)

    @property
    def task_id(self) -> str:
        return self.experiment.task_id

    def ticket(self, port: int | None = None, path: str = "/", session: Session | None = None) -> str:
        """Returns an address that opens a page once."""
        body = {"port": port or self.ports[0], "path": path}
        return str((session or self.cluster.session).post(f"/detent/tasks/{self.task_id}/open", body)["url"])

    @contextmanager
    def visitor(self, port: int | None = None, session: Session | None = None) -> Iterator[httpx.Client]:
        """Yields a client that has entered with a ticket."""
        url = self.ticket(port, session=session)
        with httpx.Client(base_url=url.partition("/.detent")[0], timeout=60, trust_env=False) as client:
            answer = client.get(url)
            assert answer.status_code == 303, answer.text
            assert answer.headers["location"] == "/"
            yield client


@pytest.fixture(scope="session")
def page_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamCluster]:
    first = free_port()
    cluster = StreamCluster(tmp_path_factory.mktemp("pages"), proxy_port_range=f"{first}-{min(65535, first + 40)}")
    try:
        cluster.start_master()
        for name in ("agent-1", "agent-2"):
            cluster.start_agent(name, slots=1)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def serve(page_cluster: StreamCluster, tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """Returns a function that starts a trial with the server, which ends with the test."""
    started: list[Experiment] = []

    def start(name: str = "served", **files: str) -> Serving:
        folder = tmp_path / name
        (folder / "context").mkdir(parents=True)
        for file, text in files.items():
            (folder / "context" / file.replace("_", ".")).write_text(text)
        started.append(page_cluster.begin(folder, SERVER))
        return Serving(page_cluster, started[-1])

    yield start
    for experiment in started:
        experiment.do("kill")
        experiment.nothing_left()


@pytest.fixture
def served(serve: Callable[..., Serving]) -> Serving:
    return serve()


def other_user(cluster: StreamCluster) -> Session:
    """Returns the session of a user without admin rights."""
    return log_in(cluster.url, cluster.data, "determined")


def items(answer: httpx.Response) -> dict[str, Any]:
    """Returns the headers that a task has got, by name in lower case."""
    return {name.lower(): value for name, value in answer.json()}
