"""A cluster with agents on machines of their own and without the system's remote shells."""

import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.support.live_cluster import LiveCluster
from tests.support.live_launchers import Outcome, outcome_of, run_bare_launcher, seed_of
from tests.support.live_machines import Network, network, path_without_remote_shells
from tests.support.live_trials import Experiment
from tests.support.machines import Machine


class Machines(LiveCluster):
    """A cluster with a master on this machine and an agent on each of the others."""

    def __init__(self, folder: Path, net: Network) -> None:
        super().__init__(folder, host="0.0.0.0", agent_reconnect_wait=6, heartbeat_seconds=1, preemption=True)
        self.network = net
        self.environment["PATH"] = path_without_remote_shells(folder / "bin", Path(sys.executable).parent)
        self.start_master()
        self.url = f"http://127.0.0.1:{self.port}"
        for machine in net.machines:
            self.start(machine)

    def start(self, machine: Machine, *, wait: bool = True) -> None:
        master = f"http://{self.network.gateway}:{self.port}"
        self.start_agent(machine.hostname, slots=2, master=master, prefix=machine.prefix, wait=wait)

    def mend(self) -> None:
        if self.master is None or not self.master.is_running:
            self.start_master()
        for machine in self.network.machines:
            if not self.agents[machine.hostname].is_running:
                self.start(machine)

    def shape(self, name: str) -> int:
        """Enables on each agent the number of slots of this shape, and returns the number of slots of a trial."""
        slots_per_agent, agents = {"1x2": (2, 1), "2x1": (1, 2), "2x2": (2, 2)}[name]
        for machine in self.network.machines:
            verb = "enable" if slots_per_agent == 2 else "disable"
            self.session.post(f"/api/v1/agents/{machine.hostname}/slots/1/{verb}", {})
        return slots_per_agent * agents


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if os.geteuid() != 0:
        pytest.skip("only root may make machines of network namespaces")
    with network(2) as net:
        cluster = Machines(tmp_path_factory.mktemp("machines"), net)
        try:
            yield cluster
        finally:
            cluster.close()


@pytest.fixture
def gang(machines: Machines) -> Machines:
    """Returns the cluster after every process runs again."""
    machines.mend()
    return machines


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outcome]:
    """Returns a function that returns the outcome of the bare launcher. All workers share one run."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def outcome(layer: str, kind: str, world: int, seed: int) -> Outcome:
        name = f"bare-{layer}-{kind}-{world}-{seed}"
        path = common / f"{name}.json"
        with (common / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.write_text(json.dumps(asdict(run_bare_launcher(layer, kind, world, seed, common / name))))
            value = json.loads(path.read_text())
        return Outcome(tuple(value["finals"]), {int(n): loss for n, loss in value["validation"].items()})

    return outcome


@pytest.fixture
def same_as_bare(gang: Machines, reference: Callable[..., Outcome]) -> Callable[[Experiment, str, int], None]:
    """Checks that an experiment has the same bits as a straight run of the bare launcher."""

    def check(experiment: Experiment, layer: str, world: int) -> None:
        actual, expected = outcome_of(experiment), reference(layer, "class", world, seed_of(gang, experiment))
        assert actual.finals == expected.finals
        assert len(actual.finals) == world
        assert list(actual.validation.values()) == list(expected.validation.values())

    return check
