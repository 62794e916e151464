"""`det-master add-agent` prints a command that a shell of another machine can run unchanged."""

import subprocess
from pathlib import Path

import pytest

from determined_master.__main__ import main
from determined_master.auth.secrets import Secrets


def test_the_printed_command_stores_the_token_and_starts_the_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, other_machine = tmp_path / "data", tmp_path / "there"
    data.mkdir()
    other_machine.mkdir()
    secrets = Secrets.load(data)
    assert main(["add-agent", "http://192.168.1.10:8080", "--data", str(data)]) == 0
    command = capsys.readouterr().out
    (other_machine / "docker-compose").write_text('#!/bin/sh\necho "$DETENT_MASTER $*" > asked\n')
    (other_machine / "docker-compose").chmod(0o755)
    subprocess.run(["sh", "-c", command], cwd=other_machine, env={"PATH": f"{other_machine}:/usr/bin:/bin"}, check=True)
    assert (other_machine / "agent-token").read_text().strip() == secrets.join_token
    assert (other_machine / "agent-token").stat().st_mode & 0o777 == 0o600
    recorded = (other_machine / "asked").read_text()
    assert recorded == "http://192.168.1.10:8080 --file docker-compose.agent.yml up --detach\n"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("gpu-1:8080", "is no address of a master"),
        ("http://localhost:8080", "leads another machine to itself"),
        ("http://192.168.1.10:8080", "no master has started there yet"),
    ],
)
def test_add_agent_refuses_an_address_that_cannot_work(
    url: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["add-agent", url, "--data", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
