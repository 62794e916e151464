"""Addresses at which browsers open ports of tasks: a port of the master's host each, or a subdomain each. Pure."""

import re
from typing import NamedTuple

from determined.errors import BadRequest
from determined_master.proxy.task_port import LABEL_DIGITS

_LOOPBACK = {"127.0.0.1": "localhost", "localhost": "127.0.0.1", "::1": "localhost"}
"""The other name of this machine: what a task's page sets as cookies is then no cookie of the cluster's page."""
_LABEL = re.compile(rf"[0-9]{{1,5}}-[0-9a-f]{{{LABEL_DIGITS}}}")
_HOST_NAME = re.compile(r"[A-Za-z0-9.-]{1,253}|[0-9A-Fa-f:.]{2,45}")


class Place(NamedTuple):
    """How a visitor has reached the master."""

    scheme: str
    host: str
    """Name and port, as in the header ``Host``."""


class Layout(NamedTuple):
    """How origins of tasks are addressed."""

    domain: str = ""
    """Origins are subdomains of it; empty: they are ports."""
    template: str = ""
    """Address of an origin behind a proxy, with ``{label}`` or ``{port}``; empty: as the master itself is reached."""


def origin(layout: Layout, place: Place, label: str, port: int) -> str:
    """Returns the origin of a port of a task. ``port``: on which the master listens for it, 0 with subdomains.

    >>> origin(Layout(), Place("http", "127.0.0.1:8080"), "8888-ab", 8100)
    'http://localhost:8100'
    >>> origin(Layout(), Place("https", "cluster.example:8443"), "8888-ab", 8100)
    'https://cluster.example:8100'
    >>> origin(Layout("tasks.example"), Place("http", "cluster.example:8080"), "8888-ab", 0)
    'http://8888-ab.tasks.example:8080'
    >>> origin(Layout("tasks.example", "https://{label}.tasks.example"), Place("http", "cluster"), "8888-ab", 0)
    'https://8888-ab.tasks.example'
    """
    if layout.template:
        return layout.template.format(label=label, port=port).rstrip("/")
    name, own_port = _split(place.host)
    if layout.domain:
        return f"{place.scheme}://{label}.{layout.domain}{f':{own_port}' if own_port else ''}"
    name = _LOOPBACK.get(name, name)
    return f"{place.scheme}://{f'[{name}]' if ':' in name else name}:{port}"


def label_in(host: str, domain: str) -> str | None:
    """Returns the label of a task's port in a host name below ``domain``, or None for other hosts.

    >>> label_in("8888-f12e18ae7f63d8bd.tasks.example:8080", "tasks.example")
    '8888-f12e18ae7f63d8bd'
    >>> label_in("tasks.example", "tasks.example"), label_in("cluster.tasks.example", "tasks.example")
    (None, None)
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    label, dot, rest = name.lower().rpartition(f".{domain.lower()}")
    return label if dot and not rest and _LABEL.fullmatch(label) else None


def _split(host: str) -> tuple[str, str]:
    """Returns name and port of a ``Host`` header. Raises BadRequest for what is no host."""
    name, port = host, ""
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        port = rest.removeprefix(":")
    elif ":" in host:
        name, _, port = host.rpartition(":")
    if not _HOST_NAME.fullmatch(name) or (port and not port.isdigit()):
        raise BadRequest(f"the header Host, {host!r}, is no host name")
    return name.lower(), port
