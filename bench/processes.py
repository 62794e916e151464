"""Runs and times programs, and finds the installed ``det``."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.figure import Skipped


def det() -> str:
    """Returns the console script of this environment. Raises Skipped if it is not installed."""
    script = Path(sys.executable).parent / "det"
    if not script.exists():
        raise Skipped(f"no det beside {Path(sys.executable).name}: install the distribution first")
    return str(script)


def seconds(argv: Sequence[str], environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> float:
    """Returns the wall time of a program from start to end. It must succeed."""
    start = time.perf_counter()
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, cwd=cwd
    )
    taken = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv[:4])} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return taken


def seconds_to(line: str, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None) -> float:
    """Returns the seconds from the start of a program to the first line of its output that contains ``line``. Then runs
    it to its end."""
    start = time.perf_counter()
    with subprocess.Popen(
        argv, cwd=cwd, env=environment or dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        taken, output = 0.0, []
        for output_line in process.stdout:
            if not taken and line in output_line.decode():
                taken = time.perf_counter() - start
            output.append(output_line.decode())
    if not taken or process.returncode:
        raise RuntimeError(f"{' '.join(argv[:4])} ended with {process.returncode}: {''.join(output)[-800:]}")
    return taken
