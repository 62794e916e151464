"""Addresses on which the master listens for origins of tasks."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.support.free_ports import free_port

from determined_master.server.origin_listeners import bound_sockets


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
