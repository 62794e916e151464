"""``det down``: its message and exit code, by the outcome of ending the tasks."""

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import stub_agent
from tests.support.waiting import wait_until

from determined_cli.up import data_folder, graceful_shutdown, local_cluster
from determined_launch import pid_lock


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ((0, []), "nothing runs in"),
        ((1, ["abc", "def"]), "these tasks could not be stopped and still run: abc, def"),
        ((2, []), "could not check whether tasks still run"),
    ],
)
def test_down_exits_with_0_only_if_all_tasks_have_ended(
    outcome: tuple[int, list[str]],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(local_cluster, "end_tasks", lambda _folder: outcome)
    assert local_cluster.run_down(argparse.Namespace(data=str(tmp_path), now=False)) == outcome[0]
    assert text in capsys.readouterr().err


def test_agents_of_local_pools_end_with_their_cluster(tmp_path: Path):
    folder = tmp_path / "local-agents" / "burst-1"
    folder.mkdir(parents=True)
    (tmp_path / "local-agents" / "gone").mkdir()
    argv = [sys.executable, "-P", stub_agent.__file__, "--pool", "burst", "--data", str(folder)]
    with subprocess.Popen(argv) as agent:
        wait_until(lambda: pid_lock.holder(folder / "agent.lock") == agent.pid)
        assert graceful_shutdown.end_tasks(tmp_path) == (0, [])
        assert agent.wait(60) == 0


def test_down_sends_no_signal_to_a_cluster_of_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "login2")
    with data_folder.held(tmp_path):
        monkeypatch.undo()
        monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process of this machine gets a signal"))
        with pytest.raises(data_folder.InUse, match="is in use by det up on login2; stop it there with det down"):
            local_cluster.run_down(argparse.Namespace(data=str(tmp_path), now=False))
