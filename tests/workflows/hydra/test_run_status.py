"""The states of jobs from the files of a run folder and the queue of Slurm, and the files with their output."""

from pathlib import Path

import pytest

from determined.errors import NotFound
from determined_workflows import supervised_run
from determined_workflows.hydra import run_logs, run_record, run_status
from determined_workflows.hydra.run_record import Record
from determined_workflows.hydra.slurm_queue import QueuedJob


def make_job(sweep: Path, name: str, *, is_finished: bool = False, state: str | None = None, number: int = 0) -> Path:
    folder = sweep / name
    (folder / ".hydra").mkdir(parents=True)
    (folder / ".hydra" / "overrides.yaml").write_text(f"- lr={name}\n- logger.api_key=hunter22\n")
    (folder / ".hydra" / "hydra.yaml").write_text(f"hydra: {{job: {{num: {number}}}}}\n")
    if is_finished:
        (folder / "result.json").write_text("{}")
    if state is not None:
        set_state(folder, state)
    return folder


def set_state(folder: Path, state: str) -> None:
    run_record.kept_in(folder).mkdir(parents=True, exist_ok=True)
    (run_record.kept_in(folder) / supervised_run.STATE).write_text(f"{state}\n")


def states(path: Path, record: Record | None, *queue: QueuedJob) -> dict[str, str]:
    return {job.name: job.state for job in run_status.read(path, record, queue)}


@pytest.mark.parametrize(
    ("record", "state", "expected"),
    [
        (None, None, "unfinished"),  # of plain Hydra
        (Record("local", 1), "finished", "finished"),
        (Record("local", 1), "failed", "failed"),
        (Record("local", 1), "running", "interrupted"),  # nobody holds the folder
    ],
)
def test_a_run_without_a_result_file_has_the_state_of_its_process(
    tmp_path: Path, record: Record | None, state: str | None, expected: str
) -> None:
    folder = make_job(tmp_path, "run", state=state)
    assert states(folder, record) == {"run": expected}


def test_a_result_file_counts_more_than_the_exit_of_the_process(tmp_path: Path) -> None:
    folder = make_job(tmp_path, "run", is_finished=True, state="failed")
    assert states(folder, Record("local", 1)) == {"run": "finished"}


def test_jobs_of_a_failed_multirun_are_told_apart_by_their_result_files(tmp_path: Path) -> None:
    make_job(tmp_path, "0", is_finished=True)
    make_job(tmp_path, "1")
    set_state(tmp_path, "failed")
    assert states(tmp_path, Record("local", 3)) == {"0": "finished", "1": "failed", "2": "interrupted"}


def test_without_any_result_file_the_jobs_of_a_failed_multirun_have_ended_somehow(tmp_path: Path) -> None:
    for name in "01":
        make_job(tmp_path, name)
    set_state(tmp_path, "failed")
    assert states(tmp_path, Record("local", 2)) == {"0": "ended", "1": "ended"}
    set_state(tmp_path, "finished")
    assert states(tmp_path, Record("local", 2)) == {"0": "finished", "1": "finished"}


def test_only_the_newest_job_of_a_killed_multirun_was_interrupted(tmp_path: Path) -> None:
    make_job(tmp_path, "0", is_finished=True)
    for name in ("1", "10"):
        make_job(tmp_path, name)
    set_state(tmp_path, "running")
    assert states(tmp_path, Record("local", 3)) == {"0": "finished", "1": "failed", "10": "interrupted"}


def test_a_job_that_was_retried_has_its_own_state(tmp_path: Path) -> None:
    make_job(tmp_path, "0", state="failed")
    make_job(tmp_path, "1", state="finished")
    make_job(tmp_path, "2", state="running")
    set_state(tmp_path, "failed")
    assert states(tmp_path, Record("local", 3)) == {"0": "failed", "1": "finished", "2": "interrupted"}


def test_jobs_of_slurm_have_the_state_of_the_queue_by_their_number(tmp_path: Path) -> None:
    make_job(tmp_path, "first", is_finished=True, number=0)
    make_job(tmp_path, "second", number=1)
    make_job(tmp_path, "third", number=2)
    queue = [QueuedJob("7_2", 2, "running"), QueuedJob("7_3", 3, "pending")]
    set_state(tmp_path, "running")
    assert states(tmp_path, Record("slurm", 4), *queue) == {
        "first": "finished",
        "second": "failed",  # no result, and Slurm does not know it any more
        "third": "running",
        "3": "pending",
    }


def test_the_line_of_a_job_has_its_overrides_without_secrets_and_its_newest_checkpoint(tmp_path: Path) -> None:
    folder = make_job(tmp_path, "run")
    for step in (2, 10):
        (folder / "checkpoints" / f"step_{step}").mkdir(parents=True)
    (job,) = run_status.read(folder, None)
    assert job.line() == "unfinished  run  (lr=run logger.api_key=********, newest checkpoint step_10)"


def test_the_output_is_that_of_slurm_or_of_the_local_run_or_what_hydra_logged(tmp_path: Path) -> None:
    folder = make_job(tmp_path, "0")
    log = folder / "train.log"
    log.touch()
    assert list(run_logs.files(tmp_path, None, None)) == [log]
    assert list(run_logs.files(tmp_path, None, 1)) == []
    console = run_record.kept_in(tmp_path) / ".runner.console"
    console.parent.mkdir()
    console.touch()
    assert list(run_logs.files(tmp_path, None, None)) == [console]
    assert list(run_logs.files(tmp_path, None, 0)) == [log]
    for name in ("7_0/7_0_0_log.out", "7_0/7_0_0_log.err", "7_1/7_1_0_log.out"):
        path = tmp_path / ".submitit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    names = [path.name for path in run_logs.files(tmp_path, None, None)]
    assert names == [".runner.console", "7_0_0_log.out", "7_1_0_log.out", "7_0_0_log.err"]
    assert [path.name for path in run_logs.files(tmp_path, None, 1)] == ["7_1_0_log.out"]


def test_a_job_that_does_not_exist_and_a_run_without_output_are_refused(tmp_path: Path) -> None:
    folder = make_job(tmp_path, "run")
    with pytest.raises(NotFound, match="is one run, whose only job is 0"):
        run_logs.show(folder, None, 3)
    with pytest.raises(NotFound, match=r"run has no output yet; `det hydra status .*run` prints"):
        run_logs.show(folder, None, None)
    with pytest.raises(NotFound, match=r"job 9 of .* has no output yet"):
        run_logs.show(tmp_path, None, 9)


def test_overrides_that_are_no_list_are_left_out_of_the_details(tmp_path: Path) -> None:
    folder = make_job(tmp_path, "0")
    (folder / ".hydra" / "overrides.yaml").write_text("3")
    assert [each.detail for each in run_status.read(tmp_path, None)] == [""]
