"""The real launchers on this machine: their command lines, and what each rank wrote."""

import importlib.util
import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.compiler import python_path

LAUNCHERS = ("torch_distributed", "horovod", "deepspeed")
_PREFIX = re.compile(r"^\[\d+\]<std(?:out|err)>:", re.MULTILINE)


def needs(name: str) -> pytest.MarkDecorator:
    """Skips a test where a launcher's package is not installed."""
    package = {"torch_distributed": "torch"}.get(name, name)
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed: sh scripts/install_launchers.sh")


def each(*names: str) -> list[object]:
    """Parameters for a test that runs under several launchers."""
    return [pytest.param(name, marks=[pytest.mark.torch, needs(name)], id=name) for name in names or LAUNCHERS]


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def line(launcher: str, size: int, words: Sequence[str]) -> list[str]:
    """The command that runs ``python words…`` as ``size`` ranks; ``plain`` as one without a launcher."""
    python = sys.executable
    if launcher == "plain":
        return [python, *words]
    if launcher == "torch_distributed":
        where = ["--nproc-per-node", str(size), "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
        return [python, "-m", "torch.distributed.run", *where, *words]
    if launcher == "horovod":
        program = str(Path(python).with_name("horovodrun"))
        return [python, program, "--gloo", "-np", str(size), "-H", f"localhost:{size}", python, *words]
    ports = ["--master_addr", "127.0.0.1", "--master_port", str(free_port())]
    return [python, "-m", "deepspeed.launcher.runner", "--num_gpus", str(size), *ports, "--no_local_rank", *words]


def environment(**more: str) -> dict[str, str]:
    """One thread a rank, this Python first on PATH, and nothing of a task or a launcher around this process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "USE_", "HOROVOD_"))}
    search = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    variables = {"PATH": search, "PYTHONPATH": python_path(), "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    return {**kept, **variables, **more}


def start(
    launcher: str, size: int, words: Sequence[str], *, folder: Path, environ: Mapping[str, str]
) -> subprocess.Popen[str]:
    """Starts the ranks in ``folder``."""
    return subprocess.Popen(
        line(launcher, size, words),
        cwd=folder,
        env={**environment(), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(child: "subprocess.Popen[str]", *, code: int | None = 0) -> str:
    """What all ranks wrote, without a launcher's prefixes; ``code`` is the expected exit code."""
    out, _ = child.communicate(timeout=120)
    text = _PREFIX.sub("", out)
    assert code is None or child.returncode == code, text
    return text


def run(launcher: str, size: int, words: Sequence[str], *, folder: Path, **environ: str) -> str:
    """Starts and finishes."""
    return finish(start(launcher, size, words, folder=folder, environ=environ))


def by_hand(size: int, words: Sequence[str], *, folder: Path, **environ: str) -> "list[subprocess.Popen[str]]":
    """Ranks of one container without a launcher, which would import torch first."""
    port = str(free_port())
    return [
        start(
            "plain",
            1,
            words,
            folder=folder,
            environ={
                **environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(size),
                "LOCAL_WORLD_SIZE": str(size),
                "MASTER_PORT": port,
            },
        )
        for rank in range(size)
    ]
