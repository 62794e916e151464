"""Commands with the unmodified command line of 0.38.1."""

import pytest
import yaml
from tests.e2e.official.test_cli import rows, table, until
from tests.support.official_cluster import OfficialCluster

pytestmark = [pytest.mark.e2e, pytest.mark.official, pytest.mark.budget(60, "starts the official client many times")]


def test_commands_are_run_listed_described_followed_and_killed(official: OfficialCluster):
    folder = official.folder / "command"
    folder.mkdir()
    (folder / "greet.txt").write_text("hello from the context\n")
    ran = official.det("cmd", "run", "--context", str(folder), "cat", "greet.txt")
    assert "hello from the context" in ran
    sleeping = official.det("cmd", "run", "--detach", "--config", "resources.slots=0", "sleep", "600").strip()
    until(lambda: row_of(official, sleeping)["state"] == "RUNNING")
    first = next(row["id"] for row in rows(official.det("cmd", "list", "--csv")) if row["id"] in ran)
    ended = row_of(official, first)
    assert (ended["state"], ended["exitStatus"], ended["username"]) == ("TERMINATED", "exited successfully", "admin")
    config = yaml.safe_load(official.det("cmd", "config", sleeping))
    assert (config["resources"]["slots"], config["entrypoint"]) == (0, ["sleep", "600"])
    assert table(official.det("cmd", "describe", sleeping))[0]["state"] == "RUNNING"
    assert "to 7" in official.det("cmd", "set", "priority", sleeping, "7")
    task = next(row for row in rows(official.det("task", "list", "--csv")) if row["Task ID"] == sleeping)
    assert (task["Slots Needed"], task["Name"]) == ("0", row_of(official, sleeping)["description"])
    official.det("cmd", "kill", sleeping[:8])
    until(lambda: row_of(official, sleeping)["state"] == "TERMINATED")
    for noun in ("cmd", "task"):
        assert "hello from the context" in official.det(noun, "logs", first)
    assert "invalid" in official.det("cmd", "run", "--config", "resources.slot=1", "ls", fails=True)


def row_of(official: OfficialCluster, command: str) -> dict[str, str]:
    return next(row for row in rows(official.det("cmd", "list", "--csv")) if row["id"] == command)
