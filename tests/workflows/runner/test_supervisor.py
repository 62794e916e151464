"""What a run's supervisor reads of the processes that its commands leave behind."""

from pathlib import Path

import pytest

from determined_workflows.runner import supervisor

MARKED = b"HOME=/root\0DETENT_RUNNER_COMMAND=1.2:3.a\0"


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of process 7 while it replaces its program: Linux shows no environment of it."""
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "exe").symlink_to("/bin/sleep")
    for name in ("environ", "cmdline"):
        (folder / name).touch()
    monkeypatch.setattr(supervisor, "_PROC", str(tmp_path))
    return folder


def test_the_mark_of_a_process_that_is_starting_a_program_is_waited_for(
    process: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor.time, "sleep", lambda _seconds: (process / "environ").write_bytes(MARKED))
    assert supervisor.mark_of(7) == "1.2:3.a"


def test_a_process_that_never_shows_an_environment_has_no_mark(process: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor.time, "sleep", lambda _seconds: None)
    assert supervisor.mark_of(7) == ""


@pytest.mark.parametrize("change", ["exe", "cmdline"])
def test_a_process_that_has_ended_or_emptied_its_environment_is_not_waited_for(
    process: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    if change == "exe":
        (process / "exe").unlink()
    else:
        (process / "cmdline").write_bytes(b"sleep\0")
    monkeypatch.setattr(supervisor.time, "sleep", lambda _seconds: pytest.fail("waits"))
    assert supervisor.mark_of(7) == ""
