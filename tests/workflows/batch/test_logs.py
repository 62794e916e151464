"""Output files of jobs: an id of Slurm may have had another owner, or have another one now."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.recorded_jobs import end, project_in, record_in

from determined_workflows.batch import job_record, logs
from determined_workflows.batch.project import Project
from determined_workflows.batch.status import JobState


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = project_in(tmp_path)
    record_in(found)
    (found.outputs / "standard_x_25.out").write_text("output")
    return found


@pytest.mark.parametrize(
    ("has_started", "state", "is_shown"),
    [
        (True, "COMPLETED", True),
        (True, "LOST", True),
        (True, "PENDING", True),  # queued again
        (False, "FAILED", True),  # its script could not be run, and the file says why
        (False, "LOST", False),
        (False, "PENDING", False),
    ],
)
def test_the_file_of_a_job_that_never_started_belongs_to_another_job(
    project: Project, has_started: bool, state: str, is_shown: bool
) -> None:
    (record,) = job_record.all_of(project)
    if has_started:
        end(record, "25")
    assert (logs.path_of(record, JobState("25", None, state)) is not None) == is_shown


@pytest.mark.parametrize("state", ["LOST", "CANCELLED"])
def test_the_file_of_an_id_that_was_given_again_belongs_to_the_later_job(project: Project, state: str) -> None:
    (lost,) = job_record.all_of(project)
    later = record_in(project)
    for record in (lost, later):
        end(record, "25")
    ended = JobState("25", None, state)
    assert logs.path_of(lost, ended) is None
    assert logs.path_of(later, ended) == project.outputs / "standard_x_25.out"
    # Once the later one is known to write elsewhere, the file is the first one's.
    job_record.store(replace(later, output=f"{project.outputs}/standard_other_%j.out"))
    assert logs.path_of(lost, ended) is not None
