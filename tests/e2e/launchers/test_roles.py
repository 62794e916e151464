"""Several programs in one trial, on two machines: they meet, end together, and a failure names its role."""

import json
import os
import signal

import pytest
from tests.support.live_launchers import example_with_entrypoint
from tests.support.live_processes import environ_of
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.budget(60, "starts trials on two machines")]

LINE = "python3 -m determined.launch.roles roles.json"
SERVER = """
import json, os, socket
own = next(role for role in json.loads(os.environ["DET_ROLES"]) if role["name"] == "server")["processes"][0]
with socket.create_server(("", own["port"])) as listener:
    while True:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"served on " + socket.gethostname().encode())
"""
TRAINER = """
import json, os, pathlib, socket, time
from determined import core

own = next(role for role in json.loads(os.environ["DET_ROLES"]) if role["name"] == "server")["processes"][0]
with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
    while True:
        try:
            with socket.create_connection((own["address"], own["port"])) as peer:
                print(peer.recv(100).decode(), "for", socket.gethostname(), flush=True)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    context.train.report_validation_metrics(1, {"validation_loss": 1.0})
    while os.environ.get("WAITS"):
        time.sleep(0.1)
"""


SAVES = """
import os, time
import determined as det
from determined import core

name = os.environ["DET_ROLE"] + os.environ["DET_ROLE_INDEX"]
with core.init(distributed=core.DistributedContext.from_roles()) as context:
    latest = det.get_cluster_info().latest_checkpoint
    if latest is not None:
        with context.checkpoint.restore_path(latest) as path:
            print("resumed", name, "with", *sorted(each.name for each in path.glob("role-*")), flush=True)
    step = 1
    while latest is None:
        if context.distributed.rank == 0:
            context.train.report_training_metrics(step, {"loss": 1.0})
        if context.preempt.should_preempt():
            with context.checkpoint.store_path({"steps_completed": step}, shard=True) as (path, _):
                (path / f"role-{name}").write_text(name)
            break
        step += 1
        time.sleep(0.05)
"""


def files(**environment):
    trainer = {"name": "trainer", "slots": 1, "command": ["python3", "trainer.py"], "environment": environment}
    server = {"name": "server", "slots": 1, "command": ["python3", "server.py"], "daemon": True}
    roles = {"roles": [trainer, server]}
    return {"trainer.py": TRAINER, "server.py": SERVER, "roles.json": json.dumps(roles)}


def test_a_trainer_and_its_server_on_two_machines_end_together(gang, tmp_path):
    model = example_with_entrypoint(LINE, slots=gang.shape("2x1"))
    experiment = create(gang, model, tmp_path, files=files(), max_restarts=0)
    experiment.ended(within=60)
    first, second = (machine.hostname for machine in gang.network.machines)
    log = "\n".join(experiment.log)
    assert f"served on {second} for {first}" in log or f"served on {first} for {second}" in log
    experiment.nothing_left()


def test_a_daemon_killed_on_the_other_machine_is_named_and_ends_the_trainer(gang, tmp_path):
    model = example_with_entrypoint(LINE, slots=gang.shape("2x1"))
    experiment = create(gang, model, tmp_path, files=files(WAITS="1"), max_restarts=0)
    wait_until(lambda: "served on" in "\n".join(experiment.log), within=60, what="the server answers")
    (server,) = [
        pid
        for pid in experiment.processes
        if environ_of(pid).get("DET_ROLE") == "server" and environ_of(pid).get("DET_WORKER_OF")
    ]
    os.kill(server, signal.SIGKILL)
    experiment.ended("ERROR", within=60)
    assert any("role server[0] (rank 1) failed: it was killed by signal 9" in line for line in experiment.log)
    (attempt,) = gang.session.get(f"/detent/trials/{experiment.trial_id}/attempts")["attempts"]
    assert "server[0] was killed by signal 9 (SIGKILL)" in attempt["message"]
    experiment.nothing_left()


def test_all_roles_save_one_checkpoint_for_a_pause_and_resume_from_it(gang, tmp_path):
    command = ["python3", "saves.py"]
    roles = [{"name": "master", "command": command}, {"name": "actor", "slots": 1, "count": 2, "command": command}]
    file = json.dumps({"preload": ["determined.core"], "roles": roles})
    model = example_with_entrypoint(LINE, slots=gang.shape("2x1"))
    experiment = create(gang, model, tmp_path, files={"saves.py": SAVES, "roles.json": file}, max_restarts=0)
    experiment.at_step(1)
    experiment.pause()
    experiment.do("activate")
    experiment.ended(within=60)
    resumed = sorted(line for line in experiment.log if line.startswith("resumed "))
    stored = "role-actor0 role-actor1 role-master0"
    assert resumed == [f"resumed {name} with {stored}" for name in ("actor0", "actor1", "master0")]
    assert experiment.trials[0]["restarts"] == 0
    experiment.nothing_left()
