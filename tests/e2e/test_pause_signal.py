"""Plain scripts, which know nothing of Detent, are paused by a signal and continue from what they saved."""

import pytest
from tests.support import plain_scripts
from tests.support.plain_scripts import PlainScript

pytestmark = pytest.mark.e2e

STEPS = 40
LOOP = f"""
step=$(cat "$SAVES/state" 2>/dev/null || echo 0)
trap 'echo $step > "$SAVES/state"; exit 7' USR1
while [ "$step" -lt {STEPS} ]; do
    step=$((step + 1))
    echo $step >> "$SAVES/steps"
    sleep 0.1
done
"""


def steps_of(script: PlainScript) -> list[int]:
    return [int(line) for line in script.lines("steps")]


def test_a_shell_loop_paused_by_a_signal_continues_where_it_was(cluster, tmp_path):
    """It ends with code 7 after the signal, with ``max_restarts: 0``."""
    script = plain_scripts.create(cluster, tmp_path, {"loop.sh": LOOP}, "bash loop.sh")
    script.has_lines("steps", 3)
    script.pause()
    script.nothing_left()
    assert script.trials[0]["restarts"] == 0
    assert len(steps_of(script)) < STEPS
    script.do("activate")
    script.ended()
    assert steps_of(script) == list(range(1, STEPS + 1))
    assert script.progress["runId"] == 2
    assert any("SIGUSR1 with code 7; the trial continues later" in line for line in script.log)
