"""The state of the code on the command line: what ``create`` and ``run`` send, ``describe`` and ``diff`` print."""

import base64
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from determined_cli.experiment import context_files

from .conftest import Det, FakeMaster, error

CONFIG = "entrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\n"
CODE = {
    "commit": "0123abcd",
    "branch": "main",
    "remote": "git@example.org:ann/digits.git",
    "isDirty": True,
    "isCut": False,
    "diff": "-a = 1\n+a = 2\n",
    "untracked": ["new\x1b.py"],
}


def git(folder: Path, *words: str) -> None:
    argv = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *words]
    subprocess.run(
        argv, cwd=folder, check=True, capture_output=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    )


@pytest.fixture
def repository(home: Path, fake: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the present folder: a repository with a commit and a change. The master has every context."""
    folder = home / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    (folder / "exp.yaml").write_text(CONFIG)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "work")
    (folder / "train.py").write_text("print(2)\n")
    monkeypatch.chdir(folder)
    plain = fake.answer
    monkeypatch.setattr(fake, "answer", lambda request: {} if "/contexts/" in request.path else plain(request))
    fake.answers["POST /api/v1/experiments"] = {"experiment": {"id": 7}, "config": {}, "warnings": []}
    fake.answers["POST /api/v1/commands"] = {"command": {"id": "3f2b", "description": "x"}}
    return folder


@pytest.mark.parametrize("words", [("e", "create", "exp.yaml", "."), ("run", "-d", "--", "python3", "train.py")])
def test_a_submission_has_the_state_of_its_folder(
    fake: FakeMaster, det: Det, repository: Path, words: tuple[str, ...]
) -> None:
    assert det(*words).code == 0
    code = fake.requests_to("POST /api/v1/experiments")[0].json["code"]
    assert (code["branch"], code["remote"], code["isCut"], code["untracked"]) == ("main", None, False, [])
    assert "-print(1)\n+print(2)\n" in code["diff"]


@pytest.mark.parametrize(
    "words",
    [
        ("e", "create", "--no-code", "exp.yaml", "."),
        ("run", "-d", "--no-code", "--", "true"),
        ("e", "fork", "3", "exp.yaml"),
    ],
)
def test_no_code_and_a_fork_send_no_state(fake: FakeMaster, det: Det, repository: Path, words: tuple[str, ...]) -> None:
    assert det(*words).code == 0
    assert "code" not in fake.requests_to("POST /api/v1/experiments")[0].json


def test_a_command_sends_no_state(fake: FakeMaster, det: Det, repository: Path) -> None:
    assert det("cmd", "run", "-d", "-c", ".", "ls").code == 0
    assert "code" not in fake.requests_to("POST /api/v1/commands")[0].json


def test_a_git_that_hangs_is_one_line_on_standard_error(fake: FakeMaster, repository: Path) -> None:
    program = repository.parent / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nsleep 60\n")
    program.chmod(0o755)
    script = (
        "from determined.context import git_process\n"
        "git_process.Git.__init__.__defaults__ = (0.2,)\n"
        "from determined_cli.main import main\n"
        "raise SystemExit(main(['run', '-d', '--', 'true']))\n"
    )
    variables = {"DET_MASTER": fake.url, "DET_USER_TOKEN": "T", "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **variables}, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (0, "Created experiment 7\n")
    assert done.stderr == (
        f"warning: git rev-parse took longer than 0.2 s; the state of the code in {repository} is not stored (DET_STORE_CODE=0 turns it off)\n"
    )
    assert "code" not in fake.requests_to("POST /api/v1/experiments")[0].json


def archive(**files: bytes) -> dict[str, str]:
    """Returns the answer with a context; underscores in names stand for dots."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, content in files.items():
            header = tarfile.TarInfo(name.replace("_", "."))
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return {"b64Tgz": base64.b64encode(data.getvalue()).decode()}


@pytest.fixture
def two(fake: FakeMaster) -> FakeMaster:
    """Returns a master with experiments 3 and 4, which are equal."""
    for number in (3, 4):
        fake.answers[f"GET /api/v1/experiments/{number}"] = {"experiment": {"id": number, "config": {"lr": 0.1}}}
        fake.answers[f"GET /detent/experiments/{number}/code"] = {"code": CODE}
        fake.answers[f"GET /api/v1/experiments/{number}/model_def"] = archive(a_py=b"x = 1\n", b_bin=b"\0")
    return fake


def test_equal_experiments_have_no_difference(two: FakeMaster, det: Det) -> None:
    done = det("e", "diff", "3", "4")
    assert (done.code, done.out) == (0, "")
    assert done.err == "experiments 3 and 4 have the same configuration and the same code\n"


def test_diff_prints_configuration_code_and_files(two: FakeMaster, det: Det) -> None:
    two.answers["GET /api/v1/experiments/4"] = {"experiment": {"id": 4, "config": {"lr": 0.2}}}
    two.answers["GET /detent/experiments/4/code"] = {"code": {**CODE, "branch": "try", "diff": "-a = 1\n+a = 3\n"}}
    files = {"a_py": b"x = 2\n", "b_bin": b"\0\1", "c_py": b"new\n", "d_txt": b""}
    two.answers["GET /api/v1/experiments/4/model_def"] = archive(**files)
    out = det("e", "diff", "3", "4").out
    assert (
        "--- configuration of experiment 3\n+++ configuration of experiment 4\n@@ -1 +1 @@\n-lr: 0.1\n+lr: 0.2\n" in out
    )
    assert "-branch: main\n+branch: try\n" in out
    assert " -a = 1\n-+a = 2\n++a = 3\n" in out
    assert "--- 3/a.py\n+++ 4/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n" in out
    assert "b.bin differs between experiments 3 and 4\n" in out
    assert "--- /dev/null\n+++ 4/c.py\n@@ -0,0 +1 @@\n+new\n" in out
    assert "d.txt is only in experiment 4\n" in out


def test_diff_names_files_that_are_too_large_to_be_shown(
    two: FakeMaster, det: Det, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_files, "MAX_TEXT_BYTES", 10)
    two.answers["GET /api/v1/experiments/4/model_def"] = archive(a_py=b"y" * 11, b_bin=b"\0")
    assert det("e", "diff", "3", "4").out == "a.py differs between experiments 3 and 4\n"


def test_diff_bounds_what_it_prints_of_files(two: FakeMaster, det: Det) -> None:
    line = b"y" * 99 + b"\n"
    two.answers["GET /api/v1/experiments/4/model_def"] = archive(**{f"n{i}_py": line * 2000 for i in range(8)})
    out = det("e", "diff", "3", "4").out
    assert "+++ 4/n4.py" in out
    assert out.endswith("n5.py differs\nn6.py differs\nn7.py differs\n")


def test_diff_works_with_experiments_without_code(two: FakeMaster, det: Det) -> None:
    two.answers["GET /detent/experiments/4/code"] = {"code": None}
    two.answers["GET /api/v1/experiments/4/model_def"] = {"b64Tgz": ""}
    del two.answers["GET /detent/experiments/3/code"]
    assert (
        det("e", "diff", "3", "4").out
        == "--- 3/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\nb.bin is only in experiment 3\n"
    )
    two.answers["GET /api/v1/experiments/4"] = error(404, 5, "experiment 4 not found")
    assert det("e", "diff", "3", "4").code == 3


@pytest.fixture
def described(fake: FakeMaster) -> FakeMaster:
    experiment = {"id": 7, "state": "STATE_COMPLETED", "config": {}, "numTrials": 0, "progress": 1.0, "username": "ann"}
    fake.answers["GET /api/v1/experiments/7"] = {"experiment": experiment}
    fake.answers["GET /detent/experiments/7/status"] = {"waitedSeconds": 1, "ranSeconds": 1}
    fake.answers["GET /api/v1/experiments/7/trials"] = {"trials": [], "pagination": {"total": 0}}
    fake.answers["GET /api/v1/experiments/7/checkpoints"] = {"checkpoints": [], "pagination": {"total": 0}}
    fake.answers["GET /detent/experiments/7/code"] = {"code": {**CODE, "diff": ""}}
    return fake


def test_describe_shows_the_state_of_the_code(described: FakeMaster, det: Det) -> None:
    line = (
        "code of experiment 7: commit 0123abcd on main, with uncommitted changes, 1 untracked file "
        "(git@example.org:ann/digits.git)\n"
    )
    assert line in det("e", "describe", "7").out
    described.answers["GET /detent/experiments/7/code"] = {"code": {**CODE, "isCut": True}}
    assert "1 untracked file, stored only in part (git@" in det("e", "describe", "7").out
    shown = json.loads(det("e", "describe", "7", "--json").out)[0]["code"]
    assert (shown["commit"], shown["is_dirty"], "diff" in shown) == ("0123abcd", True, False)
    assert described.requests_to("GET /detent/experiments/7/code")[0].query == {"diff": ["false"]}


@pytest.mark.parametrize("answer", [{"code": None}, error(404, 5, "no such route")])
def test_describe_says_nothing_of_code_that_is_not_stored(described: FakeMaster, det: Det, answer: Any) -> None:
    described.answers["GET /detent/experiments/7/code"] = answer
    assert "code of experiment" not in det("e", "describe", "7").out
    assert json.loads(det("e", "describe", "7", "--json").out)[0]["code"] is None
