"""Commands on a cluster: output, exit code, context, hook, kill, and restarts of the master and the agent."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.test_up import Up
from tests.support.live_cluster import LiveCluster
from tests.support.live_processes import carriers
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

SHOW = """
import json, os, sys
import determined as det
info = det.get_cluster_info()
print("SEEN", json.dumps([info.task_type, info.task_id, info.slot_ids, "DET_TRIAL_ID" in os.environ]))
print("HOOK", os.environ.get("FROM_HOOK"), "FILES", sorted(os.listdir(".")))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    created = Up(tmp_path)
    created.start()
    yield created
    created.close()


def described(up: Up, command: str) -> dict[str, object]:
    row: dict[str, object] = json.loads(up.det("command", "describe", command, "--json").stdout)[0]
    return row


def test_a_command_prints_its_output_and_gives_its_exit_code(up: Up, tmp_path: Path):
    context = tmp_path / "context"
    context.mkdir()
    (context / "show.py").write_text(SHOW)
    (context / "startup-hook.sh").write_text("export FROM_HOOK=yes\n")
    ran = up.det("cmd", "run", "-c", str(context), "python3", "show.py", "7", check=False)
    assert ran.returncode == 7, ran.stderr
    line = next(line for line in ran.stdout.splitlines() if "SEEN" in line)
    kind, task_id, slots, is_trial = json.loads(line.partition("SEEN ")[2])
    assert (kind, slots, is_trial) == ("COMMAND", [0], False)
    assert "HOOK yes FILES ['show.py', 'startup-hook.sh']" in ran.stdout
    assert "the command failed: " in ran.stdout
    assert f"Launched command {task_id}" in ran.stderr
    assert described(up, task_id[:8])["exit_code"] == 7
    assert up.det("command", "logs", task_id[:8]).stdout == ran.stdout

    shell = up.det("command", "run", "--config", "resources.slots=0", "echo one | tr o 0; pwd")
    assert shell.returncode == 0
    assert "0ne" in shell.stdout
    listed = json.loads(up.det("cmd", "list", "--json").stdout)
    assert [(row["state"], row["slots"]) for row in listed] == [("TERMINATED", 0), ("TERMINATED", 1)]


def test_a_killed_command_leaves_no_process(cluster: LiveCluster):
    body = {"config": {"entrypoint": "sleep 600 & echo begun; sleep 600"}}
    command = str(cluster.session.post("/api/v1/commands", body)["command"]["id"])
    wait_until(lambda: "begun" in log(cluster, command))
    assert carriers(cluster.cluster_id, command) != []
    cluster.session.post(f"/api/v1/commands/{command}/kill", {})
    ended = wait_until(lambda: ended_command(cluster, command))
    assert (ended["exitStatus"], ended["exitCode"]) == ("killed by a user", None)
    wait_until(lambda: carriers(cluster.cluster_id, command) == [])


def test_a_command_goes_on_while_master_and_agent_are_killed_and_started_again(cluster: LiveCluster, tmp_path: Path):
    go = tmp_path / "go"
    script = f"echo begun; until [ -e {go} ]; do sleep 0.1; done; echo done; exit 5"
    body = {"config": {"entrypoint": script}}
    command = str(cluster.session.post("/api/v1/commands", body)["command"]["id"])
    wait_until(lambda: "begun" in log(cluster, command))
    agent = cluster.agents["agent-1"]
    agent.end(signal.SIGKILL)
    cluster.kill_master()
    cluster.start_master()
    cluster.restart_agent()
    go.touch()
    ended = wait_until(lambda: ended_command(cluster, command))
    assert (ended["exitCode"], log(cluster, command).count("begun"), log(cluster, command).count("done")) == (5, 1, 1)
    allocations = cluster.session.get(f"/api/v1/tasks/{command}")["task"]["allocations"]
    assert len(allocations) == 1


def log(cluster: LiveCluster, command: str) -> list[str]:
    return [str(line["log"]).removesuffix("\n") for line in cluster.session.stream(f"/api/v1/tasks/{command}/logs", {})]


def ended_command(cluster: LiveCluster, command: str) -> dict[str, object] | None:
    command_now: dict[str, object] = cluster.session.get(f"/api/v1/commands/{command}")["command"]
    return command_now if command_now["state"] == "STATE_TERMINATED" else None
