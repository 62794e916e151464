"""Files that a task leaves in its working folder are listed in its log before they are removed."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.agent.output.test_startup_hooks import RUNTIMES
from tests.support.agents import make_context, outcome
from tests.support.container_engine import need_engine
from tests.support.fake_link_master import FakeLinkMaster

from determined.link.run_folder import RunFolder
from determined_agent.run_folders import left_files
from determined_agent.run_folders.left_files import find_left, kept_outputs

START = "removed with the working folder: "


@pytest.mark.parametrize("settings", RUNTIMES)
async def test_new_and_changed_files_are_listed_with_their_sizes(tmp_path: Path, settings: dict[str, Any]) -> None:
    if settings:
        need_engine()
    master = FakeLinkMaster()
    context = make_context(master, train_py="print(1)", kept_txt="as it was")
    script = "mkdir -p out __pycache__; head -c 5000 /dev/zero >out/predictions.csv; echo more >>train.py; touch __pycache__/x"
    exit_, _, notes = await outcome(tmp_path, script, master=master, context=context, settings=settings)
    assert exit_.code == 0
    (note,) = [line for line in notes if line.startswith(START)]
    assert note.startswith(f"{START}2 files that the task left there, 5.0 KB: out/predictions.csv (5.0 KB), train.py (")
    assert "core_context.checkpoint.store_path" in note


async def test_a_task_that_leaves_no_file_has_no_note(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    context = make_context(master, train_py="print(1)")
    _, _, notes = await outcome(tmp_path, "cat train.py", master=master, context=context)
    assert not any(line.startswith(START) for line in notes)


def test_the_note_about_many_files_and_hostile_names_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_files, "MAX_ENTRIES", 50)
    for number in range(60):
        (tmp_path / f"{number:03}").write_bytes(bytes(number))
    os.mkfifo(tmp_path / "pipe")
    os.symlink("/", tmp_path / "root")
    (tmp_path / ("n" * 200 + "\x1b[31m")).write_text("")
    left = find_left(tmp_path, 0.0)
    assert left.is_partial
    assert left.count <= 50
    assert "and more than" in left.text()
    assert "\x1b" not in left.text()
    assert len(left.text()) < 1000


async def test_folders_that_the_task_has_kept_are_not_named(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    context = make_context(master, train_py="print(1)")
    script = """mkdir -p runs/a b/runs; touch runs/a/x b/runs/y; echo '["runs"]' > ../kept-outputs.json"""
    _, _, notes = await outcome(tmp_path, script, master=master, context=context)
    (note,) = [line for line in notes if line.startswith(START)]
    assert note.startswith(
        f"{START}1 file that the task left there, 0 B: b/runs/y (0 B). Name the folder of what you need"
    )


@pytest.mark.parametrize("text", ["", "{", "3", "[" * 10_000, "x" * left_files.MAX_KEPT_BYTES + "x"])
def test_a_list_of_kept_folders_that_is_wrong_counts_as_empty(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.make()
    folder.outputs.write_text(text)
    assert kept_outputs(folder) == frozenset()
