"""Removal of folder trees that a task left."""

import os
import subprocess
from pathlib import Path

from determined_agent.run_folders.tree_removal import remove_tree


def test_a_folder_deeper_than_the_recursion_limit_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    script = "import os, sys\nos.mkdir(sys.argv[1]); os.chdir(sys.argv[1])\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    subprocess.run(["python3", "-c", script, str(top)], check=True)
    assert remove_tree(top)
    assert not top.exists()


def test_removing_a_link_or_a_fifo_removes_nothing_behind_it(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    os.mkfifo(tmp_path / "fifo")
    assert remove_tree(tmp_path / "link")
    assert remove_tree(tmp_path / "fifo")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_removing_a_path_that_does_not_exist_succeeds(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "none")
