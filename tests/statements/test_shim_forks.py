"""Shims that a fork server starts: a task starts although the server's socket is full."""

import contextlib
import socket
from pathlib import Path

from tests.support.driver_runs import make_launch, run

from determined_agent.drivers.process import ProcessDriver
from determined_agent.drivers.shim_forks import ShimForks


async def test_a_task_starts_while_the_fork_servers_socket_is_full(tmp_path: Path) -> None:
    forks = ShimForks(tmp_path)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                ours.send(b"x" * 4096)
        forks._socket = ours
        assert (await run(ProcessDriver(forks=forks), make_launch(tmp_path, "exit 4"))).code == 4
        assert forks._socket is ours, "it is not started again"
        forks._socket = None
