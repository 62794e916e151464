"""OpenSSH into trials, by ``det ssh-config``: programs, terminals, copies and ports."""

import pytest
from tests.e2e.streams.conftest import StreamCluster
from tests.support.live_trials import Experiment

import subprocess
from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("streams")]


def test_ssh_runs_a_program_beside_a_trial(stream_cluster: StreamCluster, waiting: Experiment):
    home = Path(stream_cluster.environment["HOME"])
    done = stream_cluster.det("ssh-config")
    assert done.returncode == 0, done.stderr
    print((home/".ssh/detent/config").read_text())
    done = subprocess.run(["ssh", "-vv", "-F", str(home / ".ssh/detent/config"), f"det-trial-{waiting.trial_id}", "echo $DET_TRIAL_ID; wc -c; exit 3"], input=bytes(100000), capture_output=True, env=stream_cluster.client_environment, timeout=30)
    print(done.stderr.decode())
    assert (done.stdout, done.returncode) == (b"1\n100000\n", 3)
