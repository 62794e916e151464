"""The state of a folder's code in git: what is read, what is bounded, and that no program of the repository runs."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from determined.context import code_state as module
from determined.context import git_process, pack
from determined.context.code_state import CodeState, code_state, without_credentials


class Repository:
    """A repository with one commit of ``train.py`` and ``lib/model.py``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")
        self.write("train.py", "print(1)\n")
        self.write("lib/model.py", "SIZE = 1\n")

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        argv = ["git", *identity, *words]
        return subprocess.run(argv, cwd=self.path, env=environ, check=True, capture_output=True, text=True).stdout

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "work")
        return self.git("rev-parse", "HEAD").strip()

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return Repository(tmp_path / "repository")


def state_of(folder: Path, **options: Any) -> CodeState:
    state, warning = code_state(folder, **options)
    assert warning == ""
    assert state is not None
    return state


def test_a_clean_repository_has_commit_branch_and_remote(repository: Repository) -> None:
    repository.git("remote", "add", "origin", "git@example.org:ann/digits.git")
    commit = repository.commit()
    assert state_of(repository.path) == CodeState(commit, "main", "git@example.org:ann/digits.git")


def test_uncommitted_changes_are_a_diff_and_new_files_a_list(repository: Repository) -> None:
    repository.commit()
    repository.write("train.py", "print(2)\n")
    (repository.path / "lib" / "model.py").unlink()
    repository.write("note [1].txt", "new")
    repository.write(".gitignore", "*.log\n")
    repository.write("a.log", "ignored by git")
    state = state_of(repository.path)
    assert "-print(1)\n+print(2)\n" in state.diff
    assert "deleted file mode 100644" in state.diff
    assert state.untracked == (".gitignore", "note [1].txt")
    assert not state.is_cut
    applied = Repository(repository.path.parent / "other")
    applied.commit()
    applied.write("change.diff", state.diff)
    applied.git("apply", "change.diff")
    assert (applied.path / "train.py").read_text() == "print(2)\n"


def test_only_files_of_the_context_are_shown(repository: Repository) -> None:
    repository.write("lib/.env", "TOKEN=old\n")
    repository.write("lib/data/rows.csv", "1\n")
    repository.commit()
    for name in ("train.py", "lib/model.py", "lib/.env", "lib/data/rows.csv"):
        repository.write(name, "changed\n")
    repository.write("lib/.detignore", ".env\ndata/\n")
    repository.write("lib/new.py", "")
    repository.write("lib/data/more.csv", "")
    repository.write("above.py", "")
    state = state_of(repository.path / "lib", exclude=["new.*"])
    assert [line for line in state.diff.splitlines() if line.startswith("+++")] == ["+++ b/lib/model.py"]
    assert state.untracked == ()
    assert state_of(repository.path / "lib").untracked == ("new.py",)


def test_a_repository_without_a_commit_has_all_files_untracked(repository: Repository) -> None:
    repository.git("add", "train.py")
    repository.git("remote", "add", "backup", "/srv/digits.git")
    assert state_of(repository.path) == CodeState(
        None, "main", "/srv/digits.git", untracked=("train.py", "lib/model.py")
    )


def test_a_detached_head_has_a_commit_and_no_branch(repository: Repository) -> None:
    commit = repository.commit()
    repository.git("checkout", "--quiet", "--detach")
    assert state_of(repository.path) == CodeState(commit, None, None)


def test_the_remote_of_the_branch_goes_before_origin(repository: Repository) -> None:
    repository.git("remote", "add", "origin", "https://example.org/origin")
    repository.git("remote", "add", "fork", "https://example.org/fork")
    repository.git("config", "branch.main.remote", "fork")
    assert state_of(repository.path).remote == "https://example.org/fork"


def test_a_name_that_is_no_utf8_is_compared_and_written_with_a_replacement(repository: Repository) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    repository.write(name, "1\n")
    repository.commit()
    repository.write(name, "2\n")
    repository.write(os.fsdecode(b"new\xe9.py"), "")
    state = state_of(repository.path)
    assert "-1\n+2\n" in state.diff
    assert state.untracked == ("new�.py",)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:secret@example.org/a.git", "https://example.org/a.git"),
        ("https://secret@example.org:8443/a@b.git", "https://example.org:8443/a@b.git"),
        ("HTTPS://ann@corp:secret@example.org/a", "HTTPS://example.org/a"),
        ("https://ann:sec/ret@example.org/a", "https://example.org/a"),
        ("https://example.org/a.git?token=secret#x", "https://example.org/a.git"),
        ("ssh://git:secret@example.org:22/a.git", "ssh://git@example.org:22/a.git"),
        ("git@example.org:ann/a.git", "git@example.org:ann/a.git"),
        ("/srv/a.git", "/srv/a.git"),
    ],
)
def test_the_url_of_a_remote_has_no_credentials(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def test_a_folder_that_is_no_repository_has_no_state(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    assert pack(tmp_path).code() == (None, "")
    assert code_state(tmp_path) == (None, "")


def test_without_git_or_with_the_switch_there_is_no_state(repository: Repository, tmp_path: Path) -> None:
    repository.commit()
    assert code_state(repository.path, environ={"PATH": str(tmp_path)}) == (None, "")
    assert code_state(repository.path, environ={**os.environ, "DET_STORE_CODE": "0"}) == (None, "")


def test_a_broken_repository_has_no_state(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    (tmp_path / "train.py").touch()
    assert pack(tmp_path).code() == (None, "")


@pytest.mark.budget(10, "writes 100 MB")
def test_a_diff_of_100_mb_is_cut_at_the_limit_at_once(repository: Repository) -> None:
    lines = "a line of text that is long enough to be one of many in a file\n"
    names = [f"part{number}.txt" for number in range(20)]
    for name in names:
        repository.write(name, lines)
    commit = repository.commit()
    for name in names:
        repository.write(name, lines * 80_000)
    started = time.monotonic()
    state = state_of(repository.path)
    assert time.monotonic() - started < git_process.SECONDS
    assert (state.commit, state.is_cut) == (commit, True)
    assert module.MAX_DIFF_BYTES - 100 < len(state.diff) <= module.MAX_DIFF_BYTES
    assert state.diff.endswith(f"+{lines}")


def test_a_large_changed_file_is_compared_as_a_binary_one(repository: Repository) -> None:
    repository.write("weights.txt", "1\n" * 5_000_000)
    repository.commit()
    repository.write("weights.txt", "2\n" * 5_000_000)
    state = state_of(repository.path)
    assert "Binary files a/weights.txt and b/weights.txt differ" in state.diff
    assert not state.is_cut


def test_more_new_files_than_the_limit_are_cut(repository: Repository) -> None:
    repository.commit()
    for number in range(module.MAX_NAMES + 1):
        (repository.path / f"n{number}").touch()
    state = state_of(repository.path)
    assert (len(state.untracked), state.is_cut) == (module.MAX_NAMES, True)


def slow_git(folder: Path, condition: str) -> dict[str, str]:
    """Returns the environment of a git that hangs for words that match ``condition``."""
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    program = folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncase "$*" in\n{condition}) sleep 60 ;;\nesac\nexec {real} "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def test_a_git_that_hangs_is_ended_and_warned_about(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit()
    monkeypatch.setattr(git_process.Git.__init__, "__defaults__", (0.3,))
    state, warning = code_state(repository.path, environ=slow_git(tmp_path, "*status*"))
    assert state is None
    assert warning == (
        f"warning: git status took longer than 0.3 s; the state of the code in {repository.path} is not stored (DET_STORE_CODE=0 turns it off)"
    )


def test_a_diff_that_hangs_leaves_the_commit(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit()
    repository.write("train.py", "print(2)\n")
    monkeypatch.setattr(git_process.Git.__init__, "__defaults__", (1.5,))
    state, warning = code_state(repository.path, environ=slow_git(tmp_path, "*diff*HEAD*"))
    assert state == CodeState(commit, "main", None, "", is_cut=True)
    assert warning.startswith("warning: git diff took too long")


def test_no_program_of_the_repository_runs(repository: Repository, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = repository.write("evil.sh", f"#!/bin/sh\necho $0 $* >> {ran}\ncat\n")
    program.chmod(0o755)
    repository.write(".gitattributes", "*.py filter=evil diff=evil\n")
    commit = repository.commit()
    for name in ("core.fsmonitor", "diff.external", "core.pager", "core.sshCommand", "core.alternateRefsCommand"):
        repository.git("config", name, str(program))
    for name in ("filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "diff.evil.command"):
        repository.git("config", name, str(program))
    repository.git("config", "filter.evil.required", "true")
    repository.git("config", "core.hooksPath", str(repository.path / "hooks"))
    for name in ("post-index-change", "fsmonitor-watchman"):
        repository.write(f"hooks/{name}", program.read_text()).chmod(0o755)
    repository.write("train.py", "print(2)\n")
    index = (repository.path / ".git" / "index").stat().st_mtime_ns
    state = state_of(repository.path)
    assert state.commit == commit
    assert "+print(2)" in state.diff
    assert not ran.exists(), ran.read_text()
    assert (repository.path / ".git" / "index").stat().st_mtime_ns == index


def test_a_filter_that_cannot_be_turned_off_leaves_no_state(repository: Repository, tmp_path: Path) -> None:
    repository.commit()
    with (repository.path / ".git" / "config").open("a") as config:
        config.write(f'[filter "a=b"]\n\tclean = touch {tmp_path / "ran"}\n')
    assert code_state(repository.path) == (None, "")


def test_a_packed_folder_knows_its_code_and_can_leave_it_out(repository: Repository) -> None:
    commit = repository.commit()
    packed = pack(repository.path)
    code, warning = packed.code()
    assert code is not None
    assert (code["commit"], code["isCut"], code["untracked"], warning) == (commit, False, [], "")
    assert packed.without_code().code() == (None, "")
    assert packed.without_code() == packed
