"""The tutorial, followed to the letter: its files are written and its commands typed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.document_runner import follow
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "index.md"


def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    environ |= {
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PATH": f"{Path(sys.executable).parent}:{environ['PATH']}",
    }

    def det(*words: str) -> str:
        return subprocess.run(["det", *words], env=environ, capture_output=True, text=True, check=True).stdout

    def has_steps() -> bool:
        return bool(json.loads(det("trial", "describe", "2", "--metrics", "--json"))["workloads"])

    attempts: list[int] = []

    def prepare(command: str) -> str:
        if command == "det up --detach":
            return f"{command} --port 0 --no-browser"
        if command.startswith("det experiment pause"):
            wait_until(has_steps, within=60, what="a step of the trial")
        if command.startswith("det experiment activate"):
            wait_until(lambda: "PAUSED" in det("experiment", "list"), within=60, what="a free slot")
        if command == "det down":
            attempts.extend(each["run_id"] for each in json.loads(det("trial", "describe", "2", "--json"))["attempts"])
        return command

    try:
        follow(PAGE, tmp_path, environ, prepare=prepare)
    finally:
        subprocess.run(["det", "down", "--now"], env=environ, check=False, capture_output=True)
    assert attempts == [1, 2], "the trial was paused while it trained, and went on"
