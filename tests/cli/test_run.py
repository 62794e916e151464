"""``det run``: the command line, what is sent to the master, and the exit code."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from determined.context import entries
from determined_cli.experiment import follow

from .conftest import Det, FakeMaster, Request, error


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the present folder of the user, which has a program."""
    path = home / "project"
    path.mkdir()
    (path / "train.py").write_text("print(1)")
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def contexts(fake: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Returns the contexts that the master received. Creations are answered with experiment 7."""
    received: list[bytes] = []

    def answer(request: Request) -> Any:
        if request.method == "HEAD":
            return error(404, 5, "no such context")
        assert hashlib.sha256(request.body).hexdigest() == request.path.rpartition("/")[2]
        received.append(request.body)
        return {}

    plain = fake.answer
    monkeypatch.setattr(
        fake, "answer", lambda request: answer(request) if "/contexts/" in request.path else plain(request)
    )
    fake.answers["POST /api/v1/experiments"] = {"experiment": {"id": 7}, "config": {}, "warnings": []}
    return received


def test_run_sends_the_present_folder_and_the_words_after_the_dashes(
    fake: FakeMaster, det: Det, folder: Path, contexts: list[bytes], tmp_path: Path
) -> None:
    (folder / ".detignore").write_text("data\n")
    (folder / "data").touch()
    done = det("run", "-d", "--slots", "2", "--", "python3", "train.py", "--", "--slots", "a  b", "$HOME")
    assert (done.code, done.out, done.err) == (0, "Created experiment 7\n", "")
    (created,) = fake.requests_to("POST /api/v1/experiments")
    assert (created.json["configName"], created.json["activate"]) == ("run.yaml", True)
    config = yaml.safe_load(created.json["config"])
    assert config["entrypoint"] == ["python3", "train.py", "--", "--slots", "a  b", "$HOME"]
    assert config["resources"] == {"slots_per_trial": 2}
    (sent,) = contexts
    (tmp_path / "context").write_bytes(sent)
    assert [entry.path for entry in entries(tmp_path / "context")] == ["train.py"]


@pytest.mark.parametrize("code", [0, 1])
def test_run_follows_the_experiment_and_returns_what_that_returns(
    det: Det, folder: Path, contexts: list[bytes], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    followed: list[int] = []
    monkeypatch.setattr(
        follow, "follow", lambda _session, experiment_id, _published: followed.append(experiment_id) or code
    )
    assert det("run", "--", "true").code == code
    assert followed == [7]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give the command after --"),
        (("--slots", "2"), "give the command after --"),
        (("--",), "no command follows --"),
        (("python3", "a b.py"), "write -- before the command: det run -- python3 'a b.py'"),
        (("--slots", "two", "--", "true"), "argument --slots: invalid int value: 'two'"),
        (("--slot", "2", "--", "true"), "did you mean --slots?"),
        (("--local", "-d", "--", "true"), "--local and --detach exclude each other"),
    ],
)
def test_a_wrong_command_line_is_said_and_nothing_is_sent(
    fake: FakeMaster, det: Det, folder: Path, words: tuple[str, ...], told: str
) -> None:
    refused = det("run", *words)
    assert refused.code == 2
    assert told in refused.err
    assert fake.requests == []


def test_what_the_master_finds_wrong_is_one_error(
    fake: FakeMaster, det: Det, folder: Path, contexts: list[bytes]
) -> None:
    found = {"severity": "error", "code": "E201", "message": "no pool gpus", "path": "resources", "line": 7}
    fake.answers["POST /api/v1/experiments"] = error(400, 3, "invalid", diagnostics=[found])
    refused = det("run", "--pool", "gpus", "--", "true")
    assert (refused.code, refused.err) == (4, "det: error[E201]: no pool gpus\n")


def test_a_folder_without_files_is_refused(det: Det, folder: Path) -> None:
    (folder / "train.py").unlink()
    refused = det("run", "--", "true")
    assert refused.code == 4
    assert f"the context folder {folder} has no files to send" in refused.err


def test_a_local_run_starts_the_command_here_with_its_words_as_they_are(
    fake: FakeMaster, det: Det, folder: Path
) -> None:
    (folder / "train.py").write_text("import sys; print(sys.argv[1:]); sys.exit(3)")
    done = det("run", "--local", "--", "python3", "train.py", "a  b", "it's", "--")
    assert done.code == 1
    assert "['a  b', \"it's\", '--']" in done.out
    assert "trial failed: it exited with code 3" in done.err
    assert fake.requests == []
