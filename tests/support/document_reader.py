"""The environment of a reader of the documentation: an empty home, and clusters on free ports."""

import re
import subprocess
import sys
from pathlib import Path

from tests.support.compiler import TASK_DEFAULTS, python_path
from tests.support.live_cluster import without_cluster
from tests.support.new_database import put_database

_UP = "det up --detach"


def reader_environment(home: Path) -> dict[str, str]:
    """Returns the environment of somebody who has never used ``det``."""
    environ = without_cluster()
    return environ | {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "PATH": f"{Path(sys.executable).parent}:{environ['PATH']}",
        "PYTHONPATH": python_path(),
        **TASK_DEFAULTS,
    }


def start_cluster(environ: dict[str, str], *, slots: int = 1) -> None:
    put_database(Path(environ["XDG_DATA_HOME"]) / "detent")
    command = on_any_port(f"{_UP} --slots {slots}")
    subprocess.run(command.split(), env=environ, check=True, capture_output=True)


def end_cluster(environ: dict[str, str]) -> None:
    subprocess.run(["det", "down", "--now"], env=environ, check=False, capture_output=True)


def on_any_port(command: str) -> str:
    """Returns the command with a free port for ``det up``, since another cluster may use the default port."""
    return f"{command} --port 0 --no-browser" if command.startswith(_UP) else command


def renumber(text: str, experiments: int, trials: int) -> str:
    """Adds the counts to the ids of experiments and trials, so that several pages can share a cluster.

    With 4 and 9, ``det experiment wait 1`` becomes ``det experiment wait 5``, and ``det trial logs 1 --tail 50``
    becomes ``det trial logs 10 --tail 50``. Flags without a value may stand before the id.
    """
    offsets = {"experiment": experiments, "trial": trials}
    return re.sub(
        r"\b(experiment|trial)(-| [a-z-]+ (?:-[a-z]+ )*| )(\d+)\b",
        lambda match: f"{match[1]}{match[2]}{int(match[3]) + offsets[match[1]]}",
        text,
    )
