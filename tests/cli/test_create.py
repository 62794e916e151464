"""``det experiment create``: the local check, the upload of the context, and following the experiment."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from determined import config
from determined.client import submissions
from determined_cli.experiment import create, test_mode

from .conftest import Det, FakeMaster, Request, Stream, error

CONFIG = "entrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\n"


@pytest.fixture
def files(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (home / "ctx").mkdir()
    (home / "ctx" / "train.py").write_text("print(1)")
    (home / "exp.yaml").write_text(CONFIG)
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def store(fake: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Returns the hashes of the contexts that the master has."""
    known: set[str] = set()

    def answer(request: Request) -> Any:
        digest = request.path.rpartition("/")[2]
        if request.method == "HEAD":
            return {} if digest in known else error(404, 5, "no such context")
        assert hashlib.sha256(request.body).hexdigest() == digest
        known.add(digest)
        return {}

    plain = fake.answer
    monkeypatch.setattr(
        fake, "answer", lambda request: answer(request) if "/contexts/" in request.path else plain(request)
    )
    fake.answers["POST /api/v1/experiments"] = lambda request: (
        {"experiment": {"id": 7}, "config": {}, "warnings": []}
        if request.json.get("parentId") or request.json["contextHash"] in known
        else error(404, 5, "the master does not have the context; send it again")
    )
    return known


def test_create_sends_an_unchanged_context_once(fake: FakeMaster, det: Det, files: Path, store: set[str]) -> None:
    first = det("experiment", "create", "exp.yaml", "ctx", "--paused", "--project_id", "3")
    assert (first.code, first.out) == (0, "Created experiment 7\n")
    body = fake.requests_to("POST /api/v1/experiments")[0].json
    assert body == {
        "config": CONFIG,
        "configName": "exp.yaml",
        "activate": False,
        "projectId": 3,
        "contextHash": store.copy().pop(),
    }
    assert det("e", "create", "exp.yaml", "ctx").code == 0
    assert [request.method for request in fake.requests if "/contexts/" in request.path] == ["HEAD", "PUT", "HEAD"]


def test_a_configuration_without_findings_is_not_checked_again_by_the_client(
    det: Det, files: Path, store: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[str] = []
    check = create.checked_config
    monkeypatch.setattr(create, "checked_config", lambda written: checks.append(written.text) or check(written))
    assert [det("e", "create", "exp.yaml", "ctx").code for _ in range(2)] == [0, 0]
    assert checks == [CONFIG]
    (files / "exp.yaml").write_text(CONFIG + "name: other\n")
    assert det("e", "create", "exp.yaml", "ctx").code == 0
    assert len(checks) == 2


def test_create_prints_the_warnings_of_an_unchanged_configuration_each_time(
    det: Det, files: Path, store: set[str]
) -> None:
    (files / "exp.yaml").write_text(CONFIG + "min_checkpoint_period: {batches: 1}\nsecurity: {}\n")
    first, second = (det("e", "create", "exp.yaml", "ctx") for _ in range(2))
    assert "warning[" in first.err
    assert second.err == first.err


def test_an_unknown_workspace_is_warned_about_each_time(
    fake: FakeMaster, det: Det, files: Path, store: set[str]
) -> None:
    (files / "home.yaml").write_text(CONFIG + "workspace: Vision\nproject: Digits\n")
    warning = {
        "severity": "warning",
        "code": "W507",
        "message": 'workspace "Vision" does not exist',
        "path": "workspace",
    }
    fake.answers["POST /detent/config/check"] = {
        "ok": True,
        "diagnostics": [{**warning, "line": 3, "column": 12, "hint": None}],
    }
    for _ in range(2):
        created = det("e", "create", "home.yaml", "ctx")
        assert created.code == 0
        assert 'home.yaml:3:12: warning[W507]: workspace "Vision" does not exist' in created.err
    assert "W507" not in det("e", "create", "home.yaml", "ctx", "--project_id", "3").err


@pytest.mark.parametrize("where", [(), ("--local", "--test-mode")], ids=["master", "local"])
def test_a_link_that_leaves_the_context_is_an_error_without_follow_links(
    det: Det, files: Path, store: set[str], where: tuple[str, ...]
) -> None:
    (files / "outside.py").touch()
    (files / "ctx" / "link.py").symlink_to("../outside.py")
    refused = det("e", "create", "exp.yaml", "ctx", *where)
    assert refused.code == 4
    assert f"link.py -> {files / 'outside.py'}" in refused.err
    assert "--follow-links" in refused.err
    assert f"/link.py in {files / 'ctx' / '.detignore'}" in refused.err
    assert store == set()
    followed = det("e", "create", "exp.yaml", "ctx", "--follow-links", *where)
    assert f"link followed: link.py -> {files / 'outside.py'}" in followed.err
    assert followed.code == 0 or where


def test_a_context_that_the_master_has_deleted_is_sent_again(
    fake: FakeMaster, det: Det, files: Path, store: set[str]
) -> None:
    assert det("e", "create", "exp.yaml", "ctx").code == 0
    plain = fake.answers["POST /api/v1/experiments"]

    def delete_contexts(request: Request) -> Any:
        fake.answers["POST /api/v1/experiments"] = plain
        store.clear()
        return plain(request)

    fake.answers["POST /api/v1/experiments"] = delete_contexts
    assert det("e", "create", "exp.yaml", "ctx").code == 0
    assert [request.method for request in fake.requests if "/contexts/" in request.path] == [
        "HEAD",
        "PUT",
        "HEAD",
        "PUT",
    ]


def test_create_prints_configuration_errors_and_sends_no_request(fake: FakeMaster, det: Det, files: Path) -> None:
    (files / "exp.yaml").write_text(CONFIG + "max_restart: 3\nresources: {slots_per_trial: x}\n")
    outcome = det("e", "create", "exp.yaml", "ctx")
    assert outcome.code == 4
    assert 'exp.yaml:3:1: error[E203]: unknown field "max_restart"' in outcome.err
    assert "exp.yaml:4:30: error[E201]" in outcome.err
    assert outcome.err.endswith("det: exp.yaml is invalid: 2 errors\n")
    assert fake.requests == []


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("none.yaml", "ctx"), 4, "none.yaml: no such file"),
        (("exp.yaml", "none"), 4, "none does not exist"),
        (("exp.yaml", "exp.yaml"), 4, "is not a folder"),
        (("exp.yaml",), 2, "missing context folder"),
        (("exp.yaml", "ctx", "-t", "--paused"), 2, "exclude each other"),
        (("exp.yaml", "ctx", "--slots", "2"), 2, "--slots needs --local"),
        (("exp.yaml", "ctx", "--template", "t"), 1, "not supported yet"),
        (("exp.yaml", "ctx", "--config", "a"), 4, "key.path=value"),
        (("exp.yaml", "ctx", "-i", "none"), 4, "does not exist"),
        (("latin.yaml", "ctx"), 4, "E101"),
        ((".", "ctx"), 4, "is a directory"),
    ],
)
def test_create_refuses_invalid_files_and_flags_with_a_code_and_a_text(
    det: Det, files: Path, words: tuple[str, ...], code: int, text: str
) -> None:
    (files / "latin.yaml").write_bytes(b"name: \xe4")
    outcome = det("e", "create", *words)
    assert (outcome.code, outcome.out) == (code, "")
    assert text in outcome.err
    assert "Traceback" not in outcome.err


def test_diagnostics_of_the_master_are_printed_like_local_ones(
    fake: FakeMaster, det: Det, files: Path, store: set[str]
) -> None:
    finding = {"severity": "error", "code": "E303", "message": "no pool holds 9 slots", "path": "resources"}
    place = {"line": 1, "column": 1, "hint": "ask for fewer"}
    fake.answers["POST /api/v1/experiments"] = error(400, 3, "bad", diagnostics=[{**finding, **place}])
    outcome = det("e", "create", "exp.yaml", "ctx")
    assert outcome.code == 4
    assert "exp.yaml:1:1: error[E303]: no pool holds 9 slots\n  entrypoint: python3" in outcome.err


def test_create_sends_the_configuration_with_its_overrides(
    fake: FakeMaster, det: Det, files: Path, store: set[str]
) -> None:
    assert det("e", "create", "exp.yaml", "ctx", "--config", "resources.slots_per_trial=2").code == 0
    assert "slots_per_trial: 2" in fake.requests_to("POST /api/v1/experiments")[0].json["config"]


@pytest.mark.parametrize(("state", "code"), [("COMPLETED", 0), ("ERROR", 1), ("CANCELED", 1)])
def test_create_with_follow_prints_the_log_and_exits_by_the_final_state(
    fake: FakeMaster, det: Det, files: Path, store: set[str], state: str, code: int
) -> None:
    fake.answers.update(
        {
            "GET /api/v1/experiments/7/trials": {"trials": [{"id": 9}], "pagination": {"total": 1}},
            "GET /api/v1/trials/9": {"trial": {"id": 9, "state": f"STATE_{state}"}},
            "GET /api/v1/trials/9/logs": Stream([{"message": "[t] one\n"}, {"message": "[t] two"}]),
            "GET /api/v1/experiments/7": {"experiment": {"id": 7, "state": f"STATE_{state}"}},
        }
    )
    outcome = det("e", "create", "exp.yaml", "ctx", "-f")
    assert outcome.code == code
    assert outcome.out == "Created experiment 7\n[t] one\n[t] two\n"
    assert outcome.err.endswith(f"experiment 7 ended: {state}\n")
    assert fake.requests_to("GET /api/v1/trials/9/logs")[0].query["follow"] == ["true"]


def test_create_with_follow_ends_with_the_best_trial_of_a_search(
    fake: FakeMaster, det: Det, files: Path, store: set[str]
) -> None:
    searcher = {"metric": "loss", "smaller_is_better": True}
    best = {"bestTrialId": 10, "bestTrialSearcherMetric": 0.25, "numTrials": 2, "config": {"searcher": searcher}}
    fake.answers.update(
        {
            "GET /api/v1/experiments/7/trials": {"trials": [{"id": 9}], "pagination": {"total": 1}},
            "GET /api/v1/trials/9": {"trial": {"id": 9, "state": "STATE_COMPLETED"}},
            "GET /api/v1/trials/10": {"trial": {"id": 10, "state": "STATE_COMPLETED", "hparams": {"lr": 0.1}}},
            "GET /api/v1/trials/9/logs": Stream([]),
            "GET /api/v1/experiments/7": {"experiment": {"id": 7, "state": "STATE_COMPLETED", **best}},
        }
    )
    outcome = det("e", "create", "exp.yaml", "ctx", "-f")
    assert outcome.err.endswith("best trial 10: loss 0.25, the smallest of 2 trials; lr 0.1\n")


def test_ctrl_c_while_following_leaves_the_experiment_running(
    fake: FakeMaster, det: Det, files: Path, store: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from determined_cli import logs

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(logs, "find_first_trial", interrupted)
    outcome = det("e", "create", "exp.yaml", "ctx", "-f")
    assert outcome.code == 130
    assert "det e logs -f 7" in outcome.err
    assert not fake.requests_to("POST /api/v1/experiments/7/kill")


def test_fork_uses_the_configuration_and_code_of_the_parent(
    fake: FakeMaster, det: Det, files: Path, store: set[str]
) -> None:
    fake.answers["GET /api/v1/experiments/3"] = {"experiment": {"id": 3, "originalConfig": CONFIG, "config": {}}}
    assert det("e", "fork", "3", "--config", "max_restarts=1").out == "Created experiment 7\n"
    body = fake.requests_to("POST /api/v1/experiments")[0].json
    assert body["parentId"] == 3
    assert "max_restarts: 1" in body["config"]
    assert "contextHash" not in body


@pytest.mark.parametrize("flags", [(), ("--test-mode",)], ids=["create", "test"])
def test_create_checks_a_configuration_with_warnings_once(
    fake: FakeMaster, det: Det, files: Path, store: set[str], monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    texts: list[str] = []
    check = config.check
    monkeypatch.setattr(config, "check", lambda text, **options: texts.append(text) or check(text, **options))
    monkeypatch.setattr(test_mode, "watch", lambda session, experiment_id: 0)
    fake.answers["POST /detent/config/check"] = {"ok": True, "diagnostics": []}
    text = CONFIG + "environment: {image: lab/train:1}\nworkspace: Vision\nproject: Digits\nsecurity: {}\n"
    (files / "exp.yaml").write_text(text)
    monkeypatch.setattr(submissions, "create", lambda *_: {"experiment": {"id": 7}})
    fake.answers["POST /api/v1/experiments"] = {}
    assert det("e", "create", "exp.yaml", "ctx", *flags).code == 0
    assert texts == [text]


def test_create_prints_warnings_without_containers_only_as_the_master_confirms_them(
    fake: FakeMaster, det: Det, files: Path, store: set[str]
) -> None:
    (files / "exp.yaml").write_text(CONFIG + "environment: {image: lab/train:1}\n")
    diagnostics = [each.to_json() for each in config.check(CONFIG + "environment: {image: lab/train:1}\n").diagnostics]
    fake.answers["POST /detent/config/check"] = {"ok": True, "diagnostics": []}
    assert det("e", "create", "exp.yaml", "ctx").err == ""
    fake.answers["POST /detent/config/check"] = {"ok": True, "diagnostics": diagnostics}
    warned = det("e", "create", "exp.yaml", "ctx").err
    assert 'exp.yaml:3:15: warning[W503]: "environment.image" has no effect without containers' in warned
