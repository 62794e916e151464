"""States of jobs, from the files of their ranks and the lines of ``squeue``."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.recorded_jobs import end, project_in, queued, record_in

from determined_workflows.batch import job_record, slurm_client, status
from determined_workflows.batch.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_in(tmp_path)


@pytest.mark.parametrize(
    ("state", "reason", "nodes", "detail"),
    [
        ("PENDING", "Resources", "", "Resources"),
        ("RUNNING", "None", "node[1-2]", "node[1-2]"),
        ("NODE_FAIL", "NodeDown", "node1", "a node failed: node1"),
        ("NODE_FAIL", "NodeDown", "", "a node failed: node[1-2]"),
    ],
)
def test_a_job_in_the_queue_has_the_state_that_slurm_names(
    project: Project, state: str, reason: str, nodes: str, detail: str
) -> None:
    record = record_in(project)
    record.ends_of("25").mkdir(parents=True)
    (record.ends_of("25") / "started").write_text("1000 node[1-2]\n")
    _, (found,) = status.observe(record, [queued(record, "25", state, reason=reason, nodes=nodes)])
    assert (found.id, found.state, found.detail) == ("25", state, detail)


@pytest.mark.parametrize(
    ("code", "signals", "ended", "state"),
    [
        (0, [], 1100, "COMPLETED"),
        (3, [], 1100, "FAILED"),
        (143, ["SIGTERM"], 1100, "CANCELLED"),
        (143, ["SIGTERM"], 4600, "TIMEOUT"),
    ],
)
def test_a_job_that_slurm_has_forgotten_has_the_state_of_its_files(
    project: Project, code: int, signals: list[str], ended: float, state: str
) -> None:
    record = record_in(project)
    end(record, "25", code=code, signals=signals, ended=ended)
    _, (found,) = status.observe(record, [])
    assert (found.state, found.code) == (state, code)
    assert found.detail == ("rank 1 on node2 failed first, exit code 3" if state == "FAILED" else "")


def test_a_state_that_slurm_named_once_is_kept(project: Project) -> None:
    record = record_in(project)
    status.observe(record, [queued(record, "25", "PREEMPTED")])
    _, (found,) = status.observe(record, [])
    assert found.state == "PREEMPTED"
    assert found.state in status.RETRIED


def test_a_job_that_waits_again_is_not_shown_by_its_earlier_end(project: Project) -> None:
    record = record_in(project)
    end(record, "25", code=9, signals=["SIGUSR1"])
    _, (found,) = status.observe(record, [queued(record, "25", "PENDING", reason="BeginTime")])
    assert (found.state, found.detail) == ("PENDING", "BeginTime")


def test_a_job_with_the_same_id_and_another_nonce_is_not_ours(project: Project) -> None:
    record = record_in(project)
    _, (found,) = status.observe(record, [queued(record, "25", "RUNNING", nonce="other")])
    assert found.state == "LOST"
    assert "never started" in found.detail


def test_without_an_answer_of_slurm_an_unfinished_job_is_unknown(project: Project) -> None:
    record = record_in(project)
    assert status.observe(record, None)[1][0].state == "UNKNOWN"
    end(record, "25")
    assert status.observe(record, None)[1][0].state == "COMPLETED"


def test_a_job_that_started_and_left_no_end_is_lost(project: Project) -> None:
    record = record_in(project)
    record.ends_of("25").mkdir()
    (record.ends_of("25") / "started").write_text("1000\n")
    assert "ended without a record" in status.observe(record, [])[1][0].detail


def test_a_job_whose_submission_got_no_answer_is_found_by_its_nonce(project: Project) -> None:
    record = record_in(project, job="")
    _, (lost,) = status.observe(record, [])
    assert lost.state == "LOST"
    found, (state,) = status.observe(record, [queued(record, "31", "RUNNING")])
    assert (state.id, state.state) == ("31", "RUNNING")
    assert job_record.read(record.folder) == found


def test_elements_of_an_array_have_states_of_their_own(project: Project) -> None:
    record = record_in(project, elements=(1, 2, 3, 4))
    end(record, "25_1")
    waiting = replace(queued(record, "25_[3-4%1]", "PENDING", reason="JobArrayTaskLimit"), array_id="25")
    _, found = status.observe(record, [queued(record, "25_2", "RUNNING", nodes="node1"), waiting])
    assert [each.state for each in found] == ["COMPLETED", "RUNNING", "PENDING", "PENDING"]
    again = job_record.with_job(record, "30", (1,))
    assert status.observe(again, [queued(record, "30_1", "RUNNING")])[1][0].id == "30_1"


def test_lines_of_squeue_in_another_form_are_left_out() -> None:
    text = "25|25|N/A|RUNNING|None|node1|detent:ab|2026\n26|26|N/A|RUNNING|None|node1|a|b|2026\nslurm_load_jobs error\n"
    assert [(each.id, each.nonce) for each in slurm_client.parse_queue(text)] == [("25", "ab")]
