"""Ranks on this machine that no launcher starts: their environment, start and output."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.compiler import python_path
from tests.support.free_ports import free_port

_PREFIX = re.compile(r"^\[\d+\]<std(?:out|err)>:", re.MULTILINE)


def environment(**more: str) -> dict[str, str]:
    """Returns an environment with one thread per rank and this Python first on PATH, without variables of a task or
    launcher."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "USE_", "HOROVOD_"))}
    search = f"{Path(sys.executable).parent}{os.pathsep}{inherited.get('PATH', '')}"
    variables = {"PATH": search, "PYTHONPATH": python_path(), "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    return {**inherited, **variables, **more}


def start(argv: Sequence[str], *, folder: Path, environ: Mapping[str, str]) -> subprocess.Popen[str]:
    """Starts ``argv`` in ``folder``."""
    return subprocess.Popen(
        argv,
        cwd=folder,
        env={**environment(), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(child: "subprocess.Popen[str]", *, code: int | None = 0) -> str:
    """Waits for the end and returns the output of all ranks without a launcher's prefixes. ``code``: the expected exit
    code."""
    out, _ = child.communicate(timeout=360)
    text = _PREFIX.sub("", out)
    assert code is None or child.returncode == code, text
    return text


def by_hand(size: int, words: Sequence[str], *, folder: Path, **environ: str) -> "list[subprocess.Popen[str]]":
    """Starts the ranks of one container without a launcher, which would import torch first."""
    port = str(free_port())
    return [
        start(
            [sys.executable, *words],
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
