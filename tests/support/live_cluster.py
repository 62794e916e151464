"""A cluster of real processes: a master, agents and a login. Each process can be killed and started again."""

import contextlib
import functools
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tests.support import live_processes
from tests.support.forked_programs import forked, warm_torch
from tests.support.new_database import put_database
from tests.support.waiting import wait_until
from tests.support.warm_fork_server import WARM

from determined.client.session import ONCE, Retry, Session

T = TypeVar("T")
CLIENT_SALT = "GubPEmmotfiK9TMD6Zdw"
PORT_BLOCKS = "DET_MASTER_PORT_BLOCKS"


class Process(Protocol):
    """The methods of ``subprocess.Popen`` that are used here."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...

    def kill(self) -> None: ...


Spawn = Callable[[list[str], Path, dict[str, str]], Process]
"""Starts ``argv`` in the log's folder, in a new session, with this environment. Its output is appended to the log."""


def spawned(argv: list[str], log: Path, environment: dict[str, str]) -> Process:
    with log.open("ab") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=log.parent,
            start_new_session=True,
        )


class Program:
    """One process whose output goes to a file."""

    def __init__(self, argv: list[str], log: Path, environment: dict[str, str], spawn: Spawn = spawned) -> None:
        self.log = log
        self._from = log.stat().st_size if log.exists() else 0
        self.process = spawn(argv, log, environment)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def announced(self, prefix: str, *, within: float = 30.0) -> str:
        """Returns the rest of the first line of this process's output that begins with ``prefix``."""

        def look() -> str | None:
            with self.log.open("rb") as file:
                file.seek(self._from)
                lines = file.read().decode(errors="replace").splitlines(keepends=True)
            matches = [line[len(prefix) :].strip() for line in lines if line.startswith(prefix) and line.endswith("\n")]
            assert matches or self.is_running, f"ended without {prefix!r}: {''.join(lines)[-2000:]}"
            return matches[0] if matches else None

        return wait_until(look, within=within, what=f"a line {prefix!r} in {self.log}")

    def end(self, number: int = signal.SIGTERM, *, within: float = 60.0) -> int:
        """Sends the signal, waits for the end and returns the exit code."""
        if self.is_running:
            self.process.send_signal(number)
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"pid {self.pid} did not end within {within} s after signal {number}") from None


class LiveCluster:
    """A master on a free port, which it keeps over restarts, and any number of agents."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        """``settings``: settings of the master, by name."""
        self.folder = folder
        self.data = folder / "data"
        self.environment = environment(folder)
        self.environment |= {f"DET_MASTER_{name.upper()}": str(value) for name, value in settings.items()}
        self.url = self.cluster_id = ""
        self.master: Program | None = None
        self.agents: dict[str, Program] = {}
        self._agents_started: dict[str, Callable[[], Program]] = {}
        self.session = Session("http://127.0.0.1:1")
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1]) if self.url else 0

    @property
    def client_environment(self) -> dict[str, str]:
        """The environment of a client that is signed in as admin."""
        password = (self.data / "password").read_text().strip()
        return {**self.environment, "DET_MASTER": self.url, "DET_USER": "admin", "DET_PASS": password}

    def start_master(self) -> None:
        if not self.data.exists():
            put_database(self.data)
        argv = python("determined_master", "--data", str(self.data), "--port", str(self.port), "--announce")
        self.master = Program(argv, self.folder / "master.log", self.environment, forked)
        self.url = self.master.announced("ready: ")
        if self.session.master != self.url:
            self.session.close()
            self.session = log_in(self.url, self.data)
            self.cluster_id = str(self.session.get("/api/v1/master")["clusterId"])

    def start_agent(
        self,
        name: str = "agent-1",
        *,
        slots: int = 1,
        master: str = "",
        wait: bool = True,
        is_warm: bool = False,
        prefix: Sequence[str] = (),
        arguments: Sequence[str] = (),
        host_paths: Sequence[Path] = (),
    ) -> Program:
        """Starts an agent.

        Parameters:
            master: address that agent and tasks use, if not the master's own.
            is_warm: trials start with torch imported; see ``warm_fork_server.py``.
            prefix: words before its command, to run it on another machine.
            arguments: further settings.
            host_paths: folders that its containers may mount.
        """
        argv = python(
            "determined_agent", "--master", master or self.url, "--token-file", str(self.data / "agent-token")
        )
        argv += ["--tasks-as-me", "--data", str(self.folder / name), "--id", name, "--slots", str(slots), *arguments]
        variables = {"DET_AGENT_ALLOWED_HOST_PATHS": ",".join(map(str, host_paths))} if host_paths else {}
        variables |= {WARM: warm_torch()} if is_warm else {}
        self._agents_started[name] = functools.partial(
            Program,
            [*prefix, *argv],
            self.folder / f"{name}.log",
            self.environment | variables,
            spawned if prefix else forked,
        )
        return self.restart_agent(name, wait=wait)

    def restart_agent(self, name: str = "agent-1", *, wait: bool = True) -> Program:
        """Starts an ended agent again with the same settings."""
        started = self.agents[name] = self._agents_started[name]()
        if wait:
            wait_until(lambda: name in self.connected(), what=f"{name} connected")
        return started

    def connected(self) -> set[str]:
        return {agent["id"] for agent in self.session.get("/api/v1/agents")["agents"] if agent["connected"]}

    def kill_master(self) -> None:
        assert self.master is not None
        self.master.end(signal.SIGKILL)

    def mend(self) -> None:
        """Starts the master and the agents that a test has ended, and waits until all are connected."""
        if self.master is None or not self.master.is_running:
            self.start_master()
        for name, agent in list(self.agents.items()):
            if not agent.is_running:
                self.restart_agent(name, wait=False)
        wait_until(lambda: self.connected() >= set(self.agents), what=f"{sorted(self.agents)} are connected")

    def free_slots(self) -> None:
        """Kills the experiments that an earlier test left running, and waits until all slots are free."""
        active = self.session.get("/api/v1/experiments", {"states": ["STATE_ACTIVE"]})["experiments"]
        for experiment in active:
            self.session.post(f"/api/v1/experiments/{experiment['id']}/kill")
        wait_until(lambda: not self.held_slots, what=f"free slots, after experiments {[e['id'] for e in active]}")

    @property
    def held_slots(self) -> dict[str, str]:
        """Returns the container of each slot in use."""
        agents = self.session.get("/api/v1/agents")["agents"]
        slots = [(f"{agent['id']}/{name}", slot) for agent in agents for name, slot in agent["slots"].items()]
        return {name: str(slot["container"]) for name, slot in slots if slot["container"]}

    def close(self) -> None:
        """Kills all processes, tasks included."""
        for agent in self.agents.values():
            agent.end(signal.SIGKILL)
        if self.master is not None:
            self.master.end(signal.SIGKILL)
        self.session.close()
        live_processes.kill_below(self.folder)


@contextlib.contextmanager
def live_cluster(folder: Path, *, slots: int = 1, is_warm: bool = False, **settings: Any) -> Iterator[LiveCluster]:
    """Yields a master, with one agent unless ``slots`` is 0."""
    cluster = LiveCluster(folder, **settings)
    try:
        cluster.start_master()
        if slots:
            cluster.start_agent(slots=slots, is_warm=is_warm)
        yield cluster
    finally:
        cluster.close()


def without_cluster() -> dict[str, str]:
    """Returns this process's environment without variables that name a cluster. A master that is started with it shares
    no ports with the masters of other test workers."""
    return {name: value for name, value in os.environ.items() if name == PORT_BLOCKS or not name.startswith("DET_")}


def environment(folder: Path) -> dict[str, str]:
    """Returns this process's environment with a home of the test's own and without variables that name a cluster."""
    return without_cluster() | {
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_DATA_HOME": str(folder / "share"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", module, *arguments]


def log_in(url: str, data: Path, username: str = "admin") -> Session:
    password = (data / "password").read_text().strip()
    hashed = hashlib.sha512((CLIENT_SALT + password).encode()).hexdigest()
    with Session(url, retry=ONCE) as session:
        body = {"username": username, "password": hashed, "isHashed": True}
        # long enough for a master that restarts on a busy machine
        return Session(url, token=session.post("/api/v1/auth/login", body)["token"], retry=Retry(attempts=15))
