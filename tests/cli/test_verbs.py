"""Verbs that change settings, users and checkpoints, call the API, or are not offered."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from determined_cli import command_table
from determined_cli.main import main
from determined_cli.up import data_folder

from .conftest import Det, FakeMaster, Request, error

UUID = "3f2b8c1e-0000-4000-8000-000000000001"
SEARCHER = {"metric": "accuracy", "smaller_is_better": False}
EXPERIMENT = {
    "id": 7,
    "name": "digits",
    "state": "STATE_COMPLETED",
    "config": {"searcher": SEARCHER, "max_restarts": 5},
    "originalConfig": "name: digits  # mine\n",
}


def checkpoint(uuid: str, steps: int, metric: float | None, **metrics: float) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "state": "STATE_COMPLETED",
        "reportTime": f"2026-01-01T00:00:{steps:02}Z",
        "metadata": {"steps_completed": steps, "note": "x"},
        "resources": {"weights": "5", "sub/": "0"},
        "training": {
            "trialId": 9,
            "experimentId": 7,
            "searcherMetric": metric,
            "validationMetrics": {"avgMetrics": metrics},
        },
    }


def archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("weights")
        info.size = 2
        tar.addfile(info, io.BytesIO(b"ok"))
    return buffer.getvalue()


def serve(fake: FakeMaster, *checkpoints: dict[str, Any]) -> None:
    def page(_: Request) -> Any:
        return {"checkpoints": list(checkpoints), "pagination": {"total": len(checkpoints)}}

    fake.answers.update(
        {
            "GET /api/v1/experiments/7": {"experiment": EXPERIMENT},
            "GET /api/v1/experiments/7/checkpoints": page,
            "GET /api/v1/trials/9/checkpoints": page,
            "GET /api/v1/trials/9": {"trial": {"id": 9, "experimentId": 7, "state": "STATE_COMPLETED"}},
            **{f"GET /checkpoints/{stored['uuid']}": archive() for stored in checkpoints},
        }
    )


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("name", "7", "new name"), {"name": "new name"}),
        (("description", "7", ""), {"description": ""}),
        (("priority", "7", "5"), {"resources": {"priority": 5}}),
        (("max-slots", "7", "4"), {"resources": {"maxSlots": 4}}),
        (("max-slots", "7", "none"), {"resources": {"maxSlots": None}}),
        (("weight", "7", "2.5"), {"resources": {"weight": 2.5}}),
        (
            ("gc-policy", "7", "--save-experiment-best", "3"),
            {"checkpointStorage": {"saveExperimentBest": 3, "saveTrialBest": 1, "saveTrialLatest": 1}},
        ),
    ],
)
def test_set_sends_only_the_changed_setting(
    fake: FakeMaster, det: Det, words: tuple[str, ...], body: dict[str, Any]
) -> None:
    fake.answers["PATCH /api/v1/experiments/7"] = {"experiment": EXPERIMENT}
    fake.answers["GET /experiments/7/preview_gc"] = {"checkpoints": [], "metric_name": "loss"}
    assert det("e", "set", *words).code == 0
    assert fake.requests_to("PATCH /api/v1/experiments/7")[0].json == body


def test_a_gc_policy_that_deletes_checkpoints_needs_a_confirmation(fake: FakeMaster, det: Det) -> None:
    to_remove = {"TrialID": 9, "StepsCompleted": 4, "UUID": "u-1", "ValidationMetrics": {"loss": 0.25}}
    fake.answers["GET /experiments/7/preview_gc"] = {"checkpoints": [to_remove], "metric_name": "loss"}
    fake.answers["PATCH /api/v1/experiments/7"] = {"experiment": EXPERIMENT}
    refused = det("e", "set", "gc-policy", "7", "--save-trial-latest", "0")
    assert refused.code == 1
    assert (
        "deleting 1 checkpoint of experiment 7 cannot be undone; without a terminal, confirm with --yes" in refused.err
    )
    assert fake.requests_to("PATCH /api/v1/experiments/7") == []
    for value in ("Trial ID", "u-1", "0.25"):
        assert value in refused.out
    assert det("e", "set", "gc-policy", "7", "--save-trial-latest", "0", "-y").code == 0
    (preview, _again) = fake.requests_to("GET /experiments/7/preview_gc")
    assert preview.query == {"save_experiment_best": ["0"], "save_trial_best": ["1"], "save_trial_latest": ["0"]}
    assert fake.requests_to("PATCH /api/v1/experiments/7")[0].json["checkpointStorage"]["saveTrialLatest"] == 0


@pytest.mark.parametrize(
    ("verb", "field"), [("max-trials", "maxTrials"), ("max-concurrent-trials", "maxConcurrentTrials")]
)
def test_set_max_trials_and_max_concurrent_trials_send_the_limit(
    fake: FakeMaster, det: Det, verb: str, field: str
) -> None:
    fake.answers["PATCH /api/v1/experiments/7"] = {"experiment": EXPERIMENT}
    assert det("e", "set", verb, "7", "12").code == 0
    assert fake.requests_to("PATCH /api/v1/experiments/7")[0].json == {"searcher": {field: 12}}


def test_set_with_a_refused_value_or_an_invalid_number_is_an_error(fake: FakeMaster, det: Det) -> None:
    fake.answers["PATCH /api/v1/experiments/7"] = error(400, 3, "a priority must be between 1 and 99")
    outcome = det("e", "set", "priority", "7", "100")
    assert (outcome.code, outcome.err) == (1, "det: a priority must be between 1 and 99\n")
    assert det("e", "set", "max-slots", "7", "-1").code == 2


def test_config_prints_the_effective_or_the_submitted_configuration(fake: FakeMaster, det: Det) -> None:
    serve(fake)
    assert json.loads(det("e", "config", "7", "--json").out) == EXPERIMENT["config"]
    assert "max_restarts: 5\n" in det("e", "config", "7").out
    assert det("e", "config", "7", "--original").out == "name: digits  # mine\n"


def test_experiment_download_downloads_the_best_or_the_latest_checkpoints(
    fake: FakeMaster, det: Det, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    serve(fake, checkpoint("a", 1, 0.5), checkpoint("b", 2, 0.9), checkpoint("c", 3, None))
    assert det("e", "download", "7").out == "checkpoints/b\n"
    assert (home / "checkpoints" / "b" / "weights").read_bytes() == b"ok"
    assert det("e", "download", "7", "--best", "2", "-o", "out").out == "out/b\nout/a\n"
    assert det("e", "download", "7", "--latest").out == "checkpoints/c\n"


@pytest.mark.parametrize("words", [("e", "download", "7"), ("t", "download", "9", "--best")], ids=" ".join)
def test_a_download_of_the_best_checkpoint_without_metric_values_is_an_error(
    fake: FakeMaster, det: Det, words: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    serve(fake, checkpoint("a", 1, None, acc=0.5), checkpoint("b", 2, None, acc=0.6))
    outcome = det(*words)
    assert (outcome.code, outcome.out) == (3, "")
    assert "none of its 2 checkpoints has a value of the searcher's metric accuracy" in outcome.err
    assert "validations reported acc" in outcome.err
    assert not (home / "checkpoints").exists()


def test_a_trial_download_without_metric_values_downloads_the_newest_with_a_note(
    fake: FakeMaster, det: Det, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    serve(fake, checkpoint("a", 1, None), checkpoint("b", 2, None))
    outcome = det("t", "download", "9")
    assert (outcome.code, outcome.out) == (0, "checkpoints/b\n")
    assert "downloading the newest one" in outcome.err


def test_checkpoints_are_listed_described_downloaded_and_deleted(
    fake: FakeMaster, det: Det, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    serve(fake, checkpoint(UUID, 2, 0.9))
    fake.answers[f"GET /api/v1/checkpoints/{UUID}"] = {"checkpoint": checkpoint(UUID, 2, 0.9)}
    fake.answers["DELETE /api/v1/checkpoints"] = {}
    assert json.loads(det("checkpoint", "list", "7", "--json").out)[0]["uuid"] == UUID
    described = det("checkpoint", "describe", UUID).out
    assert "weights" in described
    assert "note" in described
    assert json.loads(det("checkpoint", "describe", UUID, "--json").out)["training"]["experiment_id"] == 7
    assert det("checkpoint", "download", UUID).out == f"checkpoints/{UUID}\n"
    refused = det("checkpoint", "rm", UUID)
    assert refused.code == 1
    assert "--yes" in refused.err
    fake.answers[f"GET /api/v1/checkpoints/{UUID}"] = {"checkpoint": {"uuid": UUID, "state": "STATE_DELETED"}}
    done = det("checkpoint", "rm", UUID, "-y")
    assert (done.code, done.err) == (0, f"deleted checkpoint {UUID}\n")
    assert [request.json for request in fake.requests_to("DELETE /api/v1/checkpoints")] == [{"checkpointUuids": [UUID]}]


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"state": "STATE_DELETED", "displayState": "STATE_DELETED"}, 0, f"deleted checkpoint {UUID}\n"),
        (
            {"state": "STATE_DELETED", "displayState": "STATE_DELETING"},
            0,
            f"checkpoint {UUID} is being deleted by a task, as the master does not reach its storage; "
            f"`det checkpoint describe {UUID}` shows when it is done\n",
        ),
        (
            {"state": "STATE_DELETED", "displayState": "STATE_DELETING", "removalTaskId": "t1"},
            0,
            f"checkpoint {UUID} is being deleted by a task, as the master does not reach its storage; "
            f"`det checkpoint describe {UUID}` shows when it is done, and `det task logs t1` what the task does\n",
        ),
        (
            {"state": "STATE_PARTIALLY_DELETED", "displayState": "STATE_DELETE_FAILED", "deleteError": "it is held"},
            1,
            f"checkpoint {UUID} is not deleted: it is held; delete it again to retry\n",
        ),
    ],
)
def test_checkpoint_rm_prints_the_outcome_of_the_deletion(
    fake: FakeMaster, det: Det, fields: dict[str, str], code: int, message: str
) -> None:
    fake.answers["DELETE /api/v1/checkpoints"] = {}
    fake.answers[f"GET /api/v1/checkpoints/{UUID}"] = {"checkpoint": {"uuid": UUID, **fields}}
    done = det("checkpoint", "rm", UUID, "-y")
    assert (done.code, done.err) == (code, message)


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("edit", "bob", "--display-name", "Bob B"), {"displayName": "Bob B"}),
        (("edit", "bob", "--admin", "true", "--deactivate"), {"admin": True, "active": False}),
        (("rename", "bob", "rob"), {"username": "rob"}),
        (("activate", "bob"), {"active": True}),
        (("deactivate", "bob"), {"active": False}),
    ],
)
def test_user_verbs_send_the_changed_fields(
    fake: FakeMaster, det: Det, words: tuple[str, ...], body: dict[str, Any]
) -> None:
    fake.answers["GET /api/v1/users/bob/by-username"] = {"user": {"id": 5, "username": "bob"}}
    fake.answers["PATCH /api/v1/users/5"] = {"user": {"id": 5}}
    assert det("user", *words).code == 0
    assert fake.requests_to("PATCH /api/v1/users/5")[0].json == body


def test_user_edit_without_a_change_is_an_error(fake: FakeMaster, det: Det) -> None:
    assert det("user", "edit", "bob").code == 1
    assert fake.requests == []


def test_dev_curl_sends_the_stored_sign_in_but_not_on_the_command_line(
    fake: FakeMaster, det: Det, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answers["GET /api/v1/me"] = {"user": {"username": "ann"}}
    assert det("dev", "curl", "/api/v1/me", "-H", "X-Mine: 1").code == 0
    assert fake.requests_to("GET /api/v1/me")[0].authorization == "Bearer T"
    program = home / "bin" / "curl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" > {home}/arguments\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert det("dev", "curl", "/api/v1/me", "-X", "POST").code == 0
    arguments = (home / "arguments").read_text()
    assert f"{fake.url}/api/v1/me -X POST" in arguments
    assert "Bearer" not in arguments
    assert det("dev", "curl", "api/v1/me").code == 1


@pytest.mark.parametrize(
    ("noun", "verb"), [(noun, verb) for noun, verbs in command_table.NOT_OFFERED_VERBS.items() for verb in verbs]
)
def test_verbs_of_determined_that_are_missing_name_the_substitute(
    noun: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*noun.split(), verb, "1"]) == 2
    message = capsys.readouterr().err
    assert f'"{noun} {verb}" is not supported yet; {command_table.NOT_OFFERED_VERBS[noun][verb]}' in message
    assert "coming-from-determined" in message


def test_a_refused_connection_names_the_command_that_starts_a_master(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "http://127.0.0.1:1", "e", "list"]) == 6
    message = capsys.readouterr().err
    assert "connection refused; `det up` starts a master on this machine" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize("noun", ["ssh", "secret", "artifact", "logs"])
def test_a_noun_of_determined_that_is_missing_names_the_substitute(det: Det, noun: str) -> None:
    outcome = det(noun)
    assert outcome.code != 0
    assert command_table.NOT_OFFERED[noun] in outcome.err


def test_user_create_of_a_user_who_is_no_admin_is_refused_before_the_password_prompt(
    fake: FakeMaster, det: Det
) -> None:
    fake.answers["GET /api/v1/me"] = {"user": {"username": "ann", "id": 1, "admin": False}}
    outcome = det("user", "create", "kim")
    assert outcome.code == 5
    assert "only admins create users, and ann is none" in outcome.err
    assert fake.requests_to("POST /api/v1/users") == []


def test_an_unreachable_master_that_det_up_supervises_is_reported_as_restarting(
    det: Det, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "detent").mkdir()
    words = ("-m", "http://127.0.0.1:9", "e", "list")
    assert "`det up` starts a master" in det(*words).err
    with data_folder.held(tmp_path / "detent"):
        outcome = det(*words)
    assert "its master is starting again" in outcome.err
    assert "starts a master" not in outcome.err
