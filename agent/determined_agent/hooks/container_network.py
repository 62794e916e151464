"""Chooses the network of a container, and the ports of the machine at which its own ports are reachable."""

from dataclasses import replace

from determined_agent.drivers.driver import PublishedPort
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.hooks.proxy_ports import VARIABLE, ProxyPortsHook


class ContainerNetworkHook:
    """Puts a container into the machine's own network, or behind the engine's bridge.

    A task with containers on several agents reaches them by the machines' addresses, and a master on a loopback address
    is reachable from the machine's own network only. Every other container is behind the bridge, where its ports
    collide with nobody's.
    """

    def __init__(self, *, is_master_local: bool, proxy_ports: ProxyPortsHook) -> None:
        """``is_master_local``: the master's address is a loopback address."""
        self._is_master_local = is_master_local
        self._proxy_ports = proxy_ports

    async def do(self, plan: ContainerPlan) -> None:
        if plan.container is None:
            return
        if plan.spec.is_distributed or self._is_master_local:
            await self._proxy_ports.do(plan)
            plan.container = replace(plan.container, network_mode="host")
            return
        published = [self._publish(plan, port, f"proxy_ports: port {port}") for port in self._wanted(plan)]
        published += [self._publish(plan, port, f"ports: {name} ({port})") for name, port in plan.spec.ports.items()]
        plan.container = replace(plan.container, network_mode="bridge", ports=tuple(published))

    async def undo(self, plan: ContainerPlan) -> None:
        await self._proxy_ports.undo(plan)

    def _wanted(self, plan: ContainerPlan) -> list[int]:
        return list(dict.fromkeys(plan.spec.proxy_ports)) if plan.spec.rank == 0 else []

    def _publish(self, plan: ContainerPlan, port: int, what: str) -> PublishedPort:
        outside = self._proxy_ports.reserve(plan.container_id, port)
        plan.environment[f"{VARIABLE}{port}"] = str(port)
        plan.log_line(f"{what} of the container is reachable at port {outside} of this machine")
        return PublishedPort(port, outside)
