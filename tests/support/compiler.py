"""Delays the import of torch's compiler in the tests' training processes; see ``idle_compiler``."""

import json
import os
from pathlib import Path

IDLE_COMPILER = Path(__file__).with_name("idle_compiler")
TASK_DEFAULTS = {
    "DET_MASTER_TASK_CONTAINER_DEFAULTS": json.dumps({"environment_variables": [f"PYTHONPATH={IDLE_COMPILER}"]})
}
"""The setting of a master that delays the import in every task."""


def python_path() -> str:
    """Returns the PYTHONPATH for a process that the test starts itself."""
    return os.pathsep.join(filter(None, (str(IDLE_COMPILER), os.environ.get("PYTHONPATH"))))
