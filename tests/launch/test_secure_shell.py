"""The programs that ``launch.remote_shell: ssh`` needs. tests/e2e/launchers/test_machines.py runs a real sshd."""

import pytest

from determined_launch import secure_shell
from determined_launch.errors import LaunchError


def test_a_missing_sshd_is_an_error_with_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(secure_shell, "SYSTEM_FOLDERS", "/nowhere")
    with pytest.raises(LaunchError, match="apt-get install openssh-server"):
        secure_shell.find("sshd", "openssh-server")
