"""A project of ammunk/hpc on a Slurm of the tests' own, submitted by ``bash job_submitter.sh`` as its users do."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.slurm import Slurm
from tests.support.waiting import wait_until

MAIN = """\
import json, os, sys, time
seen = {"argv": sys.argv[1:], "cwd": os.getcwd(), "environ": dict(os.environ)}
name = os.environ["SLURM_JOB_ID"] + "-" + os.environ.get("RANK", os.environ["SLURM_PROCID"])
with open(os.path.join(os.environ["scratch_dir"], "seen-" + name + ".json"), "w") as file:
    json.dump(seen, file)
print("ran", name)
"""
"""A program that records its arguments and variables."""
_DET = f'#!/bin/bash\nexec {sys.executable} -m determined_cli "$@"\n'
_LEFT_OUT = ("DET_", "XDG_", "SLURM", "SBATCH", "WANDB", "SCRATCH", "VIRTUAL_ENV")


@dataclass
class BatchProject:
    """A project in a folder. ``programs``: a folder in PATH; it has ``det`` and ``python``, and no launchers."""

    slurm: Slurm
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    name: str = "project"

    def __post_init__(self) -> None:
        site = self.home / ".config" / "detent"
        for path in (self.root, self.scratch, site, self.programs, self.disk):
            path.mkdir(parents=True)
        # Jobs of other Slurms on this machine have the same ids.
        (site / "SITE.yaml").write_text(f"node_scratch: {self.disk}\n")
        self.add_program("det", _DET)
        for name in ("python", "python3"):
            (self.programs / name).symlink_to(sys.executable)
        (self.root / "main.py").write_text(MAIN)
        assert self.det("init").returncode == 0

    @property
    def root(self) -> Path:
        return self.folder / self.name

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    @property
    def scratch_dir(self) -> Path:
        return self.scratch / self.name

    @property
    def outputs(self) -> Path:
        return self.scratch_dir / "hpc_outputs"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def disk(self) -> Path:
        """The disk of the nodes: they are one machine here."""
        return self.folder / "disk"

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
        path = f"{self.programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        own = {"PATH": path, "HOME": str(self.home), "SCRATCH": str(self.scratch), "OMP_NUM_THREADS": "1"}
        return kept | self.slurm.environment | own | self.variables

    def add_program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def add_launcher(self, name: str) -> None:
        """Puts a program of the tests' own Python into PATH."""
        (self.programs / name).symlink_to(Path(sys.executable).with_name(name))

    def command(self, text: str, name: str = "experiment_configurations.txt") -> None:
        (self.root / "hpc_files" / name).write_text(text)

    def det(self, *words: str, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs ``det batch`` in the project."""
        return self._run(["det", "batch", *words], stdin, cwd or self.root)

    def submitter(self, *words: str, stdin: str = "1\n") -> subprocess.CompletedProcess[str]:
        """Runs ``bash job_submitter.sh`` inside ``hpc_files``, with an answer to its question."""
        return self._run(["bash", "job_submitter.sh", *words], stdin, self.root / "hpc_files")

    def submit(self, *words: str) -> str:
        """Submits a job and returns its id."""
        done = self.submitter(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.split()[-1]

    def run(self, *words: str) -> str:
        """Submits a job, waits for its end, and returns its id."""
        job = self.submit(*words)
        self.wait(job)
        return job

    def wait(self, job: str) -> None:
        """Waits until a job, or each element of an array, has left the queue."""
        states = ["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"]
        ended = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}
        wait_until(lambda: set(self.slurm.command(*states).split()) <= ended, what=lambda: self.output(job))

    def output(self, job: str) -> str:
        """Returns the output files of a job."""
        return "".join(path.read_text() for path in sorted(self.outputs.glob(f"*_{job}*.out")))

    def seen(self, job: str) -> list[dict[str, Any]]:
        """Returns what the ranks of a job recorded, in their order."""
        paths = self.scratch_dir.glob(f"seen-{job}-*.json")
        return [json.loads(path.read_text()) for path in sorted(paths, key=lambda path: int(path.stem.split("-")[-1]))]

    def node_folder(self, job: str) -> Path:
        """Returns the folder of a job on the disk of its nodes."""
        return self.disk / f"detent-{os.getuid()}" / job

    def state(self, job: str) -> dict[str, Any]:
        """Returns the first element of a job, as ``det batch status --json`` shows it."""
        states: dict[str, Any] = json.loads(self.det("status", job, "--json").stdout)[0]["jobs"][0]
        return states

    def _run(self, argv: list[str], stdin: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, input=stdin, cwd=cwd, env=self.environment, capture_output=True, text=True, check=False, timeout=120
        )
