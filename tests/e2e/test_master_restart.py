"""A stopped or killed master: polls are answered, and writes that it answered with 200 are stored."""

import contextlib
import hashlib
import http.client
import signal
import sqlite3
import time

import pytest
from tests.support.live_cluster import live_cluster
from tests.support.live_models import SCRIPT
from tests.support.live_trials import create
from tests.support.waiting import wait_until

from determined.client.session import Session
from determined_master.auth.secrets import Secrets

pytestmark = [pytest.mark.e2e, pytest.mark.budget(90, "kills the master after each kind of request")]
POLL_SECONDS = 60
UUID = "11111111-2222-3333-4444-555555555555"


def test_a_master_with_100_open_polls_stops_and_starts_without_delay(tmp_path):
    """Polls that may wait for a minute are answered at the stop, and delay neither the stop nor the next start.
    bench/recovery.py measures the start."""
    with live_cluster(tmp_path / "cluster") as cluster:
        experiment = create(cluster, SCRIPT, tmp_path, held=("step-0-1",))
        experiment.at_gate("step-0-1")
        path = f"/api/v1/allocations/{experiment.task_id}.1/signals/preemption?timeoutSeconds={POLL_SECONDS}"
        token = {"Authorization": cluster.session.headers["Authorization"]}
        polls = [http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=90) for _ in range(100)]
        for poll in polls:
            poll.request("GET", path, headers=token)
        experiment.at_step(1)
        # The answer on a later connection proves that the master has read the requests on the earlier ones.
        behind = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=90)
        behind.request("GET", "/health")
        assert behind.getresponse().read()
        behind.close()
        began = time.monotonic()
        # an orderly end, after which uvicorn raises the signal again
        assert cluster.master.end(signal.SIGTERM) in (0, -signal.SIGTERM)
        exited = time.monotonic() - began
        cluster.start_master()
        took = time.monotonic() - began
        print(f"exited after {exited:.2f} s, up again after {took:.2f} s")
        for poll in polls:
            assert poll.getresponse().read() == b'{"preempt":false}'
            poll.close()
        assert took < POLL_SECONDS / 2
        experiment.open_gate("step-0-1")
        experiment.ended()
        assert experiment.progress["runId"] == 1


@pytest.fixture
def agentless(tmp_path):
    """Yields a master without agents, with one waiting and one paused experiment."""
    with live_cluster(tmp_path / "cluster", slots=0) as cluster:
        folder = cluster.folder / "experiments"
        cluster.waiting = create(cluster, SCRIPT, folder / "waiting")
        cluster.paused = create(cluster, SCRIPT, folder / "paused", activate=False)
        wait_until(lambda: cluster.waiting.progress["runId"] == 1, what="an attempt that waits for slots")
        yield cluster


def metric(cluster):
    values = {"trialRunId": 1, "stepsCompleted": 4, "metrics": {"avgMetrics": {"loss": 0.5}}}
    path = f"/api/v1/trials/{cluster.waiting.trial_id}/metrics"
    return "POST", path, {"group": "training", "metrics": values}


def checkpoint(cluster):
    body = {
        "uuid": UUID,
        "taskId": cluster.waiting.task_id,
        "allocationId": f"{cluster.waiting.task_id}.1",
        "resources": {"state.json": "2"},
        "metadata": {"steps_completed": 4},
        "state": "STATE_COMPLETED",
        "reportTime": "2026-01-01T00:00:00Z",
    }
    return "POST", "/api/v1/checkpoints", body


def session_for(cluster, name):
    """Returns the session for a write: the admin's or, for a checkpoint, that of the trial's own task."""
    if name != "checkpoint":
        return contextlib.nullcontext(cluster.session)
    return Session(cluster.url, token=Secrets.load(cluster.data).task_token(f"{cluster.waiting.task_id}.1"))


def log_line(cluster):
    line = {"taskId": cluster.waiting.task_id, "log": "a line that stays", "timestamp": "2026-01-01T00:00:00Z"}
    return "POST", "/api/v1/task/logs", {"logs": [line]}


def shown(cluster, experiment):
    return cluster.session.get(f"/api/v1/experiments/{experiment.id}")["experiment"]


def trial(cluster):
    return cluster.session.get(f"/api/v1/trials/{cluster.waiting.trial_id}")["trial"]


def state_of_checkpoint(cluster):
    return cluster.session.get(f"/api/v1/checkpoints/{UUID}")["checkpoint"]["state"]


def attempt(cluster):
    """Returns the newest allocation of the waiting trial in any state."""
    return stored(cluster, "SELECT id FROM allocations ORDER BY created_at LIMIT 1")


def newest_experiment(cluster, *, create=False):
    """Returns the newest experiment. With ``create`` it creates an active one first."""
    if create:
        body = {"config": SCRIPT.configured(), "parentId": cluster.paused.id, "activate": True}
        cluster.session.post("/api/v1/experiments", body)
    return cluster.session.get("/api/v1/experiments", {"orderBy": "ORDER_BY_DESC"})["experiments"][0]


def joined_agent(cluster):
    """Starts an agent with one slot unless it exists, and returns its id. It outlives restarts of the master."""
    if "late" not in cluster.agents:
        cluster.start_agent("late", slots=1)
    return "late"


def name_of(url, token):
    with Session(url, token=token) as session:
        return session.get("/api/v1/me")["user"]["username"]


def row(cluster, query):
    with contextlib.closing(sqlite3.connect(cluster.data / "master.sqlite")) as connection:
        return connection.execute(query).fetchone()


def stored(cluster, query):
    """Returns one value of the database, for facts that the API does not show."""
    return row(cluster, query)[0]


def users(cluster):
    return {user["username"]: user for user in cluster.session.get("/api/v1/users")["users"]}


WRITES = {
    "metric": (metric, lambda c: [r["totalBatches"] for r in c.waiting.reports("training")] == [4]),
    "checkpoint": (checkpoint, lambda c: c.session.get(f"/api/v1/checkpoints/{checkpoint(c)[2]['uuid']}")),
    "log": (log_line, lambda c: "a line that stays" in c.waiting.log),
    "metadata": (
        lambda c: ("POST", f"/api/v1/runs/{c.waiting.trial_id}/metadata", {"metadata": {"a": 1}}),
        lambda c: c.session.get(f"/api/v1/runs/{c.waiting.trial_id}/metadata")["metadata"] == {"a": 1},
    ),
    "label": (
        lambda c: ("PUT", f"/api/v1/experiments/{c.paused.id}/labels/kept", None),
        lambda c: shown(c, c.paused)["labels"] == ["kept"],
    ),
    "patch": (
        lambda c: ("PATCH", f"/api/v1/experiments/{c.paused.id}", {"name": "renamed"}),
        lambda c: shown(c, c.paused)["name"] == "renamed",
    ),
    "create": (
        lambda c: ("POST", "/api/v1/experiments", {"config": SCRIPT.configured(), "parentId": c.paused.id}),
        lambda c: c.session.get("/api/v1/experiments")["pagination"]["total"] == 3,
    ),
    "activate": (
        lambda c: ("POST", f"/api/v1/experiments/{c.paused.id}/activate", {}),
        lambda c: c.paused.state in ("ACTIVE", "QUEUED"),
    ),
    "pause": (
        lambda c: ("POST", f"/api/v1/experiments/{c.waiting.id}/pause", {}),
        lambda c: c.waiting.state == "PAUSED",
    ),
    "user": (
        lambda c: ("POST", "/api/v1/users", {"user": {"username": "ann", "active": True}, "password": "Aa-34567890"}),
        lambda c: "ann" in users(c),
    ),
    "progress": (
        lambda c: ("POST", f"/api/v1/trials/{c.waiting.trial_id}/progress", {"progress": 0.25}),
        lambda c: c.waiting.progress["progress"] == 0.25,
    ),
    "runner state": (
        lambda c: ("POST", f"/api/v1/trials/{c.waiting.trial_id}/runner/metadata", {"state": "held"}),
        lambda c: trial(c)["runnerState"] == "held",
    ),
    "invalid hyperparameters": (
        lambda c: ("POST", f"/api/v1/trials/{c.waiting.trial_id}/early_exit", {"reason": "EXITED_REASON_INVALID_HP"}),
        lambda c: stored(c, "SELECT invalid_hp FROM trials WHERE id = 1") == 1,
    ),
    "label gone": (
        lambda c: ("DELETE", f"/api/v1/experiments/{c.paused.id}/labels/kept", None),
        lambda c: shown(c, c.paused)["labels"] == [],
    ),
    "checkpoint changed": (
        lambda c: (
            "PATCH",
            "/api/v1/checkpoints",
            {"checkpoints": [{"uuid": UUID, "resources": {"resources": {"a": "1"}}}]},
        ),
        lambda c: state_of_checkpoint(c) == "STATE_PARTIALLY_DELETED",
    ),
    "checkpoint deleted": (
        lambda c: ("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [UUID]}),
        lambda c: state_of_checkpoint(c) == "STATE_DELETED",
    ),
    "user changed": (
        lambda c: ("PATCH", f"/api/v1/users/{users(c)['ann']['id']}", {"displayName": "Ann"}),
        lambda c: users(c)["ann"]["displayName"] == "Ann",
    ),
    "login": (
        lambda c: ("POST", "/api/v1/auth/login", {"username": "ann", "password": "Aa-34567890"}),
        lambda c: name_of(c.url, c.answer["token"]) == "ann",
    ),
    "trial killed": (
        lambda c: ("POST", f"/api/v1/trials/{newest_experiment(c, create=True)['trialIds'][0]}/kill", {}),
        lambda c: wait_until(lambda: newest_experiment(c)["state"] == "STATE_CANCELED"),
    ),
    "canceled": (
        lambda c: ("POST", f"/api/v1/experiments/{newest_experiment(c, create=True)['id']}/cancel", {}),
        lambda c: wait_until(lambda: newest_experiment(c)["state"] == "STATE_CANCELED"),
    ),
    "preemption acknowledged": (
        lambda c: ("POST", f"/api/v1/allocations/{attempt(c)}/signals/ack_preemption", {}),
        lambda c: stored(c, f"SELECT preempt_acked_at IS NOT NULL FROM allocations WHERE id = '{attempt(c)}'"),
    ),
    "ready": (
        lambda c: ("POST", f"/api/v1/allocations/{attempt(c)}/ready", {}),
        lambda c: stored(c, f"SELECT ready_at IS NOT NULL FROM allocations WHERE id = '{attempt(c)}'"),
    ),
    "context": (
        lambda c: ("PUT", f"/detent/contexts/{hashlib.sha256(b'kept').hexdigest()}", b"kept"),
        lambda c: (c.data / "blobs" / hashlib.sha256(b"kept").hexdigest()).read_bytes() == b"kept",
    ),
    "kill": (
        lambda c: ("POST", f"/api/v1/experiments/{c.waiting.id}/kill", {}),
        lambda c: wait_until(lambda: c.waiting.state == "CANCELED"),
    ),
    "archive": (
        lambda c: ("POST", f"/api/v1/experiments/{c.waiting.id}/archive", {}),
        lambda c: shown(c, c.waiting)["archived"],
    ),
    "unarchive": (
        lambda c: ("POST", f"/api/v1/experiments/{c.waiting.id}/unarchive", {}),
        lambda c: not shown(c, c.waiting)["archived"],
    ),
    "delete": (
        lambda c: ("DELETE", f"/api/v1/experiments/{c.waiting.id}", None),
        lambda c: wait_until(
            lambda: stored(c, f"SELECT state FROM experiments WHERE id = {c.waiting.id}") == "DELETED"
        ),
    ),
    "agent disabled": (
        lambda c: ("POST", f"/api/v1/agents/{joined_agent(c)}/disable", {"drain": True}),
        lambda c: stored(c, "SELECT enabled FROM agents") == 0,
    ),
    "agent enabled": (
        lambda c: ("POST", f"/api/v1/agents/{joined_agent(c)}/enable", {}),
        lambda c: stored(c, "SELECT enabled FROM agents") == 1,
    ),
    "slot disabled": (
        lambda c: ("POST", f"/api/v1/agents/{joined_agent(c)}/slots/0/disable", {"drain": True}),
        lambda c: stored(c, "SELECT enabled FROM agent_slots") == 0,
    ),
    "slot enabled": (
        lambda c: ("POST", f"/api/v1/agents/{joined_agent(c)}/slots/0/enable", {}),
        lambda c: stored(c, "SELECT enabled FROM agent_slots") == 1,
    ),
    "logout": (
        lambda c: ("POST", "/api/v1/auth/logout", {}),
        lambda c: stored(c, "SELECT count(*) FROM sessions WHERE user_id = 1") == 0,
    ),
}


@pytest.mark.parametrize("one_in", [3, pytest.param(1, marks=pytest.mark.long)], ids=["sample", "all"])
def test_a_write_answered_with_200_survives_the_kill_of_the_master(agentless, one_in):
    """Runs the writes in order, since some depend on an earlier one. Kills the master after one in ``one_in``."""
    for number, (name, (request, is_there)) in enumerate(WRITES.items()):
        method, path, body = request(agentless)
        with session_for(agentless, name) as session:
            agentless.answer = session.request(method, path, body)
        if number % one_in == 0:
            agentless.kill_master()
            agentless.start_master()
        assert is_there(agentless), name


def test_agent_output_and_a_drain_answered_with_200_survive_the_kill_of_the_master(tmp_path):
    """These are sent with the join token and the operator token, so they are not in ``WRITES``."""
    with live_cluster(tmp_path / "cluster") as cluster:
        token = (cluster.data / "agent-token").read_text().strip()
        operator = (cluster.data / "operator-token").read_text().strip()
        ended = create(cluster, SCRIPT, tmp_path / "ended")
        ended.ended()
        container, offset = wait_until(
            lambda: row(cluster, "SELECT id, output_offset FROM containers WHERE output_offset > 0"), what="its output"
        )
        batch = {
            "container_id": container,
            "allocation_id": f"{ended.task_id}.1",
            "task_id": ended.task_id,
            "start": offset,
            "end": offset + 5,
            "lines": [{"timestamp": 0.0, "log": "the very last line"}],
        }
        with Session(cluster.url, token=token) as agent:
            assert agent.post("/detent/agents/agent-1/output", batch) == {"committed": offset + 5}
        cluster.kill_master()
        cluster.start_master()
        assert ended.log.count("the very last line") == 1
        with Session(cluster.url, token=token) as agent:  # sent again because no answer arrived; stored once
            assert agent.post("/detent/agents/agent-1/output", batch) == {"committed": offset + 5}
        assert ended.log.count("the very last line") == 1

        drained = create(cluster, SCRIPT, tmp_path / "drained", gates=("step-0-1",))
        drained.at_gate("step-0-1")
        with Session(cluster.url, token=operator) as supervisor:
            supervisor.post("/detent/drain", {})
        cluster.kill_master()
        cluster.start_master()
        preempted_query = f"SELECT preempt_requested_at IS NOT NULL FROM allocations WHERE id = '{drained.task_id}.1'"
        assert stored(cluster, preempted_query)
        drained.ended()
        assert drained.progress["runId"] == 2
