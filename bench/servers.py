"""Starts a master alone or a whole cluster in temporary folders, and ends it with the block."""

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from determined.client.session import Session
from determined_master.auth.passwords import client_hash

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Running:
    """A started master. ``token``: an admin's token."""

    url: str
    data: Path
    token: str
    process: subprocess.Popen[bytes]

    def session(self) -> Session:
        return Session(self.url, token=self.token)


@contextmanager
def started(
    argv: Sequence[str], prefix: str, environment: dict[str, str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Yields the rest of the program's first output line that begins with ``prefix``, and its process."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment or dict(os.environ),
    )
    try:
        yield _announcement(process, prefix), process
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def program(argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Yields a program whose output is discarded."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def master(folder: Path, *, database_url: str = "", variables: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Yields a master. ``variables``: its settings, by the names of their environment variables."""
    argv = [sys.executable, "-m", "determined_master", "--data", str(folder), "--port", "0", "--announce"]
    argv += ["--database-url", database_url] if database_url else []
    with started(argv, "ready: ", {**os.environ, **(variables or {})}) as (url, process):
        yield Running(url, folder, _log_in(url, folder), process)


@contextmanager
def cluster(folder: Path, *, slots: int = 1, container_runtime: str = "process") -> Iterator[Running]:
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder.parent / "config")}
    argv = [
        sys.executable,
        "-m",
        "determined_cli",
        "up",
        "--port",
        "0",
        "--data",
        str(folder),
        "--slots",
        str(slots),
        "--grace",
        "1",
        "--container-runtime",
        container_runtime,
    ]
    with started(argv, "ready: ", environment) as (url, process):
        yield Running(url, folder, _log_in(url, folder), process)


def cpu_seconds(pid: int) -> float:
    """Returns the processor time of a process and of its ended children, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[index]) for index in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Returns the memory of a process, in mebibytes. Raises RuntimeError if it has ended."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} is gone")


def _log_in(url: str, folder: Path) -> str:
    password = (folder / "password").read_text().strip()
    body = {"username": "admin", "password": client_hash(password), "isHashed": True}
    with Session(url) as session:
        return str(session.post("/api/v1/auth/login", body)["token"])


def _announcement(process: subprocess.Popen[bytes], prefix: str) -> str:
    assert process.stdout is not None
    deadline = time.monotonic() + 60
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        text = b""
        while time.monotonic() < deadline:
            if selector.select(0.5):
                chunk = os.read(process.stdout.fileno(), 4096)
                if not chunk:
                    break
                text += chunk
                whole = text[: text.rfind(b"\n") + 1]
                for line in whole.decode().splitlines():
                    if line.startswith(prefix):
                        return line[len(prefix) :].strip()
    raise RuntimeError(f"nothing began with {prefix!r}: {text!r}")
