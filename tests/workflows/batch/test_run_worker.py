"""The interpreter of torchrun's workers: it runs Python, and records how a rank fails."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "workflows" / "determined_workflows" / "batch" / "task" / "run_worker.py"


def run(folder: Path, code: str, rank: int = 3) -> int:
    """Runs code as a worker whose parent is this Python, and returns its code."""
    environ = os.environ | {"DETENT_ENDS": str(folder), "RANK": str(rank), "SLURMD_NODENAME": "node2"}
    return subprocess.run([PROGRAM, "-c", code], env=environ, check=False).returncode


def recorded(folder: Path) -> list[tuple[int, str, int]]:
    ends = [json.loads(path.read_text()) for path in sorted(folder.glob("worker-*.json"))]
    return [(end["rank"], end["host"], end["code"]) for end in ends]


def test_a_worker_that_fails_is_recorded_with_its_rank_and_code(tmp_path: Path) -> None:
    assert run(tmp_path, "import sys; sys.exit(9)") == 9
    assert recorded(tmp_path) == [(3, "node2", 9)]


def test_a_worker_that_ends_well_removes_the_record_of_the_attempt_before(tmp_path: Path) -> None:
    run(tmp_path, "import sys; sys.exit(9)")
    assert run(tmp_path, "pass") == 0
    assert recorded(tmp_path) == []


def test_a_worker_that_is_killed_ends_by_the_same_signal(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert (
        run(tmp_path, f"import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); {code}") == -signal.SIGSEGV
    )
    assert recorded(tmp_path) == [(3, "node2", 128 + signal.SIGSEGV)]


def test_a_worker_runs_under_the_python_of_its_parent(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "import sys; print(sys.prefix)") == 0
    assert capfd.readouterr().out.strip() == sys.prefix
