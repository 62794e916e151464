"""A real Slurm of the tests' own; see ``scripts/slurm.sh``."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "slurm.sh"
NODES = 2
_FIRST_PORTS = range(20017, 32000, 10)
"""Below the ephemeral ports of the kernel."""


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
        return subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout

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

    def cancel_all(self) -> None:
        self.command("scancel", "--user=root")

    def _queue(self) -> list[str]:
        return self.command("squeue", "--noheader", "--array", "--format=%i %A").splitlines()


@contextmanager
def running_slurm(folder: Path) -> Iterator[Slurm]:
    """Starts a Slurm whose state lies in a new folder, and ends it."""
    if os.geteuid() != 0:
        pytest.skip("starting Slurm needs root")
    if shutil.which("slurmctld") is None:
        pytest.skip("Slurm is not installed (make debian adds it)")
    environment = os.environ | {"SLURM_NODES": str(NODES), "SLURM_PORT": str(_free_ports(NODES + 1))}
    try:
        subprocess.run(["sh", SCRIPT, "up", folder], env=environment, check=True)
        yield Slurm(folder)
    finally:
        subprocess.run(["sh", SCRIPT, "down", folder], env=environment, check=True)


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
