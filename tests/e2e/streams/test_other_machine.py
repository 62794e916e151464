"""Ways into a task on another machine, whose agent can only dial out."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.e2e.pages.conftest import Serving
from tests.e2e.streams.conftest import StreamCluster
from tests.support.free_ports import free_port
from tests.support.live_machines import Network, network
from tests.support.machines import Machine, why_not
from tests.support.ssh_user import SshUser
from tests.support.task_server import SERVER

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.xdist_group("streams"),
]


class Far(NamedTuple):
    """A cluster whose only agent is on another machine."""

    cluster: StreamCluster
    net: Network
    machine: Machine


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    first = free_port()
    cluster = StreamCluster(
        tmp_path_factory.mktemp("far"), host="0.0.0.0", proxy_port_range=f"{first}-{min(65535, first + 40)}"
    )
    with network(1) as net:
        try:
            cluster.start_master()
            master = f"http://{net.gateway}:{cluster.port}"
            cluster.start_agent("far", slots=1, master=master, prefix=net.machines[0].prefix)
            yield Far(cluster, net, net.machines[0])
        finally:
            cluster.close()


def test_a_terminal_goes_on_after_the_cable_was_cut(far: Far, tmp_path: Path):
    experiment = far.cluster.begin(tmp_path)
    shell = far.cluster.on_terminal("trial", "exec", "-it", str(experiment.trial_id), "--", "sh")
    shell.type("kept=42; ls /sys/class/net | grep -c eth0; echo begin'ning'\n")
    shell.prints("1")
    shell.prints("beginning")
    far.net.cut(far.machine)
    shell.type("echo still-$kept\n")
    far.net.mend(far.machine)
    shell.prints("still-42")
    shell.type("exit 3\n")
    assert shell.ended() == 3
    shell.close()
    experiment.do("kill")
    experiment.nothing_left()


def test_ssh_scp_and_pages_reach_it(far: Far, tmp_path: Path):
    experiment = far.cluster.begin(tmp_path, SERVER)
    serving = Serving(far.cluster, experiment)
    assert far.cluster.det("ssh-config").returncode == 0
    ssh = SshUser(Path(far.cluster.environment["HOME"]), far.cluster.client_environment)
    host = f"det-trial-{experiment.trial_id}"
    done = ssh.ssh(host, "ls /sys/class/net | grep -c eth0; wc -c; exit 3", input=bytes(1 << 20))
    assert (done.stdout.split(), done.returncode) == ([b"1", b"1048576"], 3), done.stderr
    (tmp_path / "sent").write_bytes(bytes(range(256)) * 4096)
    assert ssh.scp(str(tmp_path / "sent"), f"{host}:sent").returncode == 0
    assert ssh.scp(f"{host}:sent", str(tmp_path / "back")).returncode == 0
    assert (tmp_path / "back").read_bytes() == (tmp_path / "sent").read_bytes()
    with serving.visitor() as visitor:
        assert visitor.get("/some/path").text == "/some/path"
    experiment.do("kill")
    experiment.nothing_left()
