"""Shells with the unmodified command line of 0.38.1, as far as it needs no SSH."""

import pytest
import yaml
from tests.e2e.official.test_cli import rows, until
from tests.support.official_cluster import OfficialCluster

pytestmark = [pytest.mark.e2e, pytest.mark.official, pytest.mark.budget(60, "starts the official client many times")]


def test_shells_are_started_listed_changed_and_killed(official: OfficialCluster):
    config = ("--config", "resources.slots=0", "--config", "idle_timeout=30m")
    shell = official.det("shell", "start", "--detach", *config).strip()
    until(lambda: row_of(official, shell)["state"] == "RUNNING")
    assert (row_of(official, shell)["username"], row_of(official, shell)["exitStatus"]) == ("admin", "")
    shown = yaml.safe_load(official.det("shell", "config", shell))
    assert (shown["resources"]["slots"], shown["idle_timeout"]) == (0, 1800)
    assert "to 7" in official.det("shell", "set", "priority", shell, "7")
    task = next(row for row in rows(official.det("task", "list", "--csv")) if row["Task ID"] == shell)
    assert task["Name"] == row_of(official, shell)["description"]
    official.det("shell", "kill", shell[:8])
    until(lambda: row_of(official, shell)["state"] == "TERMINATED")
    assert row_of(official, shell)["exitStatus"] == "killed by a user"
    assert "exit code: 137" in official.det("shell", "logs", shell)
    assert "invalid" in official.det("shell", "start", "--detach", "--config", "idle_timeout=soon", fails=True)


def row_of(official: OfficialCluster, shell: str) -> dict[str, str]:
    return next(row for row in rows(official.det("shell", "list", "--csv")) if row["id"] == shell)
