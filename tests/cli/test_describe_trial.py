"""``det trial describe``: the summary, every report with ``--metrics``, and lines that fit the terminal."""

import io
import json
from typing import Any

import pytest

from .conftest import Det, FakeMaster, Request

SUMMARY = {
    "avg_metrics": {"loss": {"type": "number", "last": 0.25, "min": 0.125, "max": 2.5, "count": 30}},
    "validation_metrics": {
        "accuracy": {"type": "number", "last": 0.875, "min": 0.1, "max": 0.9, "count": 3},
        "top5": {"type": "number", "last": 0.5, "min": 0.25, "max": 0.75, "count": 3},
        "wer": {"type": "number", "last": 0.5, "min": 0.25, "max": 0.75, "count": 3},
    },
}
CONFIG = {"searcher": {"metric": "accuracy", "smaller_is_better": False}, "metric_goals": {"wer": "minimize"}}
TRIAL = {
    "id": 9,
    "experimentId": 7,
    "state": "STATE_COMPLETED",
    "hparams": {f"parameter_{number}": 0.5 for number in range(20)},
    "restarts": 1,
    "totalBatchesProcessed": 30,
    "searcherMetricValue": 0.9,
    "checkpointCount": 3,
    "startTime": "2026-01-01T09:00:00Z",
    "endTime": None,
    "summaryMetrics": SUMMARY,
}
ATTEMPT = {
    "runId": 1,
    "state": "TERMINATED",
    "startedAt": "2026-01-01T09:00:00Z",
    "endedAt": "2026-01-01T09:01:00Z",
    "reason": "errored",
    "code": 1,
    "message": "rank 0 failed:\n" + "x " * 100,
    "failure": "rank 0 on node-a: ValueError: " + "bad " * 40,
    "containers": [{"agentId": "a", "slots": [0, 1]}],
    "policies": [
        {
            "policy": 'log policy "CUDA OOM"',
            "pattern": "CUDA out of memory",
            "action": "cancel_retries",
            "sequel": "the trial is not restarted if it fails",
            "line": "RuntimeError: CUDA out of memory",
            "time": "2026-01-01T09:00:50Z",
        }
    ],
}


REASON = "stopped at rung 1: 7th of 12, 3 kept (loss 0.5 after 10 batches)"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def master(fake: FakeMaster) -> FakeMaster:
    report = {"training": {"totalBatches": 10, "metrics": {"avgMetrics": {"reported": 1.5}}}}

    def page(_: Request) -> Any:
        return {"workloads": [report], "pagination": {"total": 1}}

    fake.answers.update(
        {
            "GET /api/v1/trials/9": {"trial": TRIAL},
            "GET /api/v1/experiments/7": {"experiment": {"config": CONFIG}},
            "GET /detent/trials/9/attempts": {"attempts": [ATTEMPT]},
            "GET /detent/trials/9/decisions": {"decisions": [{"time": "2026-01-01T09:00:30Z", "reason": REASON}]},
            "GET /api/v1/trials/9/workloads": page,
            "GET /detent/trials/9/logs": {"lines": []},
        }
    )
    return fake


def test_describe_prints_state_metrics_and_attempts_but_no_reports(master: FakeMaster, det: Det) -> None:
    output = det("t", "describe", "9").out
    fields = dict(line.split(None, 1) for line in output.splitlines()[:6] if not line.startswith(("Trial ID", "# of")))
    assert fields["State"] == "COMPLETED"
    assert "Searcher Metric  0.9\n" in output
    rows = [[cell.strip() for cell in line.split("|")] for line in output.splitlines() if line.count("|") == 6]
    assert rows[1:] == [
        ["validation", "accuracy", "0.875", "0.1", "0.9", "0.9", "3"],
        ["validation", "top5", "0.5", "0.25", "0.75", "", "3"],
        ["validation", "wer", "0.5", "0.25", "0.75", "0.25", "3"],
        ["training", "loss", "0.25", "0.125", "2.5", "", "30"],
    ]
    assert "ValueError" in output
    assert [[cell.strip() for cell in line.split("|")][1:] for line in output.splitlines() if "CUDA OOM" in line] == [
        ['"CUDA OOM"', "RuntimeError: CUDA out of memory", "the trial is not restarted if it fails"]
    ]
    assert REASON in output
    assert "reported" not in output
    assert master.requests_to("GET /api/v1/trials/9/workloads") == []
    assert "reported" in det("t", "describe", "9", "--metrics").out


def test_describe_fits_the_terminal_and_prints_local_and_relative_times(
    master: FakeMaster, det: Det, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen()
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout", screen)
    assert det("t", "describe", "9", "--metrics").code == 0
    lines = screen.getvalue().splitlines()
    assert [line for line in lines if len(line) > 60] == []
    assert next(line for line in lines if line.startswith("Started")).endswith("ago)")


@pytest.mark.parametrize(
    "line",
    [
        "wandb: \N{ROCKET} View run at https://wandb.ai/ann/digits/runs/trial-9-ab",
        "wandb: \N{ROCKET} View run \x1b[33mlively-sun-1\x1b[0m at: \x1b[34m\x1b[4mhttps://wandb.ai/ann/digits/runs/trial-9-ab\x1b[0m",
    ],
)
def test_describe_shows_the_address_of_the_wandb_run_from_the_log(master: FakeMaster, det: Det, line: str) -> None:
    others = ["View runtime at 5", "wandb: View project at https://wandb.ai/ann/digits"]
    master.answers["GET /detent/trials/9/logs"] = {"lines": [{"text": text} for text in (*others, line)]}
    assert "W&B run: https://wandb.ai/ann/digits/runs/trial-9-ab\n" in det("t", "describe", "9").out
    assert json.loads(det("t", "describe", "9", "--json").out)["wandb_run"].endswith("runs/trial-9-ab")
    (request, _) = master.requests_to("GET /detent/trials/9/logs")
    assert request.query["search"] == ["View run"]


def test_describe_as_json_has_every_report_and_exact_times(master: FakeMaster, det: Det) -> None:
    described = json.loads(det("t", "describe", "9", "--json").out)
    assert described["start_time"] == "2026-01-01T09:00:00Z"
    assert described["workloads"][0]["training"]["metrics"]["avg_metrics"] == {"reported": 1.5}
    assert described["summary_metrics"] == SUMMARY
    assert described["decisions"][0]["reason"] == REASON


def test_reports_of_the_users_own_groups_are_listed_with_the_workloads(master: FakeMaster, det: Det) -> None:
    master.answers["GET /api/v1/trials/9"] = {"trial": {**TRIAL, "summaryMetrics": {**SUMMARY, "speed": {}}}}

    def page(request: Request) -> Any:
        name = "records" if request.query.get("group") == ["speed"] else "loss"
        work = {"totalBatches": 10, "endTime": None, "metrics": {"avgMetrics": {name: 1.5}}}
        kinds = ["checkpoint", "training"] if name == "records" else ["validation", "training"]
        return {"workloads": [{kind: work} for kind in kinds], "pagination": {"total": len(kinds)}}

    master.answers["GET /api/v1/trials/9/workloads"] = page
    lines = det("t", "describe", "9", "--metrics").out.splitlines()
    (own_line,) = [line for line in lines if '"records"' in line]
    assert [cell.strip() for cell in own_line.split("|")] == ["speed", "10", "", '{"records": 1.5}']
    training, validation = (line for line in lines if '"loss"' in line)
    assert training.index('{"loss"') < validation.index('{"loss"')
    (own_report,) = json.loads(det("t", "describe", "9", "--json").out)["other_reports"]
    assert (own_report["group"], own_report["metrics"]["avg_metrics"]) == ("speed", {"records": 1.5})
