"""The output of squeue as observations of pilots."""

from datetime import UTC, datetime, timedelta

import pytest

from determined_master.providers.provider import ObservedState
from determined_master.providers.slurm.queue import COLUMNS, UNKNOWN_GRACE, SlurmJob, newest_of, observation, parse

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
OURS = "detent:c:"


def line(**values: str) -> bytes:
    filled = {"JobID": "550", "State": "RUNNING", "PreemptTime": "N/A", "Comment": "detent:c:a"} | values
    return b"".join(filled.get(name, "").encode()[:width].ljust(width) for name, width in COLUMNS)


def seen(last_line: str = "", **values: str):
    (job,) = parse(line(**values), OURS)
    return observation(job, NOW, last_line=last_line)


def test_parsing_finds_our_jobs_alone_whatever_others_have_in_their_comments():
    text = b"\n".join([line(JobID="1"), line(JobID="2", Comment="möglich ünd"), line(JobID="3", Comment=""), b"", b"x"])
    assert [job.id for job in parse(text, OURS)] == ["1"]
    assert parse(line(Comment="detent:other:a"), OURS) == []


def test_a_column_that_is_full_does_not_shift_the_others():
    (job,) = parse(line(NodeList="n" * 200, Reason="r" * 200), OURS)
    assert (job.id, job.state, job.comment) == ("550", "RUNNING", "detent:c:a")


@pytest.mark.parametrize(
    ("left", "seconds"), [("1-02:03:04", 93784), ("2:03:04", 7384), ("59:58", 3598), ("0:09", 9), ("0:00", 0)]
)
def test_a_running_job_leaves_when_its_time_is_over(left, seconds):
    found = seen(TimeLeft=left)
    assert (found.state, found.reason) == (ObservedState.RUNNING, "time limit of Slurm job 550")
    assert (found.leaves_at, found.has_time_limit) == (NOW + timedelta(seconds=seconds), True)


@pytest.mark.parametrize("left", ["UNLIMITED", "INVALID", "NOT_SET", "", "364-23:59:56"])
def test_a_running_job_without_a_limit_is_not_known_to_leave(left):
    found = seen(TimeLeft=left)
    assert (found.state, found.reason, found.leaves_at) == (ObservedState.RUNNING, "", None)
    assert found.origin == "Slurm job 550"


def test_a_preempted_job_leaves_at_the_end_that_slurm_has_moved():
    found = seen(TimeLeft="1:00:00", PreemptTime="2026-05-01T12:00:00", EndTime="2026-05-01T12:00:20")
    assert (found.state, found.reason) == (ObservedState.RUNNING, "Slurm job 550 is preempted by Slurm")
    assert found.leaves_at == NOW + timedelta(seconds=20)


@pytest.mark.parametrize("end", ["NONE", "N/A", "2026-05-01T12:00:00"])
def test_a_preempted_job_of_which_slurm_has_not_said_the_end_yet_may_save(end):
    found = seen(TimeLeft="1:00:00", PreemptTime="2026-05-01T12:00:00", EndTime=end)
    assert (found.leaves_at, found.has_time_limit) == (NOW + UNKNOWN_GRACE, False)


def test_a_job_that_completes_leaves_soon():
    found = seen(State="COMPLETING", TimeLeft="1:00:00")
    assert (found.state, found.leaves_at) == (ObservedState.RUNNING, NOW + UNKNOWN_GRACE)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "waits for resources (Resources)"),
        ("Priority", "jobs of higher priority come first (Priority)"),
        ("None", "Slurm has not looked at it yet (None)"),
        ("PartitionDown", "its partition is down (PartitionDown)"),
        ("QOSMaxGRESPerUser", "the limit of its quality of service is reached (QOSMaxGRESPerUser)"),
        ("AssocGrpCpuLimit", "the limit of its account for all its jobs is reached (AssocGrpCpuLimit)"),
        ("ReqNodeNotAvail, May be reserved for other job", None),
        ("SomethingNew", "waits (SomethingNew)"),
        ("", "waits (no reason given)"),
    ],
)
def test_a_queued_job_says_in_words_why_it_waits(reason, words):
    found = seen(State="PENDING", Reason=reason, StartTime="2026-05-01T15:00:00", TimeLeft="10:00")
    words = words or f"a node that it needs is not available ({reason})"
    assert (found.state, found.reason) == (ObservedState.QUEUED, f"Slurm job 550: {words}")
    assert found.start_estimate == NOW + timedelta(hours=3)
    assert found.leaves_at is None


@pytest.mark.parametrize(
    ("state", "values", "words"),
    [
        ("CANCELLED", {}, "Slurm job 550 was cancelled outside Detent"),
        ("TIMEOUT", {}, "Slurm job 550 reached its time limit"),
        ("DEADLINE", {}, "Slurm job 550 reached its time limit"),
        ("PREEMPTED", {}, "Slurm job 550 was preempted by Slurm"),
        ("NODE_FAIL", {"NodeList": "node7"}, "node node7 failed (Slurm job 550)"),
        ("NODE_FAIL", {"NodeList": "node[1-2]"}, "a node of node[1-2] failed (Slurm job 550)"),
        ("OUT_OF_MEMORY", {}, "Slurm job 550 used more memory than it may; raise mem of the pool's sbatch options"),
        ("FAILED", {"exit_code": "768"}, "the agent of Slurm job 550 ended (exit 3): why"),
        ("FAILED", {"exit_code": "15"}, "the agent of Slurm job 550 ended (signal SIGTERM): why"),
        ("COMPLETED", {"PreemptTime": "2026-05-01T11:59:00"}, "Slurm job 550 was preempted by Slurm"),
        ("COMPLETED", {"exit_code": "0"}, "the agent of Slurm job 550 ended (exit 0): why"),
    ],
)
def test_a_job_in_a_final_state_is_gone_with_its_cause(state, values, words):
    found = seen("why", State=state, **values)
    assert (found.state, found.reason, found.leaves_at) == (ObservedState.GONE, words, None)


def test_of_two_jobs_with_one_comment_the_one_that_lives_counts_then_the_newer():
    jobs = [SlurmJob("9", "RUNNING", "x"), SlurmJob("10", "CANCELLED", "x"), SlurmJob("99", "FAILED", "y")]
    assert newest_of([*jobs, SlurmJob("100", "FAILED", "y")]) == {"x": jobs[0], "y": SlurmJob("100", "FAILED", "y")}
