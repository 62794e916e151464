"""Prints an address of this node that others reach, and a free port of it: ``MASTER_ADDR MASTER_PORT``.

With ``--here`` only processes of this machine have to reach it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

FIRST_PORT, PORTS = 20000, 10000
"""Below the ports that the kernel gives to clients."""
STRIDE = 7919
"""Prime to the number of ports, so that all are tried."""
TIMEOUT_SECONDS = 5


def candidates(job: int) -> Iterator[int]:
    """Yields all ports in an order of the job's own: two jobs that start together on a node try different ones."""
    return (FIRST_PORT + (job + step * STRIDE) % PORTS for step in range(PORTS))


def free_port(job: int) -> int:
    """Returns the first candidate on which nothing listens. Raises OSError if there is none."""
    for port in candidates(job):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise OSError(f"no port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} is free")


def address(node: str) -> str:
    """Returns the address by which Slurm reaches a node, else the name of this host."""
    try:
        done = subprocess.run(
            ["scontrol", "--oneliner", "show", "node", node],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return socket.gethostname()
    words = done.stdout.decode(errors="replace").split()
    address_found = next((word.partition("=")[2] for word in words if word.startswith("NodeAddr=")), "")
    try:
        socket.getaddrinfo(address_found, None)
    except OSError:
        return socket.gethostname()
    return address_found or socket.gethostname()


def main() -> int:
    is_here = "--here" in sys.argv
    try:
        port = free_port(os.getpid() if is_here else int(os.environ.get("SLURM_JOB_ID", "0")))
    except OSError as error:
        print(f"det batch: {error}", file=sys.stderr)
        return 1
    print("127.0.0.1" if is_here else address(os.environ.get("SLURMD_NODENAME", "")), port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
