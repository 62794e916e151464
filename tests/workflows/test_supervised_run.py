"""Runs of a workflow on this machine: which of them ``stop`` ends."""

import os
import socket
from pathlib import Path

import pytest

from determined.errors import Conflict
from determined_workflows import supervised_run
from determined_workflows.runner import output_folder


def test_stop_sends_no_signal_to_a_run_of_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node7")
    with output_folder.locked(tmp_path):
        monkeypatch.undo()
        monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process of this machine gets a signal"))
        with pytest.raises(Conflict, match=rf"\(process {os.getpid()}\) is on node7; end it there"):
            supervised_run.stop(tmp_path)


def test_stop_of_a_folder_in_which_nothing_runs_says_so(tmp_path: Path) -> None:
    assert supervised_run.stop(tmp_path) is False
