"""Small programs of a job: the port, the key, the first failure. They run on Python 3.7 and the standard library."""

import ast
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from determined_workflows.batch import job_record
from determined_workflows.batch.task import end_job, free_port, wandb_key

TASK = Path(free_port.__file__).parent


def test_two_jobs_try_different_ports_and_one_in_use_is_passed_over() -> None:
    first = free_port.free_port(25)
    assert first != free_port.free_port(26)
    with socket.socket() as taken:
        taken.bind(("", first))
        taken.listen()
        assert free_port.free_port(25) != first


def test_each_port_is_a_candidate_once() -> None:
    found = list(free_port.candidates(12345))
    assert len(set(found)) == len(found) == free_port.PORTS


@pytest.mark.parametrize(
    ("files", "environ", "key"),
    [
        ({}, {}, None),
        ({}, {"WANDB_API_KEY": "own"}, "own"),
        ({"wandb_credentials.txt": "abc\n"}, {}, "abc"),
        ({"wandb_credentials.txt": "WANDB_API_KEY=abc\n"}, {}, "abc"),
        ({"wandb_credentials.txt": "abc\n"}, {"WANDB_API_KEY": "own"}, "own"),
        (
            {".netrc": "machine x.org\n login a\n password b\nmachine api.wandb.ai\n  login user\n  password abc\n"},
            {},
            "abc",
        ),
        ({".netrc": "machine x.org login a password b\n"}, {}, None),
        ({".netrc": "machine w.org login a password b\n"}, {"WANDB_BASE_URL": "https://w.org/x"}, "b"),
    ],
)
def test_the_key_is_found_as_wandb_finds_it(
    files: dict[str, str], environ: dict[str, str], key: str | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert wandb_key.find({"HOME": str(tmp_path), **environ}) == key


def end(rank: int, code: int, time: float, *signals: str) -> dict[str, Any]:
    return {"rank": rank, "host": "node1", "code": code, "failure": "", "signals": list(signals), "time": time}


@pytest.mark.parametrize(
    ("ends", "rank"),
    [
        ([end(0, 0, 1), end(1, 0, 2)], None),
        ([end(0, 1, 2), end(1, 3, 1)], 1),
        ([end(0, 143, 1, "SIGTERM"), end(1, 3, 2)], 1),
        ([end(0, 143, 1, "SIGTERM"), end(1, 0, 2)], 0),
    ],
)
def test_the_first_failed_rank_is_one_that_was_not_stopped(ends: list[dict[str, Any]], rank: int | None) -> None:
    found = end_job.first_failure(ends)
    assert (found["rank"] if found else None) == rank


def test_the_code_of_a_job_is_that_of_the_rank_that_failed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """srun ends with the largest code of its tasks: here that of a rank which was stopped."""
    monkeypatch.setenv("DETENT_ENDS", str(tmp_path))
    monkeypatch.delenv("SLURM_RESTART_COUNT", raising=False)
    for stored in (end(0, 143, 2, "SIGTERM"), end(1, 3, 1)):
        (tmp_path / f"rank-0-{stored['rank']}.json").write_text(json.dumps(stored))
    assert end_job.main(["143"]) == 3
    assert json.loads((tmp_path / "job.json").read_text())["code"] == 3
    assert "rank 1 on node1 failed first, exit code 3" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(path.name for path in TASK.glob("*.py") if path.name != "build_environment.py"))
def test_a_program_of_a_node_has_the_syntax_of_python_3_7_and_imports_the_standard_library(name: str) -> None:
    tree = ast.parse((TASK / name).read_text(), feature_version=(3, 7))
    imports = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imports += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    beside = {path.stem for path in TASK.glob("*.py")}
    assert {str(each).partition(".")[0] for each in imports} <= sys.stdlib_module_names | beside


def test_every_program_is_copied_into_the_record(tmp_path: Path) -> None:
    job_record.write_programs(tmp_path / "record", "", "", {})
    copied = {path.name for path in (tmp_path / "record" / "task").glob("*.py")}
    assert copied == {path.name for path in TASK.glob("*.py")} - {"__init__.py", "build_environment.py"}


@pytest.mark.parametrize("problem", [subprocess.TimeoutExpired("scontrol", 30), FileNotFoundError("scontrol")])
def test_a_job_that_cannot_be_queued_again_keeps_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], problem: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr(subprocess, "run", fail)
    monkeypatch.setenv("DETENT_ENDS", str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", "25")
    monkeypatch.delenv("SLURM_RESTART_COUNT", raising=False)
    (tmp_path / "rank-0-0.json").write_text(json.dumps(end(0, 3, 1, "SIGUSR1")))
    assert end_job.main(["3", "--requeue"]) == 3
    assert "could not be queued again" in capsys.readouterr().out
