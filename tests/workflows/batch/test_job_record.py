"""Records of submissions: stored, read, and found by name, id or nonce."""

from pathlib import Path

import pytest
from tests.support.recorded_jobs import project_in, record_in

from determined.errors import NotFound
from determined_workflows.batch import job_record, logs
from determined_workflows.batch.status import JobState


def test_a_record_is_read_as_it_was_stored(tmp_path: Path) -> None:
    record = record_in(project_in(tmp_path), elements=(1, 2))
    assert job_record.read(record.folder) == record


def test_a_record_is_found_by_its_name_its_label_its_nonce_and_its_jobs(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    older, newest = record_in(project, job="25"), record_in(project, job="26")
    assert job_record.find(project, None) == newest
    for target in ("25", older.name, older.nonce, str(older.folder)):
        assert job_record.find(project, target) == older
    assert job_record.find(project, "standard_x") == newest
    with pytest.raises(NotFound, match=r'no submission of .* is "99"'):
        job_record.find(project, "99")


def test_a_broken_record_is_left_out(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    record = record_in(project)
    (record_in(project).folder / "record.json").write_text("{")
    assert job_record.all_of(project) == [record]


@pytest.mark.parametrize(
    ("pattern", "id", "name"),
    [
        ("standard_x_%j.out", "25", "standard_x_25.out"),
        ("sweep_x_%A_%a.out", "25_3", "sweep_x_25_3.out"),
        ("torchrun_x_%N_%j.out", "25", "torchrun_x_node1_25.out"),
        ("a%%b_%j.out", "25", "a%b_25.out"),
    ],
)
def test_the_output_of_a_job_is_found_by_the_pattern(tmp_path: Path, pattern: str, id: str, name: str) -> None:
    record = record_in(project_in(tmp_path))
    own = job_record.JobRecord(record.folder, "", "", "", f"{tmp_path}/{pattern}", "", (), None)
    assert logs.path_of(own, JobState(id, None, "RUNNING")) is None
    (tmp_path / name).write_text("output")
    assert logs.path_of(own, JobState(id, None, "RUNNING")) == tmp_path / name
