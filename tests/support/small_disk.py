"""A small disk of its own below a test's folder, which the test fills and frees."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FILLER = "filler"


class SmallDisk:
    """A mounted tmpfs. Its content is lost when it is unmounted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        """Uses all remaining space."""
        with open(self.path / FILLER, "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
        assert self.free_bytes == 0

    def free(self) -> None:
        """Removes the filler."""
        (self.path / FILLER).unlink()

    @property
    def free_bytes(self) -> int:
        stats = os.statvfs(self.path)
        return stats.f_bavail * stats.f_frsize


@contextlib.contextmanager
def small_disk(path: Path, size: str = "64m") -> Iterator[SmallDisk]:
    """Mounts a disk of this size at ``path``, which must not exist. Fails where mounting is not allowed."""
    path.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(path)], check=True)
    try:
        yield SmallDisk(path)
    finally:
        # Lazily: a process of the test that is about to end may still have a file open.
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def disk_fixture(size: str, below: str = "disk") -> Callable[..., Iterator[SmallDisk]]:
    """Returns a fixture for a test module: a disk of this size in the folder ``below`` of each test's own."""

    @pytest.fixture
    def disk(tmp_path: Path) -> Iterator[SmallDisk]:
        with small_disk(tmp_path / below, size) as created:
            yield created

    return disk
