"""Command lines and output of the real launchers on this machine. For tests below tests/e2e only."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.free_ports import free_port
from tests.support.rank_processes import finish, start

LAUNCHERS = ("torch_distributed", "horovod", "deepspeed")


def needs(name: str) -> pytest.MarkDecorator:
    """Skips a test if the package of a launcher is not installed."""
    package = {"torch_distributed": "torch"}.get(name, name)
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed: sh scripts/install_launchers.sh")


def params(*names: str) -> list[object]:
    """Returns parameters for a test that runs under several launchers."""
    return [pytest.param(name, marks=[pytest.mark.torch, needs(name)], id=name) for name in names or LAUNCHERS]


def line(launcher: str, size: int, words: Sequence[str]) -> list[str]:
    """Returns the command that runs ``python words…`` as ``size`` ranks. ``plain``: one rank without a launcher."""
    python = sys.executable
    if launcher == "plain":
        return [python, *words]
    if launcher == "torch_distributed":
        rendezvous = ["--nproc-per-node", str(size), "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
        return [python, "-m", "torch.distributed.run", *rendezvous, *words]
    if launcher == "horovod":
        program = str(Path(python).with_name("horovodrun"))
        return [python, program, "--gloo", "-np", str(size), "-H", f"localhost:{size}", python, *words]
    ports = ["--master_addr", "127.0.0.1", "--master_port", str(free_port())]
    return [python, "-m", "deepspeed.launcher.runner", "--num_gpus", str(size), *ports, "--no_local_rank", *words]


def run(launcher: str, size: int, words: Sequence[str], *, folder: Path, **environ: str) -> str:
    """Starts the ranks in ``folder``, waits for their end and returns their output."""
    return finish(start(line(launcher, size, words), folder=folder, environ=environ))
