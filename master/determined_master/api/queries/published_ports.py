"""Ports that the configuration of a task publishes for raw TCP."""

from collections.abc import Mapping
from typing import Any

from determined_master.db.models import TaskRow
from determined_master.db.session import ReadSession
from determined_master.experiments import repository as experiments


async def tcp_ports(session: ReadSession, task: TaskRow) -> frozenset[int]:
    """Returns the ports of ``environment.proxy_ports`` with ``proxy_tcp``."""
    if task.experiment_id is None:
        return tcp_ports_of(task.config or {})
    return tcp_ports_of((await experiments.get(session, task.experiment_id)).config)


def tcp_ports_of(config: Mapping[str, Any]) -> frozenset[int]:
    """Pure.

    >>> tcp_ports_of({"environment": {"proxy_ports": [{"proxy_port": 81, "proxy_tcp": True}, {"proxy_port": 80}]}})
    frozenset({81})
    """
    ports = (config.get("environment") or {}).get("proxy_ports") or []
    return frozenset(int(port["proxy_port"]) for port in ports if port.get("proxy_tcp"))
