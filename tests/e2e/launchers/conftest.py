"""A cluster whose agents live on machines of their own, without any remote shell of the system."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.live_cluster import LiveCluster
from tests.support.live_machines import Machine, Network, network, path_without_remote_shells


class Machines(LiveCluster):
    """A master on this machine, an agent on each of the others."""

    def __init__(self, folder: Path, net: Network) -> None:
        super().__init__(folder, host="0.0.0.0", agent_reconnect_wait=6, heartbeat_seconds=1)
        self.network = net
        self.environment["PATH"] = path_without_remote_shells(folder / "bin", Path(sys.executable).parent)
        self.start_master()
        self.url = f"http://127.0.0.1:{self.port}"
        for machine in net.machines:
            self.start(machine)

    def start(self, machine: Machine, *, wait: bool = True) -> None:
        master = f"http://{self.network.gateway}:{self.port}"
        self.start_agent(machine.name, slots=2, master=master, prefix=machine.prefix, wait=wait)

    def mend(self) -> None:
        if self.master is None or not self.master.is_running:
            self.start_master()
        for machine in self.network.machines:
            if not self.agents[machine.name].is_running:
                self.start(machine)

    def shape(self, name: str) -> int:
        """Lets each agent give as many slots as the shape has; how many a trial of it asks for."""
        each, agents = {"1x2": (2, 1), "2x1": (1, 2), "2x2": (2, 2)}[name]
        for machine in self.network.machines:
            verb = "enable" if each == 2 else "disable"
            self.session.post(f"/api/v1/agents/{machine.name}/slots/1/{verb}", {})
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
