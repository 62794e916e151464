"""The SDK against a master with prepared answers: sign-in, waiting, errors, and refused downloads."""

import contextlib
import io
import itertools
import json
import math
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_master import FakeMaster, serving
from tests.support.tls_server import tls_server, written_pair

from determined.client import auth_store
from determined.errors import (
    ApiError,
    ConfigError,
    ContextError,
    MasterUnreachable,
    NotFound,
    NotImplementedYet,
    StorageError,
    Unauthenticated,
    UntrustedCertificate,
)
from determined.experimental import client

EXPERIMENT = {"id": 3, "name": "digits", "state": "STATE_RUNNING", "labels": ["b", "a"], "archived": False}
CHECKPOINT = {
    "uuid": "0b2f8f9c-3d0e-4a2e-9d7c-6f0f6a3c1a11",
    "state": "STATE_COMPLETED",
    "metadata": {"steps_completed": 4},
}


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMaster]:
    for name in ("DET_MASTER", "DET_USER", "DET_PASS", "DET_USER_TOKEN", "DET_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with serving() as server:
        server.on("POST", "/auth/login", (200, {"token": "new"}))
        yield server


@pytest.fixture
def cluster(master: FakeMaster) -> Iterator[client.Determined]:
    with client.Determined(master.url, "ann", "secret") as created:
        yield created


def tokens(master: FakeMaster) -> list[str | None]:
    return [call[4].get("Authorization") for call in master.calls if not call[1].endswith("/auth/login")]


def test_a_password_is_sent_hashed_and_its_token_is_used(master: FakeMaster) -> None:
    master.on("GET", "/api/v1/experiments/3", (200, {"experiment": EXPERIMENT}))
    client.login(master.url, "ann", "secret")
    assert client.get_experiment(3).labels == ["a", "b"]
    (body,) = master.bodies("/auth/login")
    assert body["isHashed"] is True
    assert "secret" not in json.dumps(body)
    assert tokens(master) == ["Bearer new"]
    client.logout()
    assert master.bodies("/auth/logout") == [{}]


def test_the_stored_sign_in_of_the_command_line_is_used(master: FakeMaster) -> None:
    auth_store.remember(master.url, "ann", "stored")
    auth_store.set_default_master(master.url)
    master.on("GET", "/api/v1/me", (200, {"user": {"username": "ann", "admin": False, "active": True, "id": 4}}))
    with client.Determined() as stored:
        assert stored.whoami().username == "ann"
    assert tokens(master) == ["Bearer stored"]


def test_the_stored_sign_in_of_the_named_user_is_used(master: FakeMaster) -> None:
    auth_store.remember(master.url, "bob", "of bob")
    auth_store.remember(master.url, "ann", "of ann")
    master.on("GET", "/api/v1/experiments/3", (200, {"experiment": EXPERIMENT}))
    with client.Determined(master.url, user="bob") as cluster:
        cluster.get_experiment(3)
    with client.Determined(master.url) as cluster:
        cluster.get_experiment(3)
    assert tokens(master) == ["Bearer of bob", "Bearer of ann"]


def test_a_password_without_a_user_name_does_not_replace_the_stored_sign_in(
    master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth_store.remember(master.url, "ann", "stored")
    monkeypatch.setenv("DET_PASS", "secret")
    master.on("GET", "/api/v1/experiments/3", (200, {"experiment": EXPERIMENT}))
    with client.Determined(master.url) as cluster:
        cluster.get_experiment(3)
    assert tokens(master) == ["Bearer stored"]


def test_a_task_signs_in_with_the_token_of_its_owner(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_MASTER", master.url)
    monkeypatch.setenv("DET_USER", "bob")
    monkeypatch.setenv("DET_USER_TOKEN", "task")
    master.on("GET", "/api/v1/experiments/3", (200, {"experiment": EXPERIMENT}))
    with client.Determined() as cluster:
        cluster.get_experiment(3)
    assert tokens(master) == ["Bearer task"]


def test_the_error_without_any_sign_in_names_the_login_command(master: FakeMaster) -> None:
    master.on("POST", "/auth/login", (401, {"error": {"code": 16, "error": "wrong"}}))
    with pytest.raises(Unauthenticated, match="det user login USER"):
        client.Determined(master.url)


def test_cert_path_cert_name_and_noverify_decide_the_trusted_certificate(master: FakeMaster, tmp_path: Path) -> None:
    pair = written_pair(tmp_path, "gpu-1.lab")
    file = str(pair.certificate)
    with tls_server(pair) as (url, _):
        for options in ({}, {"cert_path": file}):
            with pytest.raises(UntrustedCertificate):
                client.Determined(url, "ann", "secret", **options)
        client.login(url, "ann", "secret", cert_path=file, cert_name="gpu-1.lab")
        client.Determined(url, "ann", "secret", noverify=True).close()


def test_wait_continues_while_the_master_is_unavailable(
    master: FakeMaster, cluster: client.Determined, caplog: pytest.LogCaptureFixture
) -> None:
    ended = {**EXPERIMENT, "state": "STATE_COMPLETED"}
    count = itertools.count()
    unavailable = (503, {"error": {"code": 14, "error": "restarting"}})

    def answer(_: Any) -> tuple[int, Any]:
        number = next(count)
        return (200, {"experiment": EXPERIMENT if number < 2 else ended}) if number < 2 or number > 8 else unavailable

    master.on("GET", "/api/v1/experiments/3", answer)
    assert cluster.get_experiment(3).wait(interval=0.001) is client.ExperimentState.COMPLETED
    assert [record.message for record in caplog.records] == ["waiting for experiment 3: restarting"]


def test_wait_refuses_to_wait_for_a_paused_experiment(master: FakeMaster, cluster: client.Determined) -> None:
    master.on("GET", "/api/v1/experiments/3", (200, {"experiment": {**EXPERIMENT, "state": "STATE_PAUSED"}}))
    with pytest.raises(ValueError, match="experiment 3 is paused") as error:
        cluster.get_experiment(3).wait()
    assert isinstance(error.value, client.ExperimentPaused)


def test_wait_raises_a_timeout_error_after_its_timeout(master: FakeMaster, cluster: client.Determined) -> None:
    master.on("GET", "/api/v1/experiments/3", (200, {"experiment": EXPERIMENT}))
    with pytest.raises(TimeoutError, match="did not end within 0 s; it is RUNNING"):
        cluster.get_experiment(3).wait(timeout=0)


def test_an_unknown_state_is_unspecified(master: FakeMaster, cluster: client.Determined) -> None:
    master.on("GET", "/api/v1/experiments/3", (200, {"experiment": {**EXPERIMENT, "state": "STATE_DREAMING"}}))
    assert cluster.get_experiment(3).state is client.ExperimentState.UNSPECIFIED


def test_create_experiment_logs_links_that_are_followed_or_left_out(
    master: FakeMaster, cluster: client.Determined, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shared.py").write_text("x = 1")
    context = tmp_path / "context"
    context.mkdir()
    (context / "link.py").symlink_to("../shared.py")
    (context / "gone.py").symlink_to("../nowhere")
    with contextlib.suppress(ApiError):  # this master takes no contexts
        cluster.create_experiment({"name": "x"}, context)
    assert [record.message for record in caplog.records] == [
        f"link followed: link.py -> {tmp_path / 'shared.py'}",
        "left out: gone.py: a broken link",
    ]


def test_the_error_about_a_configuration_lists_every_diagnostic(
    master: FakeMaster, cluster: client.Determined, tmp_path: Path
) -> None:
    problems = [
        {
            "severity": "error",
            "code": "E203",
            "message": "unknown field",
            "line": 2,
            "column": 1,
            "hint": "did you mean x?",
        },
        {"severity": "error", "code": "E201", "message": "expected a number", "line": 4, "column": 3},
    ]
    master.on("POST", "/api/v1/experiments", (400, {"error": {"code": 3, "error": "bad"}, "diagnostics": problems}))
    path = tmp_path / "exp.yaml"
    path.write_text("name: x\n")
    with pytest.raises(ConfigError) as error:
        cluster.create_experiment(path, parent_id=1)
    assert error.value.message == (
        f"{path}:2:1: error[E203]: unknown field (help: did you mean x?)\n{path}:4:3: error[E201]: expected a number"
    )


@pytest.mark.parametrize("options", [{}, {"model_dir": ".", "parent_id": 1}])
def test_create_experiment_needs_either_a_folder_or_a_parent(
    master: FakeMaster, cluster: client.Determined, options: dict[str, Any]
) -> None:
    with pytest.raises(ContextError, match="either model_dir"):
        cluster.create_experiment({"name": "x"}, **options)
    assert master.bodies("/api/v1/experiments") == []


def test_methods_of_the_model_registry_raise_not_implemented_yet(cluster: client.Determined) -> None:
    for api in (client, cluster):
        with pytest.raises(NotImplementedYet, match="the model registry"):
            api.create_model("name")
    assert not hasattr(client, "create_modle")
    assert not hasattr(cluster, "create_modle")


def archive(*entries: tuple[str, bytes | None]) -> bytes:
    created = io.BytesIO()
    with tarfile.open(fileobj=created, mode="w:gz") as tar:
        for name, content in entries:
            member = tarfile.TarInfo(name)
            if content is None:
                member.type, member.linkname = tarfile.SYMTYPE, "target"
            member.size = len(content or b"")
            tar.addfile(member, io.BytesIO(content or b""))
    return created.getvalue()


def checkpoint(master: FakeMaster, cluster: client.Determined, data: bytes) -> client.Checkpoint:
    master.on("GET", f"/api/v1/checkpoints/{CHECKPOINT['uuid']}", (200, {"checkpoint": CHECKPOINT}))
    result = cluster.get_checkpoint(CHECKPOINT["uuid"])
    master.answers.clear()
    master.on("GET", f"/checkpoints/{CHECKPOINT['uuid']}", (200, data))
    return result


def test_a_checkpoint_is_downloaded_through_the_master_if_its_storage_is_elsewhere(
    master: FakeMaster, cluster: client.Determined, tmp_path: Path
) -> None:
    stored = checkpoint(master, cluster, archive(("state.pt", b"weights"), ("more/a.txt", b"a")))
    assert stored.download(tmp_path / "got") == str(tmp_path / "got")
    assert (tmp_path / "got" / "state.pt").read_bytes() == b"weights"
    assert (tmp_path / "got" / "more" / "a.txt").read_bytes() == b"a"
    assert json.loads((tmp_path / "got" / "metadata.json").read_text()) == {"steps_completed": 4}
    with pytest.raises(StorageError, match="is unknown"):
        stored.download(tmp_path / "direct", client.DownloadMode.DIRECT)


@pytest.mark.parametrize("entry", [("../out.txt", b"x"), ("/out.txt", b"x"), ("link", None)])
def test_a_downloaded_archive_that_leaves_its_folder_is_refused(
    master: FakeMaster, cluster: client.Determined, tmp_path: Path, entry: tuple[str, bytes | None]
) -> None:
    stored = checkpoint(master, cluster, archive(entry))
    with pytest.raises(StorageError, match="refused"):
        stored.download(tmp_path / "got")
    assert not (tmp_path / "out.txt").exists()


def test_a_download_that_ends_early_is_an_error(master: FakeMaster, cluster: client.Determined, tmp_path: Path) -> None:
    stored = checkpoint(master, cluster, archive(("state.pt", bytes(range(256)) * 400))[:200])
    with pytest.raises(StorageError, match="not downloaded completely"):
        stored.download(tmp_path / "got")


def test_a_checkpoint_has_the_metadata_of_its_training(master: FakeMaster, cluster: client.Determined) -> None:
    training = {"experimentId": 3, "trialId": 7, "hparams": {"lr": 1}, "searcherMetric": "NaN"}
    training["validationMetrics"] = {"avgMetrics": {"loss": "Infinity"}}
    master.on(
        "GET", f"/api/v1/checkpoints/{CHECKPOINT['uuid']}", (200, {"checkpoint": {**CHECKPOINT, "training": training}})
    )
    metadata = cluster.get_checkpoint(CHECKPOINT["uuid"]).training
    assert isinstance(metadata, client.CheckpointTrainingMetadata)
    assert (metadata.trial_id, metadata.hparams, metadata.validation_metrics) == (7, {"lr": 1}, {"loss": math.inf})
    assert metadata.searcher_metric is not None
    assert math.isnan(metadata.searcher_metric)


def test_a_checkpoint_has_the_metrics_of_its_step(master: FakeMaster, cluster: client.Determined) -> None:
    common = {"trialId": 7, "trialRunId": 1, "group": "validation", "endTime": "2026-01-02T03:04:05Z"}
    reports = [{**common, "totalBatches": n, "metrics": {"validation_metrics": {"loss": n}}} for n in (2, 4, 6)]
    data = {**CHECKPOINT, "training": {"experimentId": 3, "trialId": 7}}
    master.on("GET", f"/api/v1/checkpoints/{CHECKPOINT['uuid']}", (200, {"checkpoint": data}))
    master.on("GET", "/trials/metrics/trial_metrics", (200, json.dumps({"result": {"metrics": reports}}).encode()))
    (report,) = cluster.get_checkpoint(CHECKPOINT["uuid"]).get_metrics("validation")
    assert (report.steps_completed, report.metrics, report.group) == (4, {"loss": 4}, "validation")
    assert master.calls[-1][2] == "trialIds=7&group=validation"


def test_an_answer_with_501_raises_not_implemented_yet(master: FakeMaster, cluster: client.Determined) -> None:
    stored = checkpoint(master, cluster, b"")
    master.on(
        "POST", "/metadata", (501, {"error": {"code": 12, "error": "PostCheckpointMetadata is not supported yet"}})
    )
    with pytest.raises(NotImplementedYet, match="PostCheckpointMetadata is not supported yet"):
        stored.add_metadata({"good": True})
    assert stored.metadata == {"steps_completed": 4}


def test_a_download_from_a_master_that_does_not_answer_raises_master_unreachable(
    master: FakeMaster, cluster: client.Determined, tmp_path: Path
) -> None:
    stored = checkpoint(master, cluster, b"")
    master.on("GET", f"/checkpoints/{CHECKPOINT['uuid']}", (0, None))  # closes the connection without an answer
    with pytest.raises(MasterUnreachable, match="does not answer"):
        stored.download(tmp_path / "got")
    assert not (tmp_path / "got").exists()


def test_top_checkpoint_without_a_stored_checkpoint_raises_not_found(
    master: FakeMaster, cluster: client.Determined
) -> None:
    master.on("GET", "/api/v1/experiments/3", (200, {"experiment": EXPERIMENT}))
    master.on("GET", "/experiments/3/checkpoints", (200, {"checkpoints": [], "pagination": {"total": 0}}))
    with pytest.raises(NotFound, match="experiment 3 has no stored checkpoint"):
        cluster.get_experiment(3).top_checkpoint()


def test_iter_logs_with_tail_yields_the_last_lines_in_order(master: FakeMaster, cluster: client.Determined) -> None:
    master.on("GET", "/api/v1/trials/7", (200, {"trial": {"id": 7, "experimentId": 3, "state": "STATE_RUNNING"}}))
    lines = b"".join(json.dumps({"result": {"message": f"line {n}\n"}}).encode() + b"\n" for n in (3, 2))
    trial = cluster.get_trial(7)
    master.on("GET", "/trials/7/logs", (200, lines))
    assert list(trial.iter_logs(tail=2, min_level=client.LogLevel.ERROR)) == ["line 2\n", "line 3\n"]
    assert master.calls[-1][2] == (
        "follow=false&limit=2&orderBy=ORDER_BY_DESC&levels=LOG_LEVEL_ERROR&levels=LOG_LEVEL_CRITICAL"
    )
    with pytest.raises(ValueError, match="tail cannot be combined"):
        trial.iter_logs(follow=True, tail=2)


def test_outputs_of_a_trial_are_listed_and_downloaded(
    master: FakeMaster, cluster: client.Determined, tmp_path: Path
) -> None:
    uuid = CHECKPOINT["uuid"]
    entry = {"trialId": 5, "uuid": uuid, "files": 1, "size": 4, "folders": ["runs"], "time": "2026-01-02T00:00:00Z"}
    master.on("GET", "/api/v1/trials/5", (200, {"trial": {"id": 5, "experimentId": 3, "state": "STATE_COMPLETED"}}))
    master.on("GET", "/experiments/3/outputs", (200, {"outputs": [entry], "next": None}))
    master.on("GET", f"/api/v1/checkpoints/{uuid}", (200, {"checkpoint": CHECKPOINT}))
    links = json.dumps({"links": {"runs/latest": "a.txt"}}).encode()
    master.on("GET", f"/checkpoints/{uuid}", (200, archive(("metadata.json", links), ("runs/a.txt", b"text"))))
    trial = cluster.get_trial(5)
    found = trial.outputs()
    assert isinstance(found, client.TrialOutputs)
    assert (found.trial_id, found.files, found.size, found.folders) == (5, 1, 4, ["runs"])
    assert found.time is not None
    assert repr(found) == "TrialOutputs(trial_id=5, files=1, size=4)"
    assert trial.download_outputs(tmp_path / "got") == str(tmp_path / "got")
    assert (tmp_path / "got" / "runs" / "latest").read_text() == "text"
    assert [path.name for path in (tmp_path / "got").iterdir()] == ["runs"]
    master.on("GET", "/api/v1/experiments/3", (200, {"experiment": EXPERIMENT}))
    assert [each.uuid for each in cluster.get_experiment(3).outputs()] == [uuid]
    master.on("GET", "/experiments/3/outputs", (200, {"outputs": [], "next": None}))
    assert trial.outputs() is None
    with pytest.raises(NotFound, match="trial 5 has no outputs"):
        trial.download_outputs()
