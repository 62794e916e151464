"""Addresses on which the master listens for origins of tasks."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.free_ports import free_port

from determined_master.server import origin_listeners
from determined_master.server.origin_listeners import OriginListeners, bound_sockets


@contextmanager
def bound(host: str, port: int) -> Iterator[set[str]]:
    """Yields the addresses on which sockets are bound."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(each) for each in bound_sockets(host, port)]
        yield {each.getsockname()[0] for each in sockets}


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("127.0.0.1", {"127.0.0.1", "::1"}),
        ("localhost", {"127.0.0.1", "::1"}),
        ("::1", {"127.0.0.1", "::1"}),
        ("0.0.0.0", {"0.0.0.0", "::1"}),
        ("::", {"0.0.0.0", "::"}),
    ],
)
def test_every_loopback_address_that_a_browser_may_try_is_the_masters(host: str, addresses: set[str]):
    with bound(host, free_port()) as got:
        assert got in (addresses, addresses - {"::1", "::"})  # of a machine without IPv6


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_port_that_somebody_has_on_one_of_them_is_taken(family: socket.AddressFamily, address: str, host: str):
    port = free_port()
    with socket.socket(family) as others:
        try:
            others.bind((address, port))
        except OSError:
            pytest.skip("this machine has no such address")
        others.listen()
        with pytest.raises(OSError):
            bound_sockets(host, port)
        with bound(host, free_port()):
            pass


async def no_app(_scope: Any, _receive: Any, _send: Any) -> None:
    """An application that is not asked."""


async def test_a_port_of_which_one_address_fails_is_not_listened_on(monkeypatch: pytest.MonkeyPatch):
    loop, port = asyncio.get_running_loop(), free_port()
    create, made = loop.create_server, list[asyncio.Server]()

    async def once(*arguments: Any, **options: Any) -> asyncio.Server:
        if made:
            raise OSError(errno.EADDRINUSE, "taken")
        made.append(await create(*arguments, **options))
        return made[0]

    monkeypatch.setattr(loop, "create_server", once)
    server: Any = SimpleNamespace(config=SimpleNamespace(ssl_certfile=None, ssl_keyfile=None), server_state=None)
    monkeypatch.setattr(origin_listeners, "bound_sockets", lambda *_: [bound_socket(port), bound_socket(free_port())])
    with pytest.raises(OSError, match="taken"):
        await OriginListeners(no_app, server, "127.0.0.1").listen(port)
    bound_socket(port).close()


def bound_socket(port: int) -> socket.socket:
    """Returns a socket on a port. Raises OSError if somebody listens there."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    return made
