"""Outputs of a local run, whose work folder is removed at its end."""

from pathlib import Path

import pytest
from tests.harness.local.test_run import context as context
from tests.harness.local.test_run import run

WRITE = """
import os, pathlib
runs = pathlib.Path("runs")
runs.mkdir(exist_ok=True)
(runs / "a.txt").write_text("new")
(runs / "latest").symlink_to("a.txt")
(runs / "out").symlink_to("/etc")
os.makedirs("other")
pathlib.Path("other/b").write_text("lost")
"""


def test_a_local_run_copies_what_it_has_written_into_its_folder(
    context: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (context / "runs").mkdir()
    (context / "runs" / "mine").write_text("as it was")
    unchanged = (context / "runs" / "mine").stat().st_mtime_ns
    assert run(context, WRITE, more="\noutputs: [runs/]\n", test_mode=False) == 0
    said = capfd.readouterr().err
    assert f"outputs: 1 file copied to {context}" in said
    assert "outputs: not copied: runs/out is a link to /etc" in said
    assert (context / "runs" / "latest").read_text() == "new"
    assert (context / "runs" / "mine").stat().st_mtime_ns == unchanged
    assert sorted(path.name for path in context.iterdir()) == ["runs", "train.py"]


def test_a_local_test_copies_nothing(context: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(context, WRITE, more="\noutputs: [runs/]\n") == 0
    assert not (context / "runs").exists()


def test_no_output_of_a_local_run_is_written_through_a_link(
    context: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (context / "runs").symlink_to(tmp_path / "elsewhere")
    (context / ".detignore").write_text("/runs\n")
    assert run(context, WRITE, more="\noutputs: [runs/]\n", test_mode=False) == 0
    assert "outputs: not all could be copied to" in capfd.readouterr().err
    assert list((tmp_path / "elsewhere").iterdir()) == []
