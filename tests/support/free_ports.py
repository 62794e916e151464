"""Ports of this machine on which nobody listens."""

import socket


def free_port() -> int:
    """Returns a free port of 127.0.0.1."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
