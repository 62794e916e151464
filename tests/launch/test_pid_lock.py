"""``PidLock``: it names the process that holds it, and is released when that process ends."""

import fcntl
import os
import socket
import subprocess
import sys

import pytest

from determined_launch import pid_lock
from determined_launch.pid_lock import LockHeld, PidLock, holder

HOLD = """
import sys
from pathlib import Path
from determined_launch.pid_lock import PidLock
lock = PidLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_held_lock_is_refused_and_names_its_holder(tmp_path):
    path = tmp_path / "lock"
    assert holder(path) is None
    with PidLock(path):
        assert holder(path) == os.getpid()
        with pytest.raises(LockHeld, match=str(os.getpid())):
            PidLock(path)
    assert holder(path) is None


def test_the_lock_of_a_killed_process_can_be_taken_again(tmp_path):
    path = tmp_path / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert holder(path) == process.pid
        with pytest.raises(LockHeld, match=str(process.pid)):
            PidLock(path)
        process.kill()
    assert holder(path) is None
    with PidLock(path):
        assert holder(path) == os.getpid()


def test_a_lock_is_taken_although_somebody_asks_for_its_holder_at_that_moment(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    asking = os.open(path, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(asking, fcntl.LOCK_SH)
    monkeypatch.setattr(pid_lock.time, "sleep", lambda _: fcntl.flock(asking, fcntl.LOCK_UN))
    with PidLock(path):
        assert holder(path) == os.getpid()
    os.close(asking)


def test_a_holder_on_another_host_is_named_with_its_host(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    assert pid_lock.other_host(path) is None
    with PidLock(path):
        assert pid_lock.other_host(path) is None
        monkeypatch.setattr(socket, "gethostname", lambda: "node7")
        assert pid_lock.other_host(path) == os.uname().nodename
    with PidLock(path):
        monkeypatch.undo()
        assert (holder(path), pid_lock.other_host(path)) == (os.getpid(), "node7")
    assert pid_lock.other_host(path) is None


def test_a_lock_of_an_earlier_version_names_no_host(tmp_path):
    path = tmp_path / "lock"
    with PidLock(path) as lock:
        os.ftruncate(lock.fileno(), 0)
        os.pwrite(lock.fileno(), b"123", 0)
        assert (holder(path), pid_lock.other_host(path)) == (123, None)
