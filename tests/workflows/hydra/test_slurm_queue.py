"""The jobs of Slurm of a run folder. ``squeue`` and ``scancel`` are programs of the tests that record their arguments."""

from pathlib import Path

import pytest
from tests.workflows.hydra.conftest import Det
from tests.workflows.hydra.test_run_status import make_job

from determined.errors import DeterminedError
from determined_workflows.hydra import slurm_queue
from determined_workflows.hydra.run_record import Record


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def write(programs: Path, name: str, script: str) -> None:
    path = programs / name
    path.write_text(f'#!/bin/sh\necho {name} "$@" >> {programs}/calls\n{script}\n')
    path.chmod(0o755)


def calls(programs: Path) -> list[str]:
    path = programs / "calls"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Returns the folder of a multirun of three jobs on Slurm."""
    sweep = tmp_path / "sweep"
    for name in "01":
        make_job(sweep, name)
    (sweep / ".submitit").mkdir()
    Record("slurm", 3, slurm_folder=str(sweep / ".submitit")).write(sweep)
    return sweep


def queue_with(programs: Path, sweep: Path) -> None:
    rows = f"7_0|RUNNING|{sweep}/.submitit/.submission_file_a.sh\n7_2|PENDING|{sweep}/.submitit/.submission_file_a.sh"
    others = f"7_1|RUNNING|/home/b/s.sh\n9|RUNNING|{sweep}/.submitit2/s.sh\n7_3|COMPLETED|{sweep}/.submitit/s.sh"
    write(programs, "squeue", f"cat <<'E'\n{rows}\n{others}\nE")


def test_status_shows_the_jobs_of_the_folder_and_never_those_with_another_script(
    programs: Path, sweep: Path, det_here: Det
) -> None:
    queue_with(programs, sweep)
    code, out, _ = det_here("status", str(sweep))
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["running", "0"],
        ["unfinished", "1"],
        ["pending", "2"],
        ["Jobs:", "3"],
    ]
    assert calls(programs) == ["squeue --noheader --array --format=%i|%T|%o"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [((), ["scancel 7_0 7_2"]), (("--now",), ["scancel --signal=KILL --full 7_0", "scancel 7_2"])],
)
def test_stop_cancels_the_jobs_of_the_folder_only(
    programs: Path, sweep: Path, det_here: Det, flags: tuple[str, ...], expected: list[str]
) -> None:
    queue_with(programs, sweep)
    write(programs, "scancel", "")
    code, _, err = det_here("stop", str(sweep), *flags)
    assert (code, err) == (0, "ended jobs of Slurm: 7_0, 7_2\n")
    assert calls(programs)[1:] == expected


def test_retry_is_refused_while_jobs_of_the_folder_run_or_wait(programs: Path, sweep: Path, det_here: Det) -> None:
    queue_with(programs, sweep)
    code, out, err = det_here("retry", str(sweep), "--on", "local")
    assert (code, out) == (7, "")
    assert err.startswith("det: jobs of Slurm still run or wait: 7_0, 7_2; wait, or end them by `det hydra stop ")


def test_a_slurm_that_fails_is_a_warning_of_status_and_an_error_of_stop(
    programs: Path, sweep: Path, det_here: Det
) -> None:
    write(programs, "squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    code, out, err = det_here("status", str(sweep))
    reason = "Slurm does not answer: slurm_load_jobs error: Unable to contact slurm controller"
    assert (code, err) == (0, f"warning: {reason}; these are the states of the files\n")
    assert out.splitlines()[-1] == "Jobs: 3 (1 interrupted, 2 unfinished)"
    code, out, err = det_here("stop", str(sweep))
    assert (code, out, err) == (1, "", f"det: {reason}\n")


def test_a_slurm_that_hangs_is_given_up_with_a_sentence(
    programs: Path, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(programs, "squeue", "exec sleep 60")
    monkeypatch.setattr(slurm_queue, "TIMEOUT_SECONDS", 0.1)
    with pytest.raises(DeterminedError, match=r"Slurm does not answer \(squeue took longer than 0.1 s\)"):
        slurm_queue.jobs(sweep / ".submitit")


def test_a_machine_without_slurm_shows_the_states_of_the_files(
    programs: Path, sweep: Path, det_here: Det, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(programs))
    code, _, err = det_here("status", str(sweep))
    assert code == 0
    assert err.startswith("warning: Slurm is not installed on this machine (no squeue)")
