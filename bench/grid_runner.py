"""The grid runner: commands that do nothing against ``xargs`` with the same commands, and the start of a large grid."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, Skipped, paired
from bench.processes import det, seconds_to

TASKS = 1_000
LARGE = 2_000
WORKERS = 4 * (os.cpu_count() or 1)
IN_MEMORY = Path("/dev/shm")
"""A file system in memory. On a disk, the five files and folders of each task would dominate, which xargs does not
write."""
GRID = "resource: [{resources}]\ntemplate:\n  work: ': {{n}}'\n---\nn: [{values}]\n"


def figures(rounds: int = 7) -> Iterator[Figure]:
    if shutil.which("xargs") is None:
        raise Skipped("no xargs")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as name:
        folder = Path(name)
        commands = folder / "commands"
        commands.write_text("".join(f": {n}\n" for n in range(TASKS)))
        _write(folder, TASKS)
        ratios, note = paired(lambda: TASKS / _ours(folder), lambda: TASKS / _xargs(folder), rounds)
        yield Figure(
            f"{TASKS} tasks that do nothing: det runner run / xargs -P",
            0.7,
            ratios,
            note=f"{note} tasks/s",
            at_least=True,
        )
        _write(folder, LARGE)
        figures_of_sizes = []
        for _ in range(rounds):
            shutil.rmtree(folder / "output", ignore_errors=True)
            figures_of_sizes.append(seconds_to("START ", [det(), "runner", "run"], cwd=folder))
        yield Figure(f"first of {LARGE} tasks starts, s / 1 s", 1.0, figures_of_sizes)


def _write(folder: Path, tasks: int) -> None:
    resources = ", ".join(map(str, range(WORKERS)))
    values = ", ".join(map(str, range(tasks)))
    (folder / "params.yaml").write_text(GRID.format(resources=resources, values=values))


def _ours(folder: Path) -> float:
    shutil.rmtree(folder / "output", ignore_errors=True)
    return _seconds([det(), "runner", "run"], folder)


def _xargs(folder: Path) -> float:
    return _seconds(["xargs", "-a", "commands", "-d", "\n", "-P", str(WORKERS), "-n", "1", "bash", "-c"], folder)


def _seconds(argv: list[str], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
