"""Removes a folder that a task has filled, however deep it is."""

import contextlib
import logging
import os
import shutil
import subprocess
from pathlib import Path

logger = logging.getLogger(__name__)

RM_SECONDS = 3600.0


def remove_tree(path: Path) -> bool:
    """Removes a folder with all below it; follows no link. Returns True if it is gone. Blocking.

    ``shutil`` fails below a depth of about a thousand folders, which ``rm`` does not, and waits for a writer where a
    task has put a fifo.
    """
    if path.is_dir() and not path.is_symlink():
        with contextlib.suppress(RecursionError):
            shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        try:
            subprocess.run(["rm", "-rf", "--one-file-system", "--", str(path)], timeout=RM_SECONDS, capture_output=True)
        except (OSError, subprocess.TimeoutExpired) as problem:
            logger.warning("cannot remove %s: %s", path, problem)
    return not os.path.lexists(path)
