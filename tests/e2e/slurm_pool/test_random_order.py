"""Everything that can happen to a trial on a pool of Slurm, in a random order from a fixed seed: it ends with the bits of a
trial to which nothing happened, each step is stored once, and no restart is counted.

Where the trial may save before its pilot ends, it goes on from the step after which it left.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.live_models import MODELS
from tests.support.live_trials import Experiment, create
from tests.support.machines import gateway_of
from tests.support.slurm import Slurm, running_slurm
from tests.support.slurm_pool import SlurmPool, slurm_pool
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.long,
    pytest.mark.budget(600, "nine things happen to a trial, and each needs a new pilot"),
]
SEED = 39
LENGTH = 40
"""Batches that the digits train."""


@dataclass
class Scene:
    slurm: Slurm
    cluster: SlurmPool
    experiment: Experiment

    @property
    def attempts(self) -> int:
        return len(self.cluster.attempts(self.experiment))

    def job(self) -> str:
        return self.cluster.running_job()

    def next_attempt(self, number: int, cause: str = "") -> None:
        """Waits until the attempt with this number, from 0, has ended, and for its cause."""
        message = self.cluster.end_of(self.experiment, number, within=90)
        assert cause in message, message


@dataclass(frozen=True)
class Event:
    """Something that happens to a trial at a gate. ``saves``: the trial is asked to save, and leaves by itself."""

    happen: Callable[[Scene], None]
    saves: bool = False


def pause(scene: Scene) -> None:
    scene.experiment.pause()
    scene.experiment.do("activate")


def preempt(scene: Scene) -> None:
    number, (_, node) = scene.attempts - 1, scene.cluster.jobs[scene.job()]
    nodes = ("--nodes=2",) if "[" in node else (f"--nodelist={node}",)
    scene.slurm.command("sbatch", "-p", "high", "--exclusive", *nodes, "--wrap", "sleep 3")
    scene.next_attempt(number, "preempted by Slurm")


def shorten_the_time_limit(scene: Scene) -> None:
    number = scene.attempts - 1
    scene.slurm.command("scontrol", "update", f"JobId={scene.job()}", "TimeLimit=2")
    scene.next_attempt(number, "time limit of Slurm job")


def cancel_outside(scene: Scene) -> None:
    number, job = scene.attempts - 1, scene.job()
    scene.slurm.command("scancel", job)
    scene.next_attempt(number, f"Slurm job {job} was cancelled outside Detent")


def fail_node(scene: Scene) -> None:
    number, (_, node) = scene.attempts - 1, scene.cluster.jobs[scene.job()]
    name = node.replace("[1-2]", "1")
    scene.slurm.fail_node(name)
    scene.next_attempt(number, "failed")
    scene.slurm.mend_node(name)


def kill_controller(scene: Scene) -> None:
    scene.slurm.kill_controller()
    scene.slurm.start_controller()


def kill_master(scene: Scene) -> None:
    scene.cluster.kill_master()
    scene.cluster.start_master()


ALWAYS = {
    "pause": Event(pause, saves=True),
    "time limit": Event(shorten_the_time_limit, saves=True),
    "cancelled": Event(cancel_outside),
    "node failed": Event(fail_node),
    "slurmctld killed": Event(kill_controller),
    "master killed": Event(kill_master),
}
WITH_GRACE = ALWAYS | {"preempted with grace": Event(preempt, saves=True)}
WITHOUT_GRACE = ALWAYS | {"preempted": Event(preempt)}


def check(slurm: Slurm, cluster: SlurmPool, folder: Path, events: dict[str, Event], slots: int) -> None:
    """Runs a trial to which nothing happens, then one to which all of the events do."""
    resources = {"resources": {"slots_per_trial": slots}}
    straight = create(cluster, MODELS["digits"], folder / "straight", **resources)
    straight.ended()
    draw = random.Random(SEED)
    names = draw.sample(sorted(events), len(events))
    steps = sorted(draw.sample(range(2, LENGTH - 2), len(names)))
    gates = {name: f"train-{step}" for name, step in zip(names, steps, strict=True)}
    experiment = create(
        cluster,
        MODELS["digits"],
        folder / "events",
        gates=tuple(gate for name, gate in gates.items() if events[name].saves),
        held=tuple(gate for name, gate in gates.items() if not events[name].saves),
        max_restarts=0,
        **resources,
    )
    scene = Scene(slurm, cluster, experiment)
    for name, gate in gates.items():
        experiment.at_gate(gate, within=90)
        events[name].happen(scene)
        experiment.open_gate(gate)
    experiment.ended(within=120)
    assert experiment.result() == straight.result(), names
    assert cluster.restarts(experiment) == 0
    check_saves(
        experiment, [step for name, step in zip(names, steps, strict=True) if events[name].saves], steps, ranks=slots
    )
    cluster.nothing_in_the_queue(within=120)


def check_saves(experiment: Experiment, asked: list[int], steps: list[int], *, ranks: int) -> None:
    """Checks that the trial left soon after each step at which it was asked, and that it trained no step twice.

    One rank leaves after the step at which it is asked. Several exchange the answer every tenth of a second, so they may
    train further steps first, but not up to another event.
    """
    log = "\n".join(experiment.log)
    left = [int(count) for count in re.findall(r"preempted after (\d+) batches", log)]
    assert len(left) == len(asked), log
    for step, count in zip(asked, left, strict=True):
        next_event = min((later for later in steps if later > step), default=LENGTH)
        assert step + 1 <= count <= (step + 1 if ranks == 1 else next_event), log
    continued = [int(count) for count in re.findall(r"continuing from checkpoint \S+ after (\d+) batches", log)]
    assert set(left) <= set(continued), log


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with running_slurm(tmp_path_factory.mktemp("s")) as running:
        yield running


@pytest.mark.xdist_group("slurm in random order")
@pytest.mark.parametrize(("slots", "partition"), [(1, "grace"), (2, "nograce")])
def test_a_trial_ends_with_the_same_bits_whatever_happens(slurm, tmp_path, slots, partition):
    settings = {"slots_per_agent": slots, "idle_timeout": 3.0}
    with slurm_pool(tmp_path / "c", slurm, sbatch={"partition": partition, "exclusive": True}, **settings) as cluster:
        check(slurm, cluster, tmp_path, WITH_GRACE if partition == "grace" else WITHOUT_GRACE, slots)


@pytest.mark.xdist_group("slurm machines in random order")
def test_a_trial_over_two_nodes_ends_with_the_same_bits_whatever_happens(slurm_of_machines, nodes, tmp_path):
    settings = {"nodes": 2, "idle_timeout": 3.0, "host": gateway_of(nodes[0])}
    sbatch = {"partition": "nograce", "exclusive": True}
    with slurm_pool(tmp_path / "c", slurm_of_machines, sbatch=sbatch, **settings) as cluster:
        check(slurm_of_machines, cluster, tmp_path, WITHOUT_GRACE, 2)


def test_no_job_is_left_for_an_experiment_that_was_killed(slurm, tmp_path):
    with slurm_pool(tmp_path / "c", slurm, idle_timeout=1.0) as cluster:
        experiment = create(cluster, MODELS["script"], tmp_path, held=("step-0-2",))
        experiment.at_gate("step-0-2")
        experiment.do("kill")
        wait_until(lambda: not cluster.live_jobs, within=30, what="the pilot has ended")
