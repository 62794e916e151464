"""The network of a container and the ports at which it can be reached."""

import functools
import socket
import subprocess
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import agent_on, is_done, make_desired
from tests.support.container_engine import BASE_IMAGE, need_engine
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.free_ports import free_port
from tests.support.waiting import eventually

from determined.link.messages import ContainerSpec
from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import ContainerOptions, PublishedPort
from determined_agent.hooks.container_network import ContainerNetworkHook
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.hooks.proxy_ports import ProxyPortsHook

SERVER = "python3 -m http.server $DET_PROXY_PORT_8265 --directory /etc"


def make_plan(folder: Path, container_id: str = "one", **spec: Any) -> ContainerPlan:
    values = {"task_id": "1.task", "slots": [0], "environment": {}, "entrypoint": "true"} | spec
    run = RunFolder(folder / container_id)
    run.make()
    return ContainerPlan(container_id, ContainerSpec(**values), run, container=ContainerOptions(BASE_IMAGE))


@pytest.mark.parametrize(
    ("is_master_local", "is_distributed", "mode"),
    [(True, False, "host"), (False, False, "bridge"), (False, True, "host"), (True, True, "host")],
)
async def test_a_container_uses_the_bridge_unless_its_master_is_local_or_it_is_distributed(
    tmp_path: Path, is_master_local: bool, is_distributed: bool, mode: str
) -> None:
    hook = ContainerNetworkHook(is_master_local=is_master_local, proxy_ports=ProxyPortsHook())
    plan = make_plan(tmp_path, is_distributed=is_distributed)
    await hook.do(plan)
    assert plan.container is not None
    assert plan.container.network_mode == mode


async def test_two_containers_with_the_same_port_are_published_at_two_ports_of_the_machine(tmp_path: Path) -> None:
    hook = ContainerNetworkHook(is_master_local=False, proxy_ports=ProxyPortsHook())
    port = free_port()
    plans = [make_plan(tmp_path, name, proxy_ports=[port], ports={"extra": 7777}) for name in ("one", "two")]
    for plan in plans:
        await hook.do(plan)
        assert plan.environment[f"DET_PROXY_PORT_{port}"] == str(port), "inside, each has the port that it wants"
    first, second = (plan.container.ports for plan in plans if plan.container is not None)
    assert first[0] == PublishedPort(port, port)
    assert second[0].container_port == port
    assert second[0].host_port != port
    assert {first[1].container_port, second[1].container_port} == {7777}
    await hook.undo(plans[0])
    again = make_plan(tmp_path, "three", proxy_ports=[port])
    await hook.do(again)
    assert again.container is not None
    assert again.container.ports[0].host_port == port


@asynccontextmanager
async def task_behind_the_bridge(tmp_path: Path, master: FakeLinkMaster) -> AsyncIterator[str]:
    """Runs a container whose master listens at the bridge's address. Yields the id of the container."""
    need_engine()
    settings = {"container_runtime": "docker", "default_images": {"cpu": BASE_IMAGE}}
    desired = make_desired(SERVER, proxy_ports=[8265])
    async with serving(master.app(), host=bridge_address()) as url, agent_on(url, tmp_path / "data", **settings):
        await master.set_desired(desired)
        yield desired.container_id
        await master.set_desired(desired.model_copy(update={"state": "stopped", "spec": None}))
        await eventually(functools.partial(is_done, master, desired))


def bridge_address() -> str:
    output = subprocess.run(["ip", "-4", "-o", "addr", "show", "docker0"], check=True, capture_output=True, text=True)
    return output.stdout.split()[3].partition("/")[0]


@pytest.mark.xdist_group("container-engine")
async def test_a_published_port_of_a_container_answers_on_the_machine(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    async with task_behind_the_bridge(tmp_path, master) as container_id:

        def port_line() -> str:
            return "".join(line for line in master.text_of(container_id, "agent") if "is reachable at port" in line)

        await eventually(port_line)
        port = int(port_line().split("port ")[-1].split()[0])

        def answer() -> bytes:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/hostname", timeout=5) as page:
                    body: bytes = page.read()
                    return body
            except OSError:
                return b""

        await eventually(answer)
        assert answer().strip() != socket.gethostname().encode(), "a network, and a name, of its own"
