"""A cluster whose agents live on machines of their own, without any remote shell of the system."""

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
    """A master on this machine, an agent on each of the others."""

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
        """Lets each agent give as many slots as the shape has; how many a trial of it asks for."""
        each, agents = {"1x2": (2, 1), "2x1": (1, 2), "2x2": (2, 2)}[name]
        for machine in self.network.machines:
            verb = "enable" if each == 2 else "disable"
            self.session.post(f"/api/v1/agents/{machine.hostname}/slots/1/{verb}", {})
        return each * agents


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
    """The cluster, whole again whatever a test before did to it."""
    machines.mend()
    return machines


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outcome]:
    """What the bare launcher gives, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def outcome(layer: str, kind: str, world: int, seed: int) -> Outcome:
        name = f"bare-{layer}-{kind}-{world}-{seed}"
        kept = common / f"{name}.json"
        with (common / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                kept.write_text(json.dumps(asdict(run_bare_launcher(layer, kind, world, seed, common / name))))
            value = json.loads(kept.read_text())
        return Outcome(tuple(value["finals"]), {int(n): loss for n, loss in value["validation"].items()})

    return outcome


@pytest.fixture
def same_as_bare(gang: Machines, reference: Callable[..., Outcome]) -> Callable[[Experiment, str, int], None]:
    """Holds an experiment that was left and went on against the bare launcher's straight run: the same bits."""

    def check(experiment: Experiment, layer: str, world: int) -> None:
        found, expected = outcome_of(experiment), reference(layer, "class", world, seed_of(gang, experiment))
        assert found.finals == expected.finals
        assert len(found.finals) == world
        assert list(found.validation.values()) == list(expected.validation.values())

    return check
