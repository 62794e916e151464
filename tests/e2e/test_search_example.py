"""``examples/search`` completes 64 trials while a better job preempts them and an agent is killed and restarted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.e2e
@pytest.mark.torch
@pytest.mark.long
@pytest.mark.timeout(2400)
def test_every_trial_of_the_search_example_is_accounted_for(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "examples" / "search" / "run.py", "--home", tmp_path / "home"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    match = re.search(r"64 trials, all accounted for; (\d+) of them were preempted and resumed", ran.stdout)
    assert match, ran.stdout[-4000:]
    assert int(match[1]) >= 1
