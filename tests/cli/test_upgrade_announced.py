"""`det up` and a master that upgrades its database: the time limit for the start does not apply."""

import os
import sys
import time
from pathlib import Path

import pytest

from determined_cli.up import supervisor
from determined_cli.up.supervisor import Child

MASTER = """\
import sys
print("upgrading: the database", flush=True)
open(sys.argv[1]).read()
print("ready: here", flush=True)
"""


def test_the_start_deadline_does_not_apply_during_an_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    child = Child("master", [sys.executable, "-c", MASTER, str(gate)], tmp_path / "log", announced=True)
    messages: list[str] = []
    now = time.monotonic

    def on_upgrade(text: str) -> None:
        messages.append(text)
        monkeypatch.setattr(supervisor.time, "monotonic", lambda: now() + 3600)
        gate.write_text("go")

    child.start()
    try:
        assert child.announcement("ready: ", 60, on_upgrade) == "here"
        assert messages == ["upgrading: the database"]
    finally:
        child.signal(9)
        assert child.process is not None
        assert child.process.stdout is not None
        child.process.wait()
        child.process.stdout.close()
