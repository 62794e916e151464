"""Probes whether tasks of this agent can have mounts of their own."""

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from determined_agent.environments.source_roots import SOURCE_ROOTS

_TRY = """
import os, sys
sys.path += sys.argv[1].split(os.pathsep)
from determined_agent.task_process.namespaces import Mount, Namespace
Namespace(mounts=(Mount(sys.argv[2], "/run/detent-try"),), root=sys.argv[3]).enter(proc=False)
"""

_CLONE_NEWNS = 0x00020000
_TRY_ROOT = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare({_CLONE_NEWNS}) != 0)"


def _kept(probe: Callable[[], bool]) -> Callable[[], bool]:
    """Returns ``probe`` with a memory for its answer. No answer in time is False for now, and asked for again."""
    cached = functools.cache(probe)

    @functools.wraps(probe)
    def answer() -> bool:
        try:
            return cached()
        except subprocess.TimeoutExpired:  # functools.cache forgets exceptions
            return False

    return answer


@_kept
def can_mount_as_root() -> bool:
    """Returns True if this process is root and may mount without a user namespace."""
    argv = [sys.executable, "-I", "-S", "-c", _TRY_ROOT]
    return _succeeds(argv)


@_kept
def can_mount() -> bool:
    """Returns True if a child process could mount a folder."""
    with tempfile.TemporaryDirectory(prefix="detent-") as folder:
        root = Path(folder) / "root"
        root.mkdir()
        argv = [sys.executable, "-I", "-S", "-c", _TRY, os.pathsep.join(SOURCE_ROOTS), folder, str(root)]
        return _succeeds(argv)


def _succeeds(argv: list[str]) -> bool:
    return subprocess.run(argv, capture_output=True, timeout=30, check=False).returncode == 0
