"""Rotation of the logs of `det up` while programs write to the same file descriptor."""

import os
import stat
from pathlib import Path

from tests.support.small_disk import small_disk

from determined_cli.up.data_folder import open_log
from determined_cli.up.log_rotation import rotate


def test_a_log_is_rotated_while_its_writer_continues(tmp_path: Path):
    log = tmp_path / "master.log"
    with open_log(log) as file:
        for number in range(5):
            file.write(f"{number}\n".encode() * 600)
            file.flush()
            assert rotate(log, 1000, 3)
            assert log.stat().st_size == 0
        file.write(b"new\n")
    assert log.read_text() == "new\n"
    assert not rotate(log, 1000, 3)
    older = [tmp_path / f"master.log.{number}" for number in (1, 2, 3)]
    assert [path.read_text()[:1] for path in older] == ["4", "3", "2"]
    assert all(path.stat().st_size <= 1000 for path in older)
    assert stat.S_IMODE(older[0].stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["master.log", *(path.name for path in older)]


def test_a_log_on_a_full_disk_is_emptied(tmp_path: Path):
    with small_disk(tmp_path / "disk", "4m") as disk:
        log = disk.path / "master.log"
        log.write_bytes(bytes(1 << 20))
        disk.fill()
        assert rotate(log, 1000, 3)
        assert log.stat().st_size == 0
        assert disk.free_bytes > 0


def test_a_log_that_is_a_link_is_not_rotated(tmp_path: Path):
    (tmp_path / "mine").write_bytes(bytes(5000))
    (tmp_path / "master.log").symlink_to(tmp_path / "mine")
    assert not rotate(tmp_path / "master.log", 1000, 3)
    assert not rotate(tmp_path / "missing.log", 1000, 3)
    assert (tmp_path / "mine").stat().st_size == 5000
