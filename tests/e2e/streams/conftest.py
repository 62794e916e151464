"""A cluster with trials that only wait, and ``det`` as a user calls it."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.support.live_cluster import LiveCluster, python
from tests.support.live_trials import Experiment
from tests.support.terminal_program import TerminalProgram
from tests.support.waiting import wait_until

from determined.client import submissions
from determined.context import pack

WAITS = "import sys, time; print('waits', flush=True); time.sleep(3600)"


class StreamCluster(LiveCluster):
    """Two agents with a slot each. Their shells read no start-up files of this machine's user."""

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(folder, **settings)
        home = folder / "home"
        home.mkdir()
        self.environment["HOME"] = str(home)

    def det(self, *words: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        argv = python("determined_cli", *words)
        return subprocess.run(
            argv, env=self.client_environment, input=input, capture_output=True, check=False, timeout=120
        )

    def on_terminal(self, *words: str) -> TerminalProgram:
        environment = {**self.client_environment, "TERM": "xterm-256color"}
        return TerminalProgram(python("determined_cli", *words), environment)

    def begin(self, folder: Path, script: str = WAITS, *, slots: int = 1, ports: Sequence[int] = ()) -> Experiment:
        """Creates a trial that runs a script without torch, and waits until its program has begun. ``ports``: those
        that its configuration declares."""
        context = folder / "context"
        context.mkdir(parents=True, exist_ok=True)
        (context / "run.py").write_text(script)
        config = (
            "name: waits\nentrypoint: python3 run.py\nmax_restarts: 0\n"
            f"searcher: {{name: single, metric: loss}}\nresources: {{slots_per_trial: {slots}}}\n"
            f"environment: {{proxy_ports: {[{'proxy_port': port} for port in ports]}}}\n"
        )
        body = {"config": config, "configName": "waits.yaml", "activate": True}
        experiment = Experiment(self, int(submissions.create(self.session, body, pack(context))["experiment"]["id"]))
        experiment.running()
        wait_until(lambda: any("waits" in line for line in experiment.log), what="the script runs")
        return experiment


@pytest.fixture(scope="session")
def stream_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamCluster]:
    cluster = StreamCluster(tmp_path_factory.mktemp("streams"))
    try:
        cluster.start_master()
        for name in ("agent-1", "agent-2"):
            cluster.start_agent(name, slots=1)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def waiting(stream_cluster: StreamCluster, tmp_path: Path) -> Iterator[Experiment]:
    """A trial that waits until the end of the test."""
    experiment = stream_cluster.begin(tmp_path)
    yield experiment
    experiment.do("kill")
    experiment.nothing_left()


@pytest.fixture
def on_terminal(stream_cluster: StreamCluster) -> Iterator[Callable[..., TerminalProgram]]:
    """Returns a function that starts ``det`` on a terminal, which is closed at the end."""
    started: list[TerminalProgram] = []

    def start(words: Sequence[str]) -> TerminalProgram:
        started.append(stream_cluster.on_terminal(*words))
        return started[-1]

    yield start
    for program in started:
        program.close()
