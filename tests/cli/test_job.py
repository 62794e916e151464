"""``det job``: the queue as a table, and changes of jobs."""

from typing import Any

import pytest
from tests.support.fake_master import FakeMaster, serving

from determined_cli.main import main

JOB = {
    "jobId": "a1",
    "type": "TYPE_EXPERIMENT",
    "entityId": "7",
    "name": "digits",
    "username": "ada",
    "submissionTime": "2026-11-24T10:00:00Z",
    "priority": 42,
    "weight": 1.0,
    "requestedSlots": 4,
    "allocatedSlots": 2,
    "summary": {"state": "STATE_SCHEDULED", "jobsAhead": 0},
}


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Any:
    with serving() as server:
        monkeypatch.setenv("DET_MASTER", server.url)
        monkeypatch.setenv("DET_USER_TOKEN", "secret")
        yield server


def test_job_list_prints_the_queue_as_a_table(master: FakeMaster, capsys: pytest.CaptureFixture[str]):
    master.on("GET", "/job-queues-v2", (200, {"jobs": [{"full": JOB}], "pagination": {}}))
    assert main(["job", "list", "--csv", "--columns", "place,job_id,type,entity_id,slots,state"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "1,a1,experiment,7,2/4,scheduled"


def test_job_update_sends_the_change_and_prints_its_effect(master: FakeMaster, capsys: pytest.CaptureFixture[str]):
    changes = [{"jobId": "a1", "fields": ["priority", "position"], "passed": ["b", "c"]}]
    master.on("POST", "/detent/job-queues", (200, {"changes": changes}))
    assert main(["job", "update", "a1", "-p", "60", "--ahead-of", "b"]) == 0
    assert master.bodies("/job-queues")[-1] == {
        "updates": [{"jobId": "a1", "priority": 60, "aheadOf": "b"}],
        "dryRun": False,
    }
    assert "changed priority, position of job a1; it passed 2 jobs" in "".join(capsys.readouterr())


def test_job_update_batch_sends_one_request(master: FakeMaster, capsys: pytest.CaptureFixture[str]):
    master.on("POST", "/detent/job-queues", (200, {"changes": [{"jobId": "a1", "fields": ["weight"], "passed": []}]}))
    assert main(["job", "update-batch", "a1.weight=2.5", "b2.behind=a1", "a1.priority=3", "--dry-run"]) == 0
    assert master.bodies("/job-queues")[-1] == {
        "updates": [{"jobId": "a1", "weight": 2.5, "priority": 3}, {"jobId": "b2", "behindOf": "a1"}],
        "dryRun": True,
    }
    assert "would change weight of job a1" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["update", "a1"], "nothing to change"),
        (["update-batch", "a1.priority"], "is not JOB_ID.KEY=VALUE"),
        (["update-batch", "a1.size=3"], "with a KEY of priority, weight"),
        (["update-batch", "a1.priority=high"], "'high' is not a number"),
    ],
)
def test_an_invalid_job_update_is_refused_and_sends_no_request(
    master: FakeMaster, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
):
    assert main(["job", *words]) != 0
    assert expected in capsys.readouterr().err
    assert not [call for call in master.calls if call[0] == "POST"]
