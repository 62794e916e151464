"""The data folder of ``det up``: allowed file systems, and its lock."""

import os
from pathlib import Path

import pytest

from determined_cli.up import data_folder

MOUNTS = """\
rootfs / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/me/fast tmpfs rw 0 0
sshfs /mnt/my\\040disk fuse.sshfs rw 0 0
lustre /scratch lustre rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/detent", "ext4"),
        ("/home/me/detent", "nfs4"),
        ("/home/me/fast/detent", "tmpfs"),
        ("/home/me/faster", "nfs4"),
        ("/mnt/my disk/x", "fuse.sshfs"),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_its_innermost_mount(folder: str, kind: str):
    assert data_folder.file_system(Path(folder), MOUNTS) == kind


@pytest.mark.parametrize("folder", ["/home/me/detent", "/mnt/my disk/x", "/scratch/x"])
def test_network_file_systems_are_refused_with_a_local_folder_to_use(folder: str):
    with pytest.raises(data_folder.UnfitFolder, match=r"det up --data /var/tmp/detent"):
        data_folder.check_file_system(Path(folder), MOUNTS)


def test_local_file_systems_are_accepted():
    data_folder.check_file_system(Path("/var/lib/detent"), MOUNTS)
    data_folder.check_file_system(Path("/home/me/fast/detent"), MOUNTS)


def test_a_second_holder_is_refused_with_the_pid_of_the_first(tmp_path: Path):
    assert data_folder.holder(tmp_path) is None
    with data_folder.held(tmp_path):
        assert data_folder.holder(tmp_path) == os.getpid()
        with pytest.raises(data_folder.InUse, match=str(os.getpid())), data_folder.held(tmp_path):
            pass
    assert data_folder.holder(tmp_path) is None
