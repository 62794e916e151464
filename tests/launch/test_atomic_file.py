"""``write_atomic``: a file is replaced as a whole or not at all."""

import os
import stat

import pytest

from determined_launch.atomic_file import write_atomic


def test_write_atomic_creates_a_private_file_with_text_and_time(tmp_path):
    path = tmp_path / "a"
    write_atomic(path, "é", modified=12.0)
    assert path.read_text(encoding="utf-8") == "é"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_mtime == 12.0
    assert os.listdir(tmp_path) == ["a"]


def test_a_failed_write_keeps_the_old_content_and_leaves_no_temporary_file(tmp_path):
    path = tmp_path / "a"
    write_atomic(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(path, "new \ud800")
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["a"])


def test_write_atomic_replaces_a_link_and_does_not_follow_it(tmp_path):
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "a").symlink_to("victim")
    write_atomic(tmp_path / "a", "new")
    assert (tmp_path / "victim").read_text() == "kept"
    assert (tmp_path / "a").read_text() == "new"
