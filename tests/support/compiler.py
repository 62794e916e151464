"""Training processes of tests load torch's compiler only where it is wanted; ``idle_compiler`` says why."""

import os
from pathlib import Path

IDLE_COMPILER = Path(__file__).with_name("idle_compiler")


def python_path() -> str:
    """For a process that the test starts itself."""
    return os.pathsep.join(filter(None, (str(IDLE_COMPILER), os.environ.get("PYTHONPATH"))))
