"""Delays the import of torch's compiler in the tests' training processes; see ``idle_compiler``."""

import os
from pathlib import Path

IDLE_COMPILER = Path(__file__).with_name("idle_compiler")


def python_path() -> str:
    """Returns the PYTHONPATH for a process that the test starts itself."""
    return os.pathsep.join(filter(None, (str(IDLE_COMPILER), os.environ.get("PYTHONPATH"))))
