"""``launch.remote_shell: ssh`` with the real sshd. tests/e2e/launchers/test_machines.py uses it between machines."""

import subprocess
from types import SimpleNamespace

import pytest
from tests.support.free_ports import free_port

from determined_launch import secure_shell, worker_environment
from determined_launch.errors import LaunchError


def test_a_missing_sshd_is_an_error_with_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(secure_shell, "SYSTEM_FOLDERS", "/nowhere")
    with pytest.raises(LaunchError, match="apt-get install openssh-server"):
        secure_shell.find("sshd", "openssh-server")


@pytest.fixture
def started(monkeypatch):
    """Ends the programs that the test has started."""
    programs = []

    class Recorded(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            programs.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    yield
    for program in programs:
        program.kill()
        program.wait()


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("name", ["plain", "my data", 'a "b" %h #c'])
def test_ssh_enters_a_run_folder_whatever_characters_its_path_has(tmp_path, name):
    run = tmp_path / name
    run.mkdir()
    port, answers = free_port(), []
    connection = SimpleNamespace(send_json=lambda _, answer: answers.append(answer))
    secure_shell.Sshd(run, "127.0.0.1", port)(connection, {"public_key": secure_shell.make_key(run)})
    programs = secure_shell.write(run, {"chief": ("127.0.0.1", port)}, [answers[0]["host_key"]])
    command = [programs / "ssh", "chief", f"printenv {worker_environment.MARK}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (ended.stdout, ended.stderr) == (f"{run}\n", "")
