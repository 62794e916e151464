"""A real Slurm of the tests' own; see ``scripts/slurm.sh``."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.machines import Machine, gateway_of
from tests.support.waiting import wait_until

SCRIPT = Path(__file__).parents[2] / "scripts" / "slurm.sh"
NODES = 2
_PORTS_OF_WORKER = 1000
_FIRST_PORT = 20017 + _PORTS_OF_WORKER * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
_FIRST_PORTS = range(_FIRST_PORT, _FIRST_PORT + _PORTS_OF_WORKER, 10)
"""Below the ephemeral ports of the kernel. Each test worker has its own: two may start a Slurm at a time."""


@dataclass(frozen=True)
class Slurm:
    """A running Slurm. Its clients need ``environment``: ``subprocess.run(["sbatch", …], env=os.environ |
    slurm.environment)``."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def command(self, *argv: str) -> str:
        """Runs a client of Slurm, such as ``squeue``, and returns its output."""
        environment = os.environ | self.environment
        # Jobs write their output there.
        done = subprocess.run(argv, env=environment, cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout

    def pids(self, job: str) -> list[int]:
        """Returns the processes of the tasks of a job, without its script."""
        id_of = {words[0]: words[1] for line in self._queue() if len(words := line.split()) == 2}
        rows = []
        for node in range(1, NODES + 1):
            # It fails if the node has no job.
            argv = ["scontrol", "listpids", id_of.get(job, job), f"node{node}"]
            environment = os.environ | self.environment
            listed = subprocess.run(argv, env=environment, check=False, capture_output=True, text=True).stdout
            rows += [line.split() for line in listed.splitlines()[1:]]
        return [int(pid) for pid, _, step, *_ in rows if step.isdigit()]

    def fail_node(self, node: str) -> None:
        """Declares a node as failed: Slurm ends its jobs with NODE_FAIL."""
        self.command("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")

    def mend_node(self, node: str) -> None:
        """Lets a failed node take jobs again."""
        argv = ["scontrol", "update", f"NodeName={node}", "State=RESUME"]
        # It fails for a node that has come back by itself.
        subprocess.run(argv, env=os.environ | self.environment, check=False, capture_output=True)
        # Steps that ended with the node may still hold some of its CPUs.
        up = ["sinfo", "--noheader", "--partition=compute", "--states=idle,mixed", f"--nodes={node}", "--format=%N"]
        wait_until(lambda: self.command(*up).strip() == node, what=f"{node} is up")

    def kill_controller(self) -> None:
        """Kills slurmctld, which keeps what it has stored, and waits for its end."""
        path = self.folder / "run" / "slurmctld.pid"
        pid = int(path.read_text())
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: _has_ended(pid), what="slurmctld has ended")
        path.unlink()  # its next start would take a process that nobody has waited for as a running one

    def start_controller(self) -> None:
        """Starts slurmctld again, and waits until its nodes answer."""
        subprocess.run(["sh", SCRIPT, "up", self.folder], check=True, stdout=subprocess.DEVNULL)

    def cancel_all(self) -> None:
        self.command("scancel", "--user=root")

    def _queue(self) -> list[str]:
        return self.command("squeue", "--noheader", "--array", "--format=%i %A").splitlines()


@contextmanager
def running_slurm(
    folder: Path, machines: Sequence[Machine] = (), *, node_timeout: int | None = None, with_accounting: bool = False
) -> Iterator[Slurm]:
    """Starts a Slurm whose state lies in a new folder, and ends it.

    Parameters:
        machines: the nodes, made with ``gateway=True``.
        node_timeout: seconds after which a node that does not answer is down.
        with_accounting: with slurmdbd, and preemption by quality of service.
    """
    if os.geteuid() != 0:
        pytest.skip("starting Slurm needs root")
    if shutil.which("slurmctld") is None:
        pytest.skip("Slurm is not installed (make debian adds it)")
    environment = os.environ | {"SLURM_NODES": str(NODES), "SLURM_PORT": str(_free_ports(NODES + 1))}
    if machines:
        words = [f"{machine.namespace}={machine.address}={machine.hostname}" for machine in machines]
        # A word behind the last one, because `cut` prints a line without its delimiter as a whole.
        environment |= {"SLURM_MACHINES": " ".join([*words, ""]), "SLURM_ADDRESS": gateway_of(machines[0])}
    if with_accounting:
        if shutil.which("slurmdbd") is None or shutil.which("mariadbd") is None:
            pytest.skip("Slurm's accounting is not installed (make test-long adds it)")
        environment["SLURM_ACCOUNTING"] = "1"
    if node_timeout is not None:
        environment["SLURM_NODE_TIMEOUT"] = str(node_timeout)
    try:
        subprocess.run(["sh", SCRIPT, "up", folder], env=environment, check=True)
        yield Slurm(folder)
    finally:
        subprocess.run(["sh", SCRIPT, "down", folder], env=environment, check=True)
        _end_leftovers(folder)


def _end_leftovers(folder: Path) -> None:
    """Kills the steps of a node whose slurmd was killed, and their programs."""
    mark = f"SLURM_CONF={folder}/slurm.conf".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Yields one Slurm for the session. Its tests need ``@pytest.mark.xdist_group("slurm")``, so that one worker runs
    all."""
    with running_slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running


def _free_ports(count: int) -> int:
    """Returns the first of ``count`` consecutive ports on which no process listens."""
    return next(first for first in _FIRST_PORTS if all(_is_free(first + offset) for offset in range(count)))


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
