"""One experiment on a live cluster: creates it, steers it, holds it at gates, and reads its result."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import live_processes
from tests.support.live_cluster import LiveCluster
from tests.support.live_models import Model
from tests.support.waiting import wait_until

from determined.client import lifecycle, submissions
from determined.context import pack

ENDED = ("COMPLETED", "CANCELED", "ERROR")
_FINAL = re.compile(r"final parameters sha256: ([0-9a-f]{64})")


@dataclass(frozen=True)
class Result:
    """The part of a trial's outcome that must not depend on the number of pauses."""

    final: str
    training: dict[int, dict[str, Any]]
    validation: dict[int, dict[str, Any]]


class Experiment:
    """An experiment with usually one trial."""

    def __init__(self, cluster: LiveCluster, experiment_id: int, gates: Path | None = None) -> None:
        self.cluster = cluster
        self.id = experiment_id
        self.gates = gates

    @property
    def trials(self) -> list[dict[str, Any]]:
        return list(self.cluster.session.get(f"/api/v1/experiments/{self.id}/trials")["trials"])

    @property
    def trial_id(self) -> int:
        return int(wait_until(lambda: self.trials, what="a trial")[0]["id"])

    @property
    def task_id(self) -> str:
        return str(wait_until(lambda: self.trials, what="a trial")[0]["taskId"])

    @property
    def processes(self) -> list[int]:
        """Returns every living process with an allocation of this trial."""
        return live_processes.carriers(self.cluster.cluster_id, self.task_id)

    @property
    def worker(self) -> int:
        """Returns the training process: the first that runs the harness, without the loader workers below it."""

        def look() -> list[int]:
            running = [pid for pid in self.processes if "determined.exec.harness" in live_processes.command_of(pid)]
            return live_processes.without_parents(running)

        (pid,) = wait_until(look, what="a training process")
        return pid

    @property
    def state(self) -> str:
        """Returns the state without the prefix of the API."""
        state = self.cluster.session.get(f"/api/v1/experiments/{self.id}")["experiment"]["state"]
        return str(state).removeprefix("STATE_")

    @property
    def progress(self) -> dict[str, Any]:
        return lifecycle.progress(self.cluster.session, self.trial_id)

    @property
    def log(self) -> list[str]:
        stream = self.cluster.session.stream(f"/api/v1/trials/{self.trial_id}/logs")
        return [str(line["log"]).removesuffix("\n") for line in stream]

    def do(self, verb: str) -> None:
        lifecycle.steer(self.cluster.session, self.id, verb)

    def pause(self) -> None:
        """Pauses the experiment and waits until every slot is free."""
        self.do("pause")
        self.left()

    def left(self, *, within: float = 30.0) -> None:
        """Waits until no attempt holds slots."""
        trial_id = self.trial_id

        def paused() -> bool:
            state = lifecycle.progress(self.cluster.session, trial_id)["state"]
            assert state not in ENDED, f"it ended as {state} instead of leaving: {self.log[-20:]}"
            return bool(state == "PAUSED")

        wait_until(paused, within=within, what="the slots are free")

    def running(self, *, within: float = 30.0) -> None:
        wait_until(lambda: self.progress["state"] == "RUNNING", within=within, what="the trial runs")

    def at_step(self, steps: int, *, within: float = 60.0) -> None:
        trial_id = self.trial_id

        def there() -> bool:
            progress = lifecycle.progress(self.cluster.session, trial_id)
            assert progress["state"] not in ENDED, f"it ended as {progress['state']}: {self.log[-20:]}"
            return int(progress["steps"]) >= steps

        wait_until(there, within=within, what=f"step {steps}")

    def ended(self, state: str = "COMPLETED", *, within: float = 90.0) -> None:
        final_state = wait_until(lambda: self.state if self.state in ENDED else None, within=within, what="the end")
        assert final_state == state, "\n".join([f"it ended as {final_state}", *self.log[-40:]])

    def close_gate(self, name: str, *, until_preempted: bool = False) -> None:
        assert self.gates is not None
        (self.gates / f"{name}.here").unlink(missing_ok=True)
        (self.gates / name).write_text("preempted" if until_preempted else "")

    def at_gate(self, name: str, *, within: float = 60.0) -> None:
        """Waits until the trial waits at the gate and the master knows that its attempt runs: an attempt that is
        preempted before that is killed, since it has nothing to save."""
        assert self.gates is not None
        waiting_file = self.gates / f"{name}.here"

        looks = itertools.count()

        def has_arrived() -> bool:
            # The master is asked less often than the folder, since its answers slow the trial down.
            if not waiting_file.exists() and next(looks) % 10 == 9:
                assert self.state not in ENDED, "\n".join([f"it ended as {self.state}", *self.log[-40:]])
            return waiting_file.exists()

        wait_until(has_arrived, within=within, what=f"gate {name}")
        self.ready()

    def ready(self) -> None:
        """Waits until the agent has reported that the newest attempt runs."""
        path = f"/api/v1/tasks/{self.task_id}"

        def is_ready() -> bool:
            allocations = self.cluster.session.get(path)["task"]["allocations"]
            return bool(max(allocations, key=lambda each: int(each["allocationId"].rpartition(".")[2]))["isReady"])

        wait_until(is_ready, what="the master knows that the attempt runs")

    def open_gate(self, name: str) -> None:
        assert self.gates is not None
        (self.gates / name).unlink(missing_ok=True)

    def nothing_left(self) -> None:
        """Waits until no process carries an allocation of this trial."""
        wait_until(lambda: not self.processes, within=10, what="no process of the trial is left")

    def reports(self, group: str) -> list[dict[str, Any]]:
        path = f"/api/v1/trials/metrics/{group}_metrics"
        pages = self.cluster.session.stream(path, {"trialIds": [self.trial_id]})
        return [report for page in pages for report in page["metrics"]]

    def result(self) -> Result:
        """Returns the result. Fails if a step is reported twice."""
        groups = {}
        for group, key in (("training", "avg_metrics"), ("validation", "validation_metrics")):
            reports = [report for report in self.reports(group) if not report["archived"]]
            steps = [report["totalBatches"] for report in reports]
            assert len(steps) == len(set(steps)), f"{group} steps that are reported twice: {sorted(steps)}"
            groups[group] = {report["totalBatches"]: dict(report["metrics"][key]) for report in reports}
        finals = wait_until(lambda: _FINAL.findall("\n".join(self.log)), within=10, what="the line of the final hash")
        assert len(set(finals)) == 1, finals
        return Result(finals[-1], groups["training"], groups["validation"])


def create(
    cluster: LiveCluster,
    model: Model,
    folder: Path,
    *,
    activate: bool = True,
    files: dict[str, str] | None = None,
    gates: tuple[str, ...] = (),
    held: tuple[str, ...] = (),
    **changes: Any,
) -> Experiment:
    """Creates an experiment. ``gates`` open when the trial is preempted, ``held`` when the test opens them."""
    gates_folder = folder / "gates"
    gates_folder.mkdir(parents=True, exist_ok=True)
    experiment = Experiment(cluster, 0, gates_folder)
    for name in gates:
        experiment.close_gate(name, until_preempted=True)
    for name in held:
        experiment.close_gate(name)
    packed = pack(model.context(folder / "context", **(files or {})))
    body = {
        "config": model.configured(gates_folder, **changes),
        "configName": f"{model.name}.yaml",
        "activate": activate,
    }
    answer = submissions.create(cluster.session, body, packed)
    experiment.id = int(answer["experiment"]["id"])
    return experiment
