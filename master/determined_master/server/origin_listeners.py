"""Listens on ports for origins of tasks, with the connections of the master's own server."""

import asyncio
import contextlib
import ipaddress
import socket
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from determined_master.api.proxy.websocket_forwarding import MAX_MESSAGE_BYTES
from determined_master.proxy.origins import Listener
from determined_master.server.http_server import Protocol, Server

WAITING_MESSAGES = 2
"""Messages of a websocket that are read before the task takes them."""
_LOOPBACK = ("127.0.0.1", "::1")
_TOGETHER = {"localhost": _LOOPBACK, "0.0.0.0": ("0.0.0.0", "::1"), "::": ("0.0.0.0", "::")}
"""Addresses to listen on, by the host of the settings."""


@dataclass
class OriginListeners:
    """Opens listening ports. Their connections are swept, counted and ended with those of the server."""

    app: ASGIApp
    server: Server
    host: str

    async def listen(self, port: int) -> Listener:
        """Raises OSError if the port cannot be listened on; then nothing of it is open."""
        own = self.server.config
        config = uvicorn.Config(
            self.app,
            http=Protocol,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            ws_ping_interval=None,
            ws_max_size=MAX_MESSAGE_BYTES,
            ws_max_queue=WAITING_MESSAGES,
            server_header=False,
            ssl_certfile=own.ssl_certfile,
            ssl_keyfile=own.ssl_keyfile,
        )
        config.load()
        sockets = bound_sockets(self.host, port)
        loop = asyncio.get_running_loop()
        servers: list[asyncio.Server] = []
        try:
            for each in sockets:
                servers.append(
                    await loop.create_server(
                        lambda: Protocol(config=config, server_state=self.server.server_state, app_state={}),
                        sock=each,
                        ssl=config.ssl,
                    )
                )
        except BaseException:
            for server in servers:
                server.close()
            for each in sockets:
                each.close()
            raise
        return _Listening(servers)


class _Listening:
    def __init__(self, servers: list[asyncio.Server]) -> None:
        self._servers = servers

    async def close(self) -> None:
        for server in self._servers:
            server.close()


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Returns sockets on the host's address, and on both loopback addresses if it includes one: a browser may try
    either, and whoever else listens there would get its tickets. Raises OSError if one of them is taken."""
    hosts: tuple[str, ...] = _TOGETHER.get(host, (host,))
    with contextlib.suppress(ValueError):
        hosts = tuple(dict.fromkeys((*_LOOPBACK, host))) if ipaddress.ip_address(host).is_loopback else hosts
    bound: list[socket.socket] = []
    try:
        for each in hosts:
            family = socket.AF_INET6 if ":" in each else socket.AF_INET
            try:
                bound.append(_socket(family, each, port))
            except OSError:
                if family == socket.AF_INET6 and bound and not _has_ipv6():
                    continue
                raise
    except OSError:
        for each_socket in bound:
            each_socket.close()
        raise
    return bound


def _socket(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    created = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        created.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            created.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        created.bind((host, port))
    except OSError:
        created.close()
        raise
    return created


def _has_ipv6() -> bool:
    """Returns True if this machine has the loopback address of IPv6."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
