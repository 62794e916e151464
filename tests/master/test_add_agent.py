"""`det-master add-agent` prints a command that a shell of another machine runs as it is."""

import subprocess
from pathlib import Path

import pytest

from determined_master.__main__ import main
from determined_master.secrets import Secrets


def test_the_command_keeps_the_token_and_starts_the_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, there = tmp_path / "data", tmp_path / "there"
    data.mkdir()
    there.mkdir()
    secrets = Secrets.load(data)
    assert main(["add-agent", "http://192.168.1.10:8080", "--data", str(data)]) == 0
    command = capsys.readouterr().out
    (there / "docker-compose").write_text('#!/bin/sh\necho "$DETENT_MASTER $*" > asked\n')
    (there / "docker-compose").chmod(0o755)
    subprocess.run(["sh", "-c", command], cwd=there, env={"PATH": f"{there}:/usr/bin:/bin"}, check=True)
    assert (there / "agent-token").read_text().strip() == secrets.join_token
    assert (there / "agent-token").stat().st_mode & 0o777 == 0o600
    asked = (there / "asked").read_text()
    assert asked == "http://192.168.1.10:8080 --file docker-compose.agent.yml up --detach\n"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("gpu-1:8080", "is no address of a master"),
        ("http://localhost:8080", "leads another machine to itself"),
        ("http://192.168.1.10:8080", "no master has started there yet"),
    ],
)
def test_what_cannot_work_is_said(url: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add-agent", url, "--data", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
