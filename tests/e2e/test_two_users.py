"""Two users of one machine: a task that knows every path, pid and id of the other user's task gains no access."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import live_processes
from tests.support.compiler import IDLE_COMPILER
from tests.support.container_engine import BASE_IMAGE, need_engine, need_task_image, remove_containers
from tests.support.live_cluster import CLIENT_SALT, LiveCluster
from tests.support.live_models import MODELS
from tests.support.live_trials import Experiment, create
from tests.support.waiting import wait_until

from determined.client import submissions, users
from determined.client.session import Session
from determined.context import pack

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can run tasks as other users"),
    pytest.mark.xdist_group("container-engine"),
    pytest.mark.budget(60, "trains as another user with pauses"),
]

SCRIPTS = Path(__file__).parent / "two_users"
PASSWORD = hashlib.sha512(f"{CLIENT_SALT}Two-users-1".encode()).hexdigest()
UIDS = {"ada": 54001, "bob": 54002}
GROUP = 54100
"""Both users are in one group, which must not give access."""
RUNTIMES = {
    "process": (),
    "process without pid namespaces": ("--isolation", "none"),
    "docker": ("--container-runtime", "docker"),
}
EXPECTED = 55
"""Number of attempted accesses."""


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.long if "without" in name else ()) for name in RUNTIMES],
    ids=list(RUNTIMES),
)
def runtime(request: pytest.FixtureRequest) -> str:
    if request.param == "docker":
        need_engine()
    return str(request.param)


@pytest.fixture
def machine(runtime: str, tmp_path: Path) -> Iterator[LiveCluster]:
    cluster = LiveCluster(tmp_path / "cluster")
    try:
        cluster.start_master()
        cluster.start_agent(slots=2, arguments=("--unmapped-users", "refuse", *RUNTIMES[runtime]))
        yield cluster
    finally:
        cluster.close()
        remove_containers(f"detent.data={cluster.folder / 'agent-1'}") if runtime == "docker" else None


def session_of(cluster: LiveCluster, name: str) -> Session:
    """Logs in a new user who is linked with a uid."""
    user_id = int(users.create(cluster.session, name, PASSWORD, admin=False)["id"])
    link = {"agentUid": UIDS[name], "agentUser": name, "agentGid": GROUP, "agentGroup": "lab"}
    users.change(cluster.session, user_id, {"agentUserGroup": link})
    with Session(cluster.url) as session:
        body = {"username": name, "password": PASSWORD, "isHashed": True}
        return Session(cluster.url, token=session.post("/api/v1/auth/login", body)["token"])


def start(
    cluster: LiveCluster, session: Session, folder: Path, script: str, **hyperparameters: Any
) -> tuple[Experiment, str]:
    """Starts an experiment that runs a script. Returns it and the digest of its context."""
    context = folder / script
    context.mkdir()
    (context / f"{script}.py").write_text((SCRIPTS / f"{script}.py").read_text())
    config = {
        "name": script,
        "entrypoint": f"python3 {script}.py",
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
        "hyperparameters": hyperparameters,
        "resources": {"slots_per_trial": 1},
        "environment": {"image": BASE_IMAGE},
        "max_restarts": 0,
    }
    packed = pack(context)
    body = {"config": yaml.safe_dump(config), "activate": True}
    answer = submissions.create(session, body, packed)
    return Experiment(cluster, int(answer["experiment"]["id"])), packed.hash


def printed_values(experiment: Experiment, word: str) -> list[Any]:
    """Returns the JSON values that the task printed after a word."""
    return [json.loads(line.removeprefix(word)) for line in experiment.log if line.startswith(f"{word} ")]


def test_two_users_cannot_reach_each_others_tasks(machine: LiveCluster, tmp_path: Path) -> None:
    with session_of(machine, "ada") as ada, session_of(machine, "bob") as bob:
        check(machine, ada, bob, tmp_path)


def check(machine: LiveCluster, ada: Session, bob: Session, tmp_path: Path) -> None:
    victim, digest = start(machine, ada, tmp_path, "victim")

    def found() -> Any:
        assert victim.state != "ERROR", victim.log[-30:]
        return printed_values(victim, "VICTIM")

    (facts,) = wait_until(found, within=60, what="the victim's secrets")
    assert facts["uid"] == UIDS["ada"]
    agent = machine.folder / "agent-1"
    (run_folder,) = [path for path in (agent / "runs").iterdir() if not path.name.startswith(".")]
    for path in ("shim.json", "record.json", "run/workdir/victim.py", "run/info/cluster.json", "run/secret.sock"):
        assert (run_folder / path).exists(), "the other task is to look where there is something"
    pids = [pid for pid in victim.processes if "victim.py" in live_processes.command_of(pid)]
    at = facts | {
        "run_folder": str(run_folder),
        "pid": pids[-1],
        "contexts": str(agent / "contexts" / f"{digest}.tar.zst"),
        "digest": digest,
        "agent": str(agent),
        "master": str(machine.data),
        "storage": str(machine.data / "checkpoints"),
    }
    spy, _ = start(machine, bob, tmp_path, "spy", at=at)
    spy.ended()
    tries = dict(printed_values(spy, "TRY"))
    table = "\n".join(f"{name:<45}{result}" for name, result in tries.items())
    print(table)
    assert [name for name, result in tries.items() if not result.startswith("refused: ")] == [], table
    assert len(tries) == EXPECTED, table
    # The victim is not affected, and its checkpoint is complete: the master serves it to its owner.
    assert victim.state == "RUNNING"
    assert (machine.data / "checkpoints" / facts["uuid"] / "weights").read_text() == "secret of ada"
    assert (machine.data / "checkpoints" / facts["uuid"]).stat().st_mode & 0o777 == 0o700
    # Bob's own login may read logs, like every user's, and may change nothing.
    assert any("SECRET of ada" in str(line["log"]) for line in bob.stream(f"/api/v1/trials/{facts['trial']}/logs"))
    with pytest.raises(Exception, match="belongs to ada"):
        bob.post(f"/api/v1/experiments/{victim.id}/kill", {})
    victim.do("kill")
    victim.ended("CANCELED")


@pytest.mark.long  # test_pause.py resumes a trial, and the test above keeps what a user's tasks write from others
@pytest.mark.parametrize("runtime", RUNTIMES, indirect=True)
def test_a_paused_trial_of_a_linked_user_resumes_with_the_same_bits(
    machine: LiveCluster, tmp_path: Path, same_as_straight: Callable[..., None], runtime: str
) -> None:
    """The next attempt reads the checkpoints of the user's own uid."""
    if runtime == "docker":
        need_task_image()
    link = {"agentUid": UIDS["ada"], "agentUser": "ada", "agentGid": GROUP, "agentGroup": "lab"}
    users.change(machine.session, int(users.me(machine.session)["id"]), {"agentUserGroup": link})
    compiler = {"host_path": str(IDLE_COMPILER), "container_path": str(IDLE_COMPILER), "read_only": True}
    experiment = create(machine, MODELS["digits"], tmp_path, bind_mounts=[compiler])
    experiment.at_step(8)
    experiment.pause()
    experiment.do("activate")
    same_as_straight(experiment)
    assert any("this task runs as ada (uid 54001, gid 54100)" in line for line in experiment.log)
    answer = machine.session.get(f"/api/v1/trials/{experiment.trial_id}/checkpoints", {"states": ["STATE_COMPLETED"]})
    newest = max(answer["checkpoints"], key=lambda row: int(row["metadata"]["steps_completed"]))  # kept by the policy
    assert (machine.data / "checkpoints" / newest["uuid"]).stat().st_uid == UIDS["ada"]
