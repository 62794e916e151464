"""The unmodified command line of 0.38.1 beside experiments: users, agents, slots, the master and unsupported commands."""

import json

import pytest
from tests.e2e.official.configs import SCRIPT, script
from tests.e2e.official.test_cli import rows, table
from tests.support.official_cluster import OfficialCluster, until

pytestmark = [pytest.mark.e2e, pytest.mark.official, pytest.mark.budget(60, "starts the official client many times")]
LATER = ["model list", "notebook list"]
SECRET = "Another-Word-9"


def test_users_are_created_renamed_deactivated_and_log_in_with_a_new_password(official: OfficialCluster):
    official.det("user", "create", "bob", "--password", SECRET)
    assert "'bob'" in official.det("user", "whoami", user="bob", password=SECRET)
    official.det("user", "edit", "bob", "--display-name", "Bobby")
    official.det("user", "rename", "bob", "rob")
    users = {row["Username"]: row for row in table(official.det("user", "list"))}
    assert (users["rob"]["Display Name"], users["rob"]["Admin"], users["rob"]["Active"]) == ("Bobby", "False", "True")
    assert "admin" in official.det("master", "config", "show", user="rob", password=SECRET, fails=True)
    official.det("user", "deactivate", "rob")
    assert "not active" in official.det("user", "whoami", user="rob", password=SECRET, fails=True)
    official.det("user", "activate", "rob")
    new = SECRET + "x"
    official.det("user", "change-password", "rob", typed=f"{new}\n{new}\n")
    assert "Invalid username/password" in official.det("user", "login", "rob", typed=f"{SECRET}\n", fails=True)
    official.det("user", "login", "rob", typed=f"{new}\n")
    official.det("user", "logout", user="rob", password=new)
    official.det("user", "login", "admin", typed=f"{official.password}\n")


def test_a_user_is_linked_with_a_user_of_the_agents(official: OfficialCluster):
    official.det("user", "create", "ada", "--password", SECRET)
    names = ("--agent-uid", "1001", "--agent-user", "ada", "--agent-gid", "1002", "--agent-group", "lab")
    official.det("user", "link-with-agent-user", "ada", *names)
    linked = official.api.get("/api/v1/users/ada/by-username")["user"]["agentUserGroup"]
    assert linked == {"agentUid": 1001, "agentUser": "ada", "agentGid": 1002, "agentGroup": "lab"}


def test_agents_and_slots_are_listed_disabled_and_enabled(official: OfficialCluster):
    agent = rows(official.det("agent", "list", "--csv"))[0]
    assert (agent["Slots"], agent["Resource Pool"], agent["Enabled"]) == ("2", "default", "True")
    name = agent["Agent ID"]
    assert json.loads(official.det("agent", "list", "--json"))[0]["id"] == name
    assert [row["Slot ID"] for row in rows(official.det("slot", "list", "--csv"))] == ["0", "1"]
    official.det("slot", "disable", name, "1")
    assert [row["Enabled"] for row in rows(official.det("slot", "list", "--csv"))] == ["True", "False"]
    official.det("slot", "enable", name, "1")
    official.det("agent", "disable", name)
    assert rows(official.det("agent", "list", "--csv"))[0]["Enabled"] == "False"
    official.det("agent", "enable", name)
    assert rows(official.det("agent", "list", "--csv"))[0]["Enabled"] == "True"


def test_the_client_reads_the_master_and_its_workspaces(official: OfficialCluster):
    assert official.det("--version").strip() == "det 0.38.1"
    assert official.det("version").count("0.38.1") >= 2
    assert "clusterId" in official.det("master", "info")
    assert json.loads(official.det("master", "config", "show", "--json"))["resource_manager"]["type"] == "agent"
    assert "Application startup complete" in official.det("master", "logs")
    assert [row["Name"] for row in table(official.det("workspace", "list"))] == ["Uncategorized"]
    assert [row["Name"] for row in table(official.det("project", "list", "Uncategorized"))] == ["Uncategorized"]
    official.det("workspace", "describe", "Uncategorized")
    official.det("project", "describe", "Uncategorized", "Uncategorized")
    official.det("project", "list-experiments", "Uncategorized", "Uncategorized")


def test_the_queue_is_listed_and_changed(official: OfficialCluster):
    (agent,) = rows(official.det("agent", "list", "--csv"))
    official.det("agent", "disable", "--drain", agent["Agent ID"])
    created = [official.create(script(f"waits-{number}"), SCRIPT) for number in range(2)]
    try:
        until(lambda: len(rows(official.det("job", "list", "--csv"))) == 2)
        first, second = (official.experiment(number)["jobId"] for number in created)
        official.det("job", "update", first, "--priority", "60")
        official.det("job", "update-batch", f"{second}.weight=2")
        jobs = rows(official.det("job", "list", "--csv"))
        assert [row["ID"] for row in jobs] == [second, first]
        assert [row["Priority"] for row in jobs] == ["42", "60"]
        assert "between 1 and 99" in official.det("job", "update", first, "--priority", "0", fails=True)
    finally:
        official.det("agent", "enable", agent["Agent ID"])
        for number in created:
            official.det("experiment", "kill", number)


def test_an_unsupported_command_reports_that_the_master_does_not_support_it(official: OfficialCluster):
    for verb in LATER:
        assert "this master does not support" in official.det(*verb.split(), fails=True)


def test_a_search_is_previewed(official: OfficialCluster):
    searcher = {"name": "adaptive_asha", "metric": "loss", "max_trials": 16, "time_metric": "batches", "max_time": 64}
    config = official.folder / "search.yaml"
    config.write_text(json.dumps({"name": "search", "entrypoint": "python3 run.py", "searcher": searcher}))
    printed = official.det("preview-search", config)
    for number, batches in ((9, 4), (5, 16), (2, 64)):
        assert any(str(number) in line and str(batches) in line for line in printed.splitlines()), printed
