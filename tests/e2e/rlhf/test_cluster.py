"""The tiny PPO on a cluster: paused three times, with each kind of worker, the agents and the master killed, it ends as
the run that nothing happened to, bit by bit."""

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.support.live_cluster import LiveCluster, live_cluster
from tests.support.live_trials import ENDED, Experiment
from tests.support.rlhf_sets import MODELS, PROJECT, STEPS, SetRun, difference
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.xdist_group("rlhf")]

Straight = Callable[..., SetRun]
KILL = '''

_fail_at = fail_at


def fail_at(role, index, place, number):
    """Kills the process if the test has put a file with the name of its role, which it removes."""
    try:
        os.unlink(os.path.join(os.environ["KILLS"], role))
    except FileNotFoundError:
        return _fail_at(role, index, place, number)
    os.kill(os.getpid(), signal.SIGKILL)
'''
EXPERIMENT = "tiny-ppo-saves"


def start(cluster: LiveCluster, folder: Path) -> Experiment:
    """Starts a trial of the project, whose workers are killed by files in the folder ``kills``."""
    shutil.copytree(PROJECT, folder / "project", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "project" / "impl" / "faults.py").open("a") as faults:
        faults.write(KILL)
    for name in ("kills", "trace"):
        (folder / name).mkdir()
    environ = {**cluster.client_environment, "KILLS": str(folder / "kills")}
    variables = f"[KILLS={folder / 'kills'}, TRACE={folder / 'trace'}, 'PACE=0.05', OMP_NUM_THREADS=1]"
    words = ["run", EXPERIMENT, "trial", "--on", "det", "--retries", "30"]
    words += ["--config", f"environment.environment_variables={variables}"]
    done = subprocess.run(
        [sys.executable, "-m", "determined_cli", "rlhf", *words],
        cwd=folder / "project", env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    match = re.search(r"Created experiment (\d+)", done.stdout)
    assert match is not None, done.stdout
    return Experiment(cluster, int(match[1]))


def states(cluster: LiveCluster, experiment: Experiment, folder: Path) -> dict[str, object]:
    """Returns the states of all workers in the newest checkpoint, without the clocks of the master worker."""
    stored = cluster.session.get(f"/api/v1/experiments/{experiment.id}/checkpoints")["checkpoints"]
    newest = max(stored, key=lambda each: int(each["metadata"]["steps_completed"]))
    assert newest["metadata"]["steps_completed"] == STEPS
    argv = [sys.executable, "-m", "determined_cli", "checkpoint", "download", newest["uuid"], "-o", str(folder)]
    subprocess.run(argv, env=cluster.client_environment, check=True, capture_output=True)
    found = {path.stem: torch.load(path, weights_only=True) for path in (folder / "workers").iterdir()}
    for clock in ("save", "evaluate"):
        del found["master_worker-0"][clock]
    return found


def batches(folder: Path) -> dict[str, dict[str, str]]:
    trace = folder / "trace"
    return {path.name: dict(line.split() for line in path.read_text().splitlines()) for path in trace.iterdir()}


@pytest.mark.long
@pytest.mark.budget(900, "starts a set of six processes about fifteen times")
@pytest.mark.parametrize("slots", [(4,), (2, 2)], ids=["one agent", "two agents"])
def test_a_ppo_with_pauses_and_every_kind_of_death_ends_like_the_straight_run(
    straight: Straight, tmp_path: Path, moments: random.Random, slots: tuple[int, ...]
) -> None:
    with live_cluster(tmp_path / "c", slots=0) as cluster:
        for number, count in enumerate(slots):
            cluster.start_agent(f"agent-{number}", slots=count)
        experiment = start(cluster, tmp_path)
        events = ["pause"] * 3 + ["agent", "master", "master_worker", "data_worker", *MODELS]
        moments.shuffle(events)
        for event in events:
            experiment.running(within=60)
            if event == "pause":
                experiment.pause()
                experiment.do("activate")
            elif event == "agent":
                cluster.agents["agent-0"].end(9)
                cluster.mend()
            elif event == "master":
                cluster.kill_master()
                cluster.mend()
            else:
                (tmp_path / "kills" / event).touch()
                wait_until(
                    lambda event=event: not (tmp_path / "kills" / event).exists() or experiment.state == "COMPLETED",  # type: ignore[misc]
                    within=60,
                    what=f"{event} is killed",
                )
            assert experiment.state not in ENDED, "\n".join(experiment.log[-40:])
        experiment.ended(within=200)
        found = states(cluster, experiment, tmp_path / "newest")
        assert difference(straight(EXPERIMENT).batches(), batches(tmp_path)) == ""
        assert difference(straight(EXPERIMENT).states(), found) == ""
        reports = [each["totalBatches"] for each in experiment.reports("training") if not each["archived"]]
        assert sorted(reports) == list(range(1, STEPS + 1))
