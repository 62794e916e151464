"""A task that leaves processes behind: a child in a session of its own, and a grandchild that was forked twice."""

import os
import signal

import pytest
from tests.support import live_processes
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.torch]

LEAVING = """
import os, subprocess, sys
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
subprocess.Popen(sleep, start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, sleep)
    os._exit(0)
"""


def sleepers(experiment):
    return [pid for pid in experiment.processes if "time.sleep(600)" in " ".join(live_processes.command_of(pid))]


def start(cluster, tmp_path, **options):
    files = {"leaving__py": LEAVING}
    return create(cluster, MODELS["digits"], tmp_path, files=files, entrypoint=ENTRYPOINT, **options)


ENTRYPOINT = "python3 -c 'import leaving' && exec python3 -m determined.exec.harness trial:Trial"


@pytest.mark.long  # test_pause.py looks for processes after its pauses
def test_no_process_is_left_after_a_pause_and_after_the_end(cluster, tmp_path, same_as_straight):
    experiment = start(cluster, tmp_path, gates=("train-7",))
    experiment.at_gate("train-7")
    wait_until(lambda: len(sleepers(experiment)) == 2, what="both strays")
    experiment.pause()
    experiment.nothing_left()
    experiment.do("activate")
    same_as_straight(experiment)


def test_no_process_is_left_after_the_shim_was_killed(cluster, tmp_path, same_as_straight):
    """The shim could have ended them; the agent finds them instead."""
    experiment = start(cluster, tmp_path, held=("train-7",))
    experiment.at_gate("train-7")
    strays = set(wait_until(lambda: s if len(s := sleepers(experiment)) == 2 else None, what="both strays"))
    (shim,) = live_processes.shims(cluster.folder / "agent-1")
    os.kill(shim, signal.SIGKILL)
    wait_until(lambda: not strays & set(experiment.processes), what="the strays are ended")
    experiment.open_gate("train-7")
    same_as_straight(experiment)
