"""The ports that a configuration declares in ``environment.proxy_ports``. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from determined.errors import NotFound


class DeclaredPort(NamedTuple):
    """A port on which a task serves."""

    port: int
    is_page: bool
    """False for bytes that no browser reads, ``proxy_tcp``."""
    is_default: bool


def declared(config: Mapping[str, Any] | None) -> list[DeclaredPort]:
    """Returns the declared ports of a task, in the order of its configuration.

    >>> declared({"environment": {"proxy_ports": [{"proxy_port": 8888, "default_service_id": True}]}})
    [DeclaredPort(port=8888, is_page=True, is_default=True)]
    """
    ports = ((config or {}).get("environment") or {}).get("proxy_ports") or []
    return [
        DeclaredPort(int(each["proxy_port"]), not each.get("proxy_tcp"), bool(each.get("default_service_id")))
        for each in ports
    ]


def pages(ports: list[DeclaredPort]) -> list[int]:
    """Returns the ports that a browser can open, each once."""
    return list(dict.fromkeys(each.port for each in ports if each.is_page))


def default_port(ports: list[DeclaredPort], task_id: str) -> int:
    """Returns the port that is meant where none is named: the marked one, else the first page, else the first.

    Raises NotFound if no port is declared.
    """
    if not ports:
        raise NotFound(
            f"task {task_id} declares no port: name one, or add environment.proxy_ports: [{{proxy_port: PORT}}] to "
            "its configuration"
        )
    first = next((each for each in ports if each.is_page), ports[0])
    return next((each.port for each in ports if each.is_default), first.port)
