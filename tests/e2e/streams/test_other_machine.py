"""Streams into a task on another machine, whose agent can only dial out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.streams.conftest import StreamCluster
from tests.support.live_machines import Network, network
from tests.support.machines import why_not

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.xdist_group("streams"),
]


@pytest.fixture
def net() -> Iterator[Network]:
    with network(1) as created:
        yield created


def test_a_task_on_a_machine_of_another_network_is_entered_over_a_cut_cable(net: Network, tmp_path: Path):
    (machine,) = net.machines
    cluster = StreamCluster(tmp_path / "cluster", host="0.0.0.0")
    try:
        cluster.start_master()
        master = f"http://{net.gateway}:{cluster.port}"
        cluster.start_agent("far", slots=1, master=master, prefix=machine.prefix)
        experiment = cluster.begin(tmp_path)
        shell = cluster.on_terminal("trial", "exec", "-it", str(experiment.trial_id), "--", "sh")
        shell.type("kept=42; ls /sys/class/net | grep -c eth0; echo begin'ning'\n")
        shell.prints("1")
        shell.prints("beginning")
        net.cut(machine)
        shell.type("echo still-$kept\n")
        net.mend(machine)
        shell.prints("still-42")
        shell.type("exit 3\n")
        assert shell.ended() == 3
        shell.close()
    finally:
        cluster.close()
