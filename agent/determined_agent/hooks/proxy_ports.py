"""Assigns proxy ports: each container of a machine gets ports of its own."""

import socket

from determined_agent.hooks.hook import ContainerPlan

VARIABLE = "DET_PROXY_PORT_"
"""``DET_PROXY_PORT_8265`` is the port to listen on if ``proxy_ports`` has 8265."""


class ProxyPortsHook:
    """Gives a configured port to the first container that wants it because processes share the machine's ports."""

    def __init__(self) -> None:
        self._owners: dict[int, str] = {}

    async def do(self, plan: ContainerPlan) -> None:
        if plan.spec.rank != 0:
            return  # only the chief's container is reachable from outside
        for wanted in dict.fromkeys(plan.spec.proxy_ports):
            port = self.reserve(plan.container_id, wanted)
            plan.environment[f"{VARIABLE}{wanted}"] = str(port)
            if port != wanted:
                plan.log_line(
                    f"proxy_ports: port {wanted} of this machine is taken; listen on {port} instead, the value of "
                    f"{VARIABLE}{wanted}",
                    "WARNING",
                )

    def reserve(self, container_id: str, wanted: int) -> int:
        """Returns ``wanted`` if no program of the machine has it, else a free port; keeps it for the container."""
        port = wanted if self._is_free(wanted) else self._free_port()
        self._owners[port] = container_id
        return port

    async def undo(self, plan: ContainerPlan) -> None:
        self._owners = {port: owner for port, owner in self._owners.items() if owner != plan.container_id}

    def _is_free(self, port: int) -> bool:
        return port not in self._owners and _can_bind(port)

    def _free_port(self) -> int:
        while True:
            with socket.socket() as listener:
                listener.bind(("", 0))
                port = int(listener.getsockname()[1])
            if port not in self._owners:
                return port


def _can_bind(port: int) -> bool:
    """Returns True if no process listens on the port; a port in TIME_WAIT counts as free."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
        except OSError:
            return False
    return True
