"""The unmodified command line of 0.38.1: commands."""

import pytest
import yaml
from tests.e2e.official.test_cli import rows, table, until
from tests.support.official_cluster import OfficialCluster

pytestmark = [pytest.mark.e2e, pytest.mark.official]


def test_commands_are_run_listed_described_followed_and_killed(official: OfficialCluster):
    folder = official.folder / "command"
    folder.mkdir()
    (folder / "greet.txt").write_text("hello from the context\n")
    ran = official.det("cmd", "run", "--context", str(folder), "cat", "greet.txt")
    assert "hello from the context" in ran
    sleeping = official.det("cmd", "run", "--detach", "--config", "resources.slots=0", "sleep", "600").strip()
    until(lambda: of(official, sleeping)["state"] == "RUNNING")
    first = next(each["id"] for each in rows(official.det("cmd", "list", "--csv")) if each["id"] in ran)
    ended = of(official, first)
    assert (ended["state"], ended["exitStatus"], ended["username"]) == ("TERMINATED", "exited successfully", "admin")
    config = yaml.safe_load(official.det("cmd", "config", sleeping))
    assert (config["resources"]["slots"], config["entrypoint"]) == (0, ["sleep", "600"])
    assert table(official.det("cmd", "describe", sleeping))[0]["state"] == "RUNNING"
    assert "to 7" in official.det("cmd", "set", "priority", sleeping, "7")
    task = next(each for each in rows(official.det("task", "list", "--csv")) if each["Task ID"] == sleeping)
    assert (task["Slots Needed"], task["Name"]) == ("0", of(official, sleeping)["description"])
    official.det("cmd", "kill", sleeping[:8])
    until(lambda: of(official, sleeping)["state"] == "TERMINATED")
    for noun in ("cmd", "task"):
        assert "hello from the context" in official.det(noun, "logs", first)
    assert "invalid" in official.det("cmd", "run", "--config", "resources.slot=1", "ls", fails=True)


def of(official: OfficialCluster, command: str) -> dict[str, str]:
    return next(each for each in rows(official.det("cmd", "list", "--csv")) if each["id"] == command)
