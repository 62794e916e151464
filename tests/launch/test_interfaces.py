"""The network interface that reaches the other machines, and the error about a configured one that does not exist."""

import socket

import pytest

from determined_launch import interfaces
from determined_launch.errors import LaunchError


def test_bearing_returns_the_interface_with_an_address_or_none():
    assert interfaces.interface_of("127.0.0.1") == "lo"
    assert interfaces.interface_of("localhost") == "lo"
    assert interfaces.interface_of("192.0.2.77") is None


def test_a_missing_interface_is_named_with_those_that_exist():
    with pytest.raises(LaunchError) as refused:
        interfaces.check("lo,ib0", "DET_INTER_NODE_NETWORK_INTERFACE")
    assert "DET_INTER_NODE_NETWORK_INTERFACE names the network interface ib0" in str(refused.value)
    assert "lo (127.0.0.1" in str(refused.value)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {"GLOO_SOCKET_IFNAME": "lo"}),
        ({"GLOO_SOCKET_IFNAME": "mine"}, {}),
        ({"DET_INTER_NODE_NETWORK_INTERFACE": "lo"}, {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}),
        ({"DET_INTER_NODE_NETWORK_INTERFACE": "lo", "NCCL_SOCKET_IFNAME": "mine"}, {"GLOO_SOCKET_IFNAME": "lo"}),
    ],
)
def test_network_variables_of_the_user_are_kept(environ, expected):
    assert interfaces.variables(environ, "127.0.0.1") == expected


def test_every_interface_with_an_address_is_listed():
    names = {name for name, _ in interfaces.all_addresses()}
    assert "lo" in names
    assert names <= {name for _, name in socket.if_nameindex()}
