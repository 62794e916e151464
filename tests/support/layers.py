"""Runs launch layers: one process for each container, with its run folder, on one machine or several."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.machines import Machine

from determined_launch import process_table, processes
from determined_launch.environment import RendezvousFacts

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = os.pathsep.join(str(ROOT / name) for name in ("launch", "harness"))
KEY = "5ec2e7" * 10 + "beef"


@dataclass
class Ended:
    """Exit code and output of a container's layer."""

    code: int
    output: str
    seconds: float
    folder: Path

    def ranks(self, text: str) -> dict[int, str]:
        """Returns by rank the rest of its line that begins with ``text``."""
        rest_by_rank = {}
        for line in self.output.splitlines():
            head, _, rest = line.partition("] ")
            if head.startswith("[rank=") and rest.startswith(text):
                rest_by_rank[int(head.removeprefix("[rank="))] = rest.removeprefix(text).strip()
        return rest_by_rank

    def record(self, rank: int) -> dict[str, object]:
        value: dict[str, object] = json.loads((self.folder / "exits" / f"rank-{rank}.json").read_text())
        return value


class Container:
    """A running layer, started as an agent starts it."""

    def __init__(
        self,
        folder: Path,
        words: Sequence[str],
        *,
        facts: RendezvousFacts | None = None,
        environ: Mapping[str, str] | None = None,
        machine: Machine | None = None,
        workdir: Path | None = None,
        python: str = sys.executable,
    ) -> None:
        self.folder = folder
        (folder / "info").mkdir(parents=True, exist_ok=True)
        if facts is not None:
            (folder / "info" / "rendezvous.json").write_text(json.dumps(facts.to_json()))
        argv = [python, "-m", *words]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "USE_"))}
        variables = {
            **inherited,
            "PYTHONPATH": PACKAGES,
            "DET_RUN_DIR": str(folder),
            "DET_ALLOCATION_KEY": KEY,
            "DET_SESSION_TOKEN": "t0ken-of-the-session",
            "C10D_PORT": "29533",
            "DTRAIN_SSH_PORT": "12350",
            "OMP_NUM_THREADS": "1",
            **(environ or {}),
        }
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            machine.command(argv) if machine else argv,
            env=variables,
            cwd=workdir or folder.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait(self, seconds: float = 60) -> Ended:
        try:
            output, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            output, _ = self.process.communicate()
            raise AssertionError(f"did not end within {seconds} s:\n{output}") from None
        return Ended(self.process.returncode, output, time.monotonic() - self.began, self.folder)

    def kill(self) -> None:
        """Kills the layer and its descendants, as an agent does."""
        pids = [*process_table.descendants(self.process.pid), self.process.pid]
        for pid in pids:
            processes.send(pid, signal.SIGKILL)

    def send(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)


def run_on(
    machines: Sequence[Machine],
    folder: Path,
    words: Sequence[str],
    *,
    slots: Sequence[int] | None = None,
    environ: Mapping[str, str] | None = None,
) -> list[Container]:
    """Starts the same command in one container on each machine."""
    addresses, counts = tuple(m.address for m in machines), tuple(slots or [1] * len(machines))
    return [
        Container(
            folder / f"container-{rank}",
            words,
            facts=RendezvousFacts(addresses, rank, counts),
            environ=environ,
            machine=machine,
            workdir=folder,
        )
        for rank, machine in enumerate(machines)
    ]
