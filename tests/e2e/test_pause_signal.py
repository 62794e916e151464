"""Plain scripts, which know nothing of Detent, are paused by a signal and continue from what they saved."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from tests.support import plain_scripts
from tests.support.document_reader import end_cluster, reader_environment, start_cluster
from tests.support.document_runner import follow
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "pausing-scripts.md"


def test_a_shell_loop_paused_by_a_signal_continues_where_it_was(cluster, tmp_path):
    """It ends with code 7 after the signal, with ``max_restarts: 0``."""
    script = plain_scripts.create(cluster, tmp_path, {"loop.sh": plain_scripts.LOOP}, "bash loop.sh")
    script.has_lines("steps", 3)
    script.pause()
    script.nothing_left()
    assert script.trials[0]["restarts"] == 0
    assert len(script.steps) < plain_scripts.STEPS
    script.do("activate")
    script.ended()
    assert script.steps == list(range(1, plain_scripts.STEPS + 1))
    assert script.progress["runId"] == 2
    assert any("SIGUSR1 with code 7; the trial continues later" in line for line in script.log)


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.budget(180, "follows a page with trainings of two frameworks")
@pytest.mark.skipif(
    any(importlib.util.find_spec(each) is None for each in ("transformers", "pytorch_lightning")),
    reason="the frameworks are not installed: make .venv/frameworks",
)
def test_the_page_about_pausing_plain_scripts_works_as_written(tmp_path):
    """A loop of a shell, Lightning and the Trainer of Hugging Face are paused once they train."""
    environ = reader_environment(tmp_path)

    def det(*words: str) -> str:
        return subprocess.run(["det", *words], env=environ, capture_output=True, text=True, check=True).stdout

    def prepare(command: str) -> str:
        *_, number = command.split()
        if command.startswith("det experiment pause"):
            trains = "'loss'" if number == "3" else "from step 0"
            wait_until(lambda: trains in det("trial", "logs", number), within=90, what="the script trains")
        if command.startswith("det experiment activate"):
            wait_until(lambda: "continues later" in det("trial", "logs", number), within=60, what="the script has left")
        return command

    start_cluster(environ)
    try:
        logs = [output for output in follow(PAGE, tmp_path, environ, prepare=prepare) if "finished at step" in output]
    finally:
        end_cluster(environ)
    starts = [re.findall(r"\|\| from (?:step |checkpoint-)?(\w+)", log) for log in logs]
    assert [first for first, _ in starts] == ["0", "0", "None"]
    assert all(int(second) > 0 for _, second in starts)
