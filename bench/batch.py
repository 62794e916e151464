"""``det batch`` beside bare ``sbatch`` and a script written by hand, on a Slurm of its own."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figure import Figure, Skipped, paired
from bench.processes import det
from bench.servers import ROOT

SCRIPT = ROOT / "scripts" / "slurm.sh"
ELEMENTS = 200
WITHIN_SECONDS = 120.0
PROGRAM = """\
import sys
import torch
import time
open(sys.argv[1], "w").write(str(time.time()))
"""
BY_HAND = """\
#!/bin/bash
#SBATCH --ntasks=1 --cpus-per-task=2 --mem=10G --time=01:00:00
source {prefix}/bin/activate
mkdir -p "{node}" && tar -xf {archive} -C "{node}"
cd {root}
srun {command}
rm -rf "{node}"
"""
COUNTING = """\
#!/bin/sh
echo call >>{calls}
exec {program} "$@"
"""


def figures(rounds: int = 7) -> Iterator[Figure]:
    if os.geteuid() != 0 or shutil.which("slurmctld") is None:
        raise Skipped("a Slurm of its own needs root, and Slurm (Debian: slurm-wlm munge)")
    # Slurm makes sockets below the folder, whose paths are short.
    with tempfile.TemporaryDirectory(prefix="b") as name, _slurm(Path(name) / "s") as variables:
        project = _Project(Path(name), variables)
        yield project.sweep()
        yield project.submission(rounds)
        yield project.job(rounds)


@contextmanager
def _slurm(folder: Path) -> Iterator[dict[str, str]]:
    try:
        subprocess.run(["sh", SCRIPT, "up", folder], check=True, stdout=subprocess.DEVNULL)
        yield {"SLURM_CONF": str(folder / "slurm.conf")}
    finally:
        subprocess.run(["sh", SCRIPT, "down", folder], check=True)


class _Project:
    """A project whose environment is there and whose data is packed."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._root, self._scratch = folder / "project", folder / "scratch"
        self._calls, programs = folder / "calls", folder / "bin"
        (self._root / "hpc_files").mkdir(parents=True)
        (self._scratch / "project" / "data").mkdir(parents=True)
        (self._scratch / "project" / "data" / "numbers.bin").write_bytes(bytes(1 << 20))
        (self._root / "main.py").write_text(PROGRAM)
        (self._root / "virtual_env").symlink_to(sys.prefix)
        programs.mkdir()
        counting = programs / "sbatch"
        counting.write_text(COUNTING.format(calls=self._calls, program=shutil.which("sbatch")))
        counting.chmod(0o755)
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_", "DET_"))}
        self._environ = kept | variables | {"SCRATCH": str(self._scratch), "PATH": path}

    def sweep(self) -> Figure:
        """Counts the calls of ``sbatch`` for a sweep, whose elements are cancelled."""
        self._command("wandb agent --count 1 me/project/SWEEP_ID")
        self._det("-j", "sweep", "--sweep-id", "ab12", "--count", str(ELEMENTS), "--gpus", "0", "--time", "5")
        calls = len(self._calls.read_text().split())
        subprocess.run(["scancel", "--user=root"], env=self._environ, check=True)
        return Figure(f"calls of sbatch for a sweep of {ELEMENTS} runs", 1, [calls], unit=" ")

    def submission(self, rounds: int) -> Figure:
        """Times a submission whose job ends at once, less the time of bare ``sbatch`` with the same script."""
        self._command("true")
        self._det()
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(rounds):
            began = time.perf_counter()
            self._det()
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            self._sbatch(self._newest_script())
            bare.append(time.perf_counter() - began)
        own = [a - b for a, b in zip(ours, bare, strict=True)]
        note = f"bare sbatch {1000 * sorted(bare)[rounds // 2]:.0f} ms"
        return Figure("own time of det batch run --yes beside sbatch", 0.4, own, unit="s", note=note)

    def job(self, rounds: int) -> Figure:
        """Times from ``sbatch`` to the end of a program that imports torch."""
        end = self._root / "end"
        command = f"python main.py {end}"
        self._command(command)
        self._det("--data", "data")
        script = self._newest_script()
        self._wait_for(end)
        (archive,) = (self._scratch / "project" / ".batch" / "data").glob("*.tar")
        hand = self._root / "hand.sh"
        node = self._root.parent / "node"
        hand.write_text(BY_HAND.format(prefix=sys.prefix, node=node, archive=archive, root=self._root, command=command))
        ratios, note = paired(lambda: self._run(script, end), lambda: self._run(hand, end), rounds)
        return Figure("job of det batch / script by hand, to the end of a program", 1.1, ratios, note=f"{note} s")

    def _run(self, script: Path, end: Path) -> float:
        began = time.time()
        self._sbatch(script)
        return self._wait_for(end) - began

    def _wait_for(self, end: Path) -> float:
        deadline = time.monotonic() + WITHIN_SECONDS
        while not (end.exists() and end.read_text()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the job did not write {end} within {WITHIN_SECONDS:g} s")
            time.sleep(0.005)
        written = float(end.read_text())
        end.unlink()
        return written

    def _command(self, text: str) -> None:
        (self._root / "hpc_files" / "experiment_configurations.txt").write_text(f"{text}\n")

    def _det(self, *words: str) -> None:
        argv = [det(), "batch", "submit", "--yes", *words]
        subprocess.run(argv, cwd=self._root, env=self._environ, check=True, capture_output=True)

    def _sbatch(self, script: Path) -> None:
        argv = ["sbatch", "--output=/dev/null", str(script)]
        subprocess.run(argv, cwd=self._root, env=self._environ, check=True, capture_output=True)

    def _newest_script(self) -> Path:
        scripts = (self._scratch / "project" / "hpc_outputs" / ".batch").glob("*/job.sh")
        return max(scripts, key=lambda path: path.stat().st_mtime_ns)
