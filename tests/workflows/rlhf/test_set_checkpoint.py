"""The common checkpoint of a set of workers, without a cluster: recover modes, what is read, and what a failed part leaves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from determined import core
from determined_workflows.rlhf.task.set_checkpoint import FOLDER, RECOVER, NothingToResume, SetCheckpoint


@pytest.fixture
def context(tmp_path: Path) -> Iterator[core.Context]:
    with core.init(checkpoint_storage=str(tmp_path / "checkpoints")) as opened:
        yield opened


def checkpoint(context: core.Context, folder: Path, mode: str = "") -> SetCheckpoint:
    return SetCheckpoint(context, "actor-0", {FOLDER: str(folder), RECOVER: mode})


def test_the_newest_checkpoint_is_found_and_read(context: core.Context, tmp_path: Path) -> None:
    used = checkpoint(context, tmp_path)
    used.store(3, {"weights": torch.ones(2)})
    uuid = used.store(4, {"weights": torch.zeros(2)}, lambda folder: (folder / "more").write_text("x"))
    assert used.latest() == uuid
    with used.restored(uuid) as folder:
        assert used.read(folder)["weights"].tolist() == [0, 0]
        assert (folder / "more").read_text() == "x"


@pytest.mark.parametrize(
    ("mode", "finds"), [("", True), ("auto", True), ("resume", True), ("disabled", False), ("save", False)]
)
def test_the_recover_mode_decides_about_an_earlier_state(
    context: core.Context, tmp_path: Path, mode: str, finds: bool
) -> None:
    checkpoint(context, tmp_path).store(1, {})
    assert (checkpoint(context, tmp_path, mode).latest() is not None) is finds


def test_resume_needs_an_earlier_state_and_auto_does_not(context: core.Context, tmp_path: Path) -> None:
    assert checkpoint(context, tmp_path, "auto").latest() is None
    with pytest.raises(NothingToResume, match=r"the recover mode is resume, and .* has no checkpoint: use auto"):
        checkpoint(context, tmp_path, "resume").latest()


def test_a_checkpoint_that_was_stored_for_a_stop_goes_when_the_next_one_is_there(
    context: core.Context, tmp_path: Path
) -> None:
    used = checkpoint(context, tmp_path)
    kept = used.store(1, {})
    used.store(2, {}, is_kept=False)
    used.store(3, {}, is_kept=False)
    newest = used.store(4, {})
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {kept, newest}
    assert used.latest() == newest


def test_an_unknown_mode_is_refused(context: core.Context, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one of disabled, resume, auto, save, not 'again'"):
        checkpoint(context, tmp_path, "again")


def test_a_failure_while_writing_leaves_the_earlier_checkpoint(context: core.Context, tmp_path: Path) -> None:
    used = checkpoint(context, tmp_path)
    uuid = used.store(1, {})

    def fail(folder: Path) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        used.store(2, {}, fail)
    assert used.latest() == uuid
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [uuid]


def test_a_checkpoint_of_other_workers_is_named(context: core.Context, tmp_path: Path) -> None:
    used = checkpoint(context, tmp_path)
    uuid = used.store(1, {})
    with used.restored(uuid) as folder, pytest.raises(RuntimeError, match="no state of critic-0, only of actor-0"):
        used.read(folder, "critic-0")
