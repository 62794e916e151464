"""Experiments and trials on the command line: lists, life cycle, waiting, logs, downloads and errors."""

import base64
import csv
import io
import json
import tarfile
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import Det, FakeMaster, Request, Stream, error

EXPERIMENT = {
    "id": 7,
    "name": "dig its/é",
    "username": "ann",
    "state": "STATE_RUNNING",
    "progress": 0.5,
    "startTime": "2026-01-01T00:00:00Z",
    "endTime": None,
    "resourcePool": "default",
    "labels": ["a"],
    "forkedFrom": None,
    "archived": False,
    "numTrials": 1,
    "config": {"searcher": {"smaller_is_better": True}, "camelCase": 1},
}


def page(request: Request, key: str, rows: list[Any]) -> dict[str, Any]:
    offset, limit = int(request.query["offset"][0]), int(request.query["limit"][0])
    return {key: rows[offset : offset + limit], "pagination": {"total": len(rows)}}


@pytest.fixture
def master(fake: FakeMaster) -> FakeMaster:
    rows = [{**EXPERIMENT, "id": number} for number in range(450, 0, -1)]
    trials = [{"id": 9, "state": "STATE_ERROR", "hparams": {"lr": 0.1}, "restarts": 0, "totalBatchesProcessed": 5}]
    checkpoints = [
        {
            "uuid": f"u{steps}",
            "state": "STATE_COMPLETED",
            "metadata": {"steps_completed": steps},
            "resources": {"a": "5", "b/": "0"},
            "training": {"trialId": 9, "searcherMetric": metric},
        }
        for steps, metric in ((10, 0.3), (20, 0.1), (30, None))
    ]
    fake.answers.update(
        {
            "GET /api/v1/me": {"user": {"username": "ann", "id": 1}},
            "GET /api/v1/experiments": lambda request: page(request, "experiments", rows),
            "GET /api/v1/experiments/7": {"experiment": EXPERIMENT},
            "GET /detent/experiments/7/status": {"waitedSeconds": 65.2, "ranSeconds": 3723},
            "GET /api/v1/experiments/7/trials": lambda request: page(request, "trials", trials),
            "GET /api/v1/experiments/7/checkpoints": lambda request: page(request, "checkpoints", checkpoints),
            "GET /api/v1/trials/9/checkpoints": lambda request: page(request, "checkpoints", checkpoints),
            "GET /api/v1/trials/9": {"trial": {**trials[0], "experimentId": 7}},
            "GET /detent/trials/9/logs": {"lines": [{"text": "wandb: View run at https://wandb.ai/a/runs/1"}]},
            "GET /api/v1/trials/9/workloads": lambda request: page(
                request, "workloads", [{"training": {"totalBatches": 5, "metrics": {"avgMetrics": {"lossVal": 1.5}}}}]
            ),
        }
    )
    return fake


def test_list_shows_the_experiments_of_all_pages(master: FakeMaster, det: Det) -> None:
    outcome = det("e", "list", "--csv")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [int(row["ID"]) for row in rows] == list(range(450, 0, -1))
    query = master.requests_to("GET /api/v1/experiments")[0].query
    assert (query["users"], query["archived"]) == (["ann"], ["false"])
    assert len(json.loads(det("e", "list", "--json", "--limit", "3").out)) == 3


def test_list_prints_the_same_rows_as_table_json_and_yaml(master: FakeMaster, det: Det) -> None:
    table = det("e", "ls", "--limit", "2").out.splitlines()
    assert table[0].split("|")[0].strip() == "ID"
    assert set(table[1]) == {"-", "+"}
    assert "RUNNING" in table[2]
    assert "50.0%" in table[2]
    rows = json.loads(det("e", "ls", "--limit", "2", "--json").out)
    assert rows == yaml.safe_load(det("e", "ls", "--limit", "2", "--yaml").out)
    assert rows[0]["start_time"] == "2026-01-01T00:00:00Z"
    assert rows[0]["progress"] == 0.5


def test_describe_keeps_the_spelling_of_the_users_own_keys(master: FakeMaster, det: Det) -> None:
    described = json.loads(det("e", "describe", "7", "--json", "--metrics").out)
    assert described[0]["num_trials"] == 1
    assert described[0]["config"]["camelCase"] == 1
    assert described[0]["trials"][0]["workloads"][0]["training"]["metrics"]["avg_metrics"] == {"lossVal": 1.5}
    assert (described[0]["waited_seconds"], described[0]["ran_seconds"]) == (65.2, 3723)
    assert det("e", "describe", "7").code == 0
    assert "u20" in det("e", "describe", "7").out


def test_describe_shows_how_long_an_experiment_waited_and_ran(master: FakeMaster, det: Det) -> None:
    outcome = det("e", "describe", "7")
    assert outcome.code == 0
    for part in ("Submitted", "Waited", "0:01:05", "Ran", "1:02:03"):
        assert part in outcome.out


@pytest.mark.parametrize("words", [("e", "list"), ("e", "describe", "7")])
def test_experiments_of_a_pool_of_slurm_are_shown_with_the_account_that_pays(
    master: FakeMaster, det: Det, words: tuple[str, ...]
) -> None:
    pools = [{"name": "default", "account": "ann (Slurm account ml)"}, {"name": "other", "account": "ann"}]
    master.answers["GET /api/v1/resource-pools"] = {"resourcePools": pools}
    line = "pool default: its jobs run as, and are charged to, ann (Slurm account ml)\n"
    assert det(*words).err.count(line) == 1
    assert "pool other" not in det(*words).err
    assert line not in det(*words, "--json").err


def test_describe_names_the_wandb_runs_of_a_few_trials_but_not_of_many(master: FakeMaster, det: Det) -> None:
    assert "W&B run of trial 9: https://wandb.ai/a/runs/1\n" in det("e", "describe", "7").out
    trials = [{"id": number, "state": "STATE_ERROR", "hparams": {}} for number in range(9)]
    master.answers["GET /api/v1/experiments/7/trials"] = lambda request: page(request, "trials", trials)
    assert "W&B" not in det("e", "describe", "7").out
    assert len(master.requests_to("GET /detent/trials/9/logs")) == 1


def test_describe_shows_the_decisions_of_a_search_and_why_it_failed(master: FakeMaster, det: Det) -> None:
    reason = "the validation after 2 batches has no loss"
    decision = {"time": "2026-01-01T09:00:00Z", "trialId": 9, "bracket": 1, "reason": "stopped at rung 1: 2nd of 2"}
    status = master.answers["GET /detent/experiments/7/status"]
    master.answers["GET /detent/experiments/7/status"] = {**status, "text": f"failed: {reason}", "failure": None}
    master.answers["GET /detent/experiments/7/search"] = {"decisions": [decision]}
    outcome = det("e", "describe", "7", "--decisions")
    assert "stopped at rung 1: 2nd of 2" in outcome.out
    assert f"experiment 7 failed: {reason}" in outcome.err
    (described,) = json.loads(det("e", "describe", "7", "--decisions", "--json").out)
    assert (described["decisions"][0]["trial_id"], described["failure"]) == (9, reason)


def test_checkpoints_are_listed_by_uuid_or_best_first(master: FakeMaster, det: Det) -> None:
    assert [row["uuid"] for row in json.loads(det("e", "lc", "7", "--json").out)] == ["u10", "u20", "u30"]
    assert [row["uuid"] for row in json.loads(det("e", "lc", "7", "--best", "2", "--json").out)] == ["u20", "u10"]
    assert json.loads(det("e", "lc", "7", "--json").out)[0]["size"] == 5


@pytest.mark.parametrize("verb", ["pause", "activate", "cancel", "kill", "archive", "unarchive"])
def test_a_lifecycle_command_acts_on_every_id_and_returns_the_first_failure(
    fake: FakeMaster, det: Det, verb: str
) -> None:
    fake.answers[f"POST /api/v1/experiments/1/{verb}"] = {}
    fake.answers[f"POST /api/v1/experiments/2/{verb}"] = error(400, 9, "experiment 2 has ended")
    fake.answers[f"POST /api/v1/experiments/3/{verb}"] = {}
    outcome = det("e", verb, "1", "2", "3")
    assert outcome.code == 7
    assert "det: experiment 2 has ended\n" in outcome.err
    assert len(fake.requests_to(f"POST /api/v1/experiments/3/{verb}")) == 1


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error(404, 5, "experiment 7 not found"), 3),
        (error(401, 16, "token expired"), 5),
        (error(403, 7, "not yours"), 5),
        (error(409, 6, "moved on"), 7),
        (error(501, 12, "later"), 1),
        (error(503, 14, "restarting"), 6),
        (error(500, 13, "broken"), 1),
        ((200, {"strange": 1}), 1),
    ],
)
def test_each_failure_prints_one_line_and_exits_with_its_code(
    fake: FakeMaster, det: Det, answer: Any, code: int
) -> None:
    fake.answers["GET /api/v1/experiments/7"] = answer
    outcome = det("e", "wait", "7")
    assert outcome.code == code
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err


def test_det_debug_raises_the_original_exception(fake: FakeMaster, det: Det, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_DEBUG", "1")
    fake.answers["GET /api/v1/experiments/7"] = {"strange": 1}
    with pytest.raises(KeyError):
        det("e", "wait", "7")


@pytest.mark.parametrize(("state", "code"), [("COMPLETED", 0), ("CANCELED", 1), ("ERROR", 1)])
def test_wait_exits_by_the_final_state_of_the_experiment(fake: FakeMaster, det: Det, state: str, code: int) -> None:
    states = chain(["STATE_RUNNING", "STATE_PAUSED"], repeat(f"STATE_{state}"))
    fake.answers["GET /api/v1/experiments/7"] = lambda _: {"experiment": {**EXPERIMENT, "state": next(states)}}
    assert det("e", "wait", "7", "--polling-interval", "0").code == code


def test_wait_exits_with_8_after_its_timeout(master: FakeMaster, det: Det) -> None:
    assert det("e", "wait", "7", "--timeout", "0").code == 8


@pytest.mark.parametrize("flag", ["--timeout", "--polling-interval"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e300", "soon"])
def test_wait_refuses_a_time_that_it_cannot_wait(fake: FakeMaster, det: Det, flag: str, value: str) -> None:
    refused = det("e", "wait", "7", f"{flag}={value}")
    assert (refused.code, fake.requests) == (2, [])
    assert f"argument {flag}: invalid seconds value: '{value}'" in refused.err


def test_delete_needs_yes_without_a_terminal(fake: FakeMaster, det: Det) -> None:
    fake.answers["DELETE /api/v1/experiments/7"] = {"completed": True}
    refused = det("e", "delete", "7")
    assert (refused.code, fake.requests) == (1, [])
    assert "--yes" in refused.err
    assert det("e", "delete", "7", "--yes").code == 0


def test_label_add_and_remove_print_the_remaining_labels(fake: FakeMaster, det: Det) -> None:
    fake.answers["PUT /api/v1/experiments/7/labels/a%20b"] = {"labels": ["a b"]}
    fake.answers["DELETE /api/v1/experiments/7/labels/x"] = {"labels": []}
    assert "a b" in det("e", "label", "add", "7", "a b").err
    assert "none" in det("e", "label", "rm", "7", "x").err


def test_download_model_def_writes_the_archive_under_the_experiments_name(
    master: FakeMaster, det: Det, tmp_path: Path
) -> None:
    master.answers["GET /api/v1/experiments/7/model_def"] = {"b64Tgz": base64.b64encode(b"tgz").decode()}
    outcome = det("e", "download-model-def", "7", "-o", str(tmp_path / "out"))
    assert Path(outcome.out.strip()) == tmp_path / "out" / "exp7_dig_its_é_model_def.tar.gz"
    assert Path(outcome.out.strip()).read_bytes() == b"tgz"


def test_logs_are_filtered_and_ordered_by_their_flags(master: FakeMaster, det: Det) -> None:
    lines = [{"message": "b\n", "trialId": 9, "rankId": 0}, {"message": "a\n", "trialId": 9, "rankId": None}]
    master.answers["GET /api/v1/trials/9/logs"] = Stream(lines)
    assert det("e", "logs", "7").out == "b\na\n"
    assert det("t", "logs", "9", "--tail", "2", "--level", "ERROR", "--rank-id", "-1").out == "a\nb\n"
    query = master.requests_to("GET /api/v1/trials/9/logs")[-1].query
    assert query["limit"] == ["2"]
    assert query["orderBy"] == ["ORDER_BY_DESC"]
    assert query["levels"] == ["LOG_LEVEL_ERROR", "LOG_LEVEL_CRITICAL"]
    assert query["rankIds"] == ["-1"]
    assert json.loads(det("t", "logs", "9", "--json").out.splitlines()[0])["trial_id"] == 9
    assert det("t", "logs", "9", "--tail", "0").out == ""


def test_a_trial_is_described_killed_and_its_checkpoints_are_downloaded(
    master: FakeMaster, det: Det, tmp_path: Path
) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("state.pt")
        info.size = 2
        tar.addfile(info, io.BytesIO(b"ok"))
    master.answers["GET /checkpoints/u20"] = master.answers["GET /checkpoints/u30"] = buffer.getvalue()
    master.answers["POST /api/v1/trials/9/kill"] = {}
    failed = {
        "runId": 1,
        "state": "TERMINATED",
        "startedAt": "2026-01-01T00:00:00Z",
        "endedAt": "2026-01-01T00:00:09Z",
        "reason": "errored",
        "code": 137,
        "message": "rank 3 on node-b was killed by signal 9 (SIGKILL), out of memory:\nlast words",
        "containers": [{"agentId": "a", "slots": [0, 1]}, {"agentId": "b", "slots": [0, 1]}],
    }
    master.answers["GET /detent/trials/9/attempts"] = {"attempts": [failed]}
    master.answers["GET /detent/trials/9/decisions"] = {"decisions": []}
    output = det("t", "describe", "9").out
    assert "lossVal" not in output
    assert "lossVal" in det("t", "describe", "9", "--metrics").out
    assert "a (2), b (2)" in output
    assert "failed: rank 3 on node-b was killed by signal 9 (SIGKILL), out of memory\n" in output
    assert "last words" in output
    described = json.loads(det("t", "describe", "9", "--json").out)
    assert described["workloads"]
    assert described["attempts"][0]["code"] == 137
    assert det("t", "kill", "9").code == 0
    for flags, uuid in (((), "u20"), (("--latest",), "u30")):
        target = tmp_path / uuid
        assert det("t", "download", "9", "-o", str(target), *flags).code == 0
        assert (target / "state.pt").read_bytes() == b"ok"


def test_agents_and_slots_are_listed_and_agents_are_enabled_and_disabled(fake: FakeMaster, det: Det) -> None:
    slot = {"id": "0", "enabled": True, "draining": False, "device": {"type": "TYPE_CPU", "brand": "x"}}
    lost = {"status": "unhealthy", "reason": "the driver lost it"}
    slots = {
        "/agents/box/slots/10": {**slot, "id": "10", "container": None, **lost},
        "/agents/box/slots/2": {**slot, "id": "2", "container": None},
        "/agents/box/slots/0": {**slot, "container": {"id": "c1"}},
    }
    agent = {
        "id": "box",
        "version": "1",
        "enabled": True,
        "draining": False,
        "slots": slots,
        "resourcePools": ["default"],
    }
    held = {"name": "Trial 9", "resources": [{"containerId": "c1"}]}
    fake.answers.update(
        {
            "GET /api/v1/agents": {"agents": [agent]},
            "GET /api/v1/tasks": {"allocationIdToSummary": {"a": held}},
            "POST /api/v1/agents/box/disable": {},
            "POST /api/v1/agents/box/enable": {},
        }
    )
    assert json.loads(det("agent", "list", "--json").out)[0]["slots"] == 3
    rows = json.loads(det("slot", "list", "--json").out)
    assert [(row["slot_id"], row["container_id"], row["task"], row["reason"]) for row in rows] == [
        ("0", "c1", "Trial 9", ""),
        ("2", "FREE", "", ""),
        ("10", "FREE", "", "the driver lost it"),
    ]
    assert det("a", "disable", "box", "--drain").code == 0
    assert fake.requests_to("POST /api/v1/agents/box/disable")[0].json == {"drain": True}
    assert det("a", "enable", "--all").code == 0
    assert det("a", "enable").code == 1


def test_a_silent_trial_is_noted_below_a_list_and_a_description(master: FakeMaster, det: Det) -> None:
    running = {**EXPERIMENT, "id": 7, "notes": "my own", "healthNote": "trial 9 has reported nothing for 45 min"}
    trial = {"id": 9, "state": "STATE_RUNNING", "hparams": {}, "restarts": 0}
    note = "it has reported nothing for 45 min"
    master.answers["GET /api/v1/experiments"] = lambda request: page(request, "experiments", [running])
    master.answers["GET /api/v1/experiments/7"] = {"experiment": running}
    master.answers["GET /api/v1/experiments/7/trials"] = lambda request: page(request, "trials", [trial])
    master.answers["GET /detent/experiments/7/status"] = {
        "waitedSeconds": 0,
        "ranSeconds": 0,
        "failure": None,
        "trials": [{"trialId": 9, "note": note}],
    }
    assert "experiment 7: trial 9 has reported nothing for 45 min\n" in det("e", "list").err
    assert f"\ntrial 9: {note}\n" in det("e", "describe", "7").out
    (described,) = json.loads(det("e", "describe", "7", "--json").out)
    assert (described["notes"], described["trials"][0]["note"]) == ("my own", note)


def test_first_error_prints_the_traceback_of_the_first_error(master: FakeMaster, det: Det) -> None:
    texts = ["Traceback (most recent call last):", '  File "x.py", line 1', "step 7", "ValueError: x", "more"]
    ranks = [2, 2, 1, 2, 2]
    lines = [
        {"id": line_id, "text": text, "rank": rank, "allocationId": "t.2", "containerId": "c", "source": "task"}
        for line_id, (text, rank) in enumerate(zip(texts, ranks, strict=True), start=40)
    ]
    master.answers["GET /detent/trials/9/logs/first-error"] = {"line": lines[0]}
    master.answers["GET /detent/trials/9/logs"] = {"lines": lines}
    expected = 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: x\n'
    assert det("t", "logs", "9", "--first-error").out == expected
    assert master.requests_to("GET /detent/trials/9/logs")[-1].query["after"] == ["39"]
    assert [json.loads(line)["id"] for line in det("t", "logs", "9", "--first-error", "--json").out.splitlines()] == [
        40,
        41,
        43,
    ]
    master.answers["GET /detent/trials/9/logs/first-error"] = {"line": None}
    assert det("t", "logs", "9", "--first-error").out == "trial 9 has logged no error\n"


def test_master_commands_print_info_configuration_and_logs(fake: FakeMaster, det: Det) -> None:
    fake.answers.update(
        {
            "GET /api/v1/master": {"version": "0.38.1", "clusterId": "c"},
            "GET /api/v1/master/config": {"config": {"a": 1}},
            "GET /api/v1/master/logs": Stream([{"logEntry": {"id": 1, "message": "m", "level": "LOG_LEVEL_INFO"}}]),
        }
    )
    assert yaml.safe_load(det("master", "info").out)["cluster_id"] == "c"
    assert json.loads(det("master", "config", "--json").out) == {"a": 1}
    assert "[INFO]: m" in det("master", "logs").out
    assert json.loads(det("version", "--json").out)["master"]["version"] == "0.38.1"


CAUSE = "rank 3 on node-2: RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x128 and 64x10) (exit code 1)"


def test_failure_texts_fit_into_80_columns(master: FakeMaster, det: Det) -> None:
    """A list has one line for each failure below the table. A description wraps the failure of the last attempt."""
    failed = {**EXPERIMENT, "id": 7, "state": "STATE_ERROR", "failure": CAUSE, "config": {"max_restarts": 5}}
    trial = {"id": 9, "state": "STATE_ERROR", "hparams": {}, "restarts": 5, "failure": CAUSE}
    master.answers["GET /api/v1/experiments"] = lambda request: page(request, "experiments", [failed])
    master.answers["GET /api/v1/experiments/7"] = {"experiment": failed}
    master.answers["GET /api/v1/experiments/7/trials"] = lambda request: page(request, "trials", [trial])
    status = {"waitedSeconds": 0, "ranSeconds": 0, "failure": {"text": CAUSE}}
    master.answers["GET /detent/experiments/7/status"] = status
    listed = det("e", "list")
    line = next(line for line in listed.err.splitlines() if "failed" in line)
    assert line == f"experiment 7 failed: {CAUSE}"[:79] + "…"
    described = det("e", "describe", "7").out
    lines = described[described.index("trial 9 failed") :].splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert " ".join(" ".join(lines).split()) == f"trial 9 failed on attempt 6 of 6: {CAUSE}"
    assert json.loads(det("e", "describe", "7", "--json").out)[0]["failure"] == CAUSE
