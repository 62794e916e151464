"""``read_regular``: it reads only regular files of a bounded size and never blocks."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from determined_launch.regular_files import read_regular


def test_a_file_up_to_the_limit_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (3 << 20))
    assert len(read_regular(path, 3 << 20)) == 3 << 20
    with pytest.raises(OSError, match="larger than"):
        read_regular(path, (3 << 20) - 1)


@pytest.mark.parametrize(
    "create",
    [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/hostname", path), lambda path: None],
    ids=["fifo", "folder", "link", "missing"],
)
def test_a_path_that_is_no_regular_file_raises_an_error(tmp_path: Path, create: Callable[[Path], None]) -> None:
    create(tmp_path / "thing")
    with pytest.raises(OSError):
        read_regular(tmp_path / "thing", 100)
