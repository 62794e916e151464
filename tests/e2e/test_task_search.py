"""Search methods that run in a task: a user's own, which fails once and resumes, and Optuna."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

from determined.client import submissions
from determined.context import pack

pytestmark = [pytest.mark.e2e, pytest.mark.budget(60, "runs a search with kills of the master")]

TRAIN = """
import determined as det

with det.core.init() as core_context:
    x = det.get_cluster_info().trial.hparams["x"]
    for step in range(1, 5):
        core_context.train.report_validation_metrics(step, {"loss": (x - 0.3) ** 2 + 1 / step})
        if core_context.preempt.should_preempt():
            break
"""
OWN = """
from pathlib import Path

from determined.searcher import SearchMethod, Shutdown

CRASHED = Path(@)


class MySearch(SearchMethod):
    best = None

    def initial(self):
        return [self.create({"x": 0.9}, "the first guess")]

    def on_validation(self, event):
        if not CRASHED.exists():
            CRASHED.touch()
            raise RuntimeError("out of luck")
        self.best = min(event.metric, self.best or event.metric)
        return []

    def on_trial_ended(self, event):
        if self.created == 3:
            return [Shutdown(reason=f"the best of three is {self.best:.3f}")]
        return [self.create({"x": 0.9 - 0.3 * self.created}, f"after {event.reason}")]

    def snapshot(self):
        return {"best": self.best}

    def restore(self, snapshot):
        self.best = snapshot["best"]
"""


def submitted(cluster: LiveCluster, folder: Path, searcher: dict[str, Any], **files: str) -> Experiment:
    folder.mkdir()
    for name, text in {"train": TRAIN, **files}.items():
        (folder / f"{name}.py").write_text(text)
    config = {
        "name": searcher["name"],
        "entrypoint": "python3 train.py",
        "hyperparameters": {"x": {"type": "double", "minval": 0.0, "maxval": 1.0}},
        "searcher": {"metric": "loss", **searcher},
    }
    packed = pack(folder)
    body = {"config": yaml.safe_dump(config), "activate": True}
    answer = submissions.create(cluster.session, body, packed)
    return Experiment(cluster, int(answer["experiment"]["id"]))


def search_task(cluster: LiveCluster, experiment: Experiment) -> str:
    """Returns the id of the task that runs the search."""

    def found() -> list[str]:
        live = cluster.session.get("/tasks").values()
        name = f"runs the search of experiment {experiment.id}"
        return [task["task_id"] for task in live if name in task["name"]]

    return wait_until(found, what="the task of the search")[0]


def log_of(cluster: LiveCluster, task_id: str) -> str:
    return "\n".join(str(line["log"]).rstrip() for line in cluster.session.stream(f"/api/v1/tasks/{task_id}/logs"))


@pytest.mark.long  # in tests/integration/test_task_search.py the next task continues from the snapshot, too
def test_a_method_that_raises_goes_on_from_its_snapshot(cluster: LiveCluster, tmp_path: Path):
    own = OWN.replace("@", repr(str(tmp_path / "crashed")))
    searcher = {"name": "search_method", "method": "my_search:MySearch", "max_trials": 3}
    experiment = submitted(cluster, tmp_path / "context", searcher, my_search=own)
    task_id = search_task(cluster, experiment)
    experiment.ended(within=180)
    assert [trial["hparams"]["x"] for trial in experiment.trials] == pytest.approx([0.9, 0.6, 0.3])
    assert {trial["state"] for trial in experiment.trials} == {"STATE_COMPLETED"}
    log = log_of(cluster, task_id)
    assert "MySearch.on_validation raised RuntimeError: out of luck (my_search.py:18)" in log
    assert "the search goes on after event" in log
    decisions = cluster.session.get(f"/detent/experiments/{experiment.id}/search")["decisions"]
    assert [decision["reason"] for decision in decisions] == ["the first guess", "after completed", "after completed"]
    events = cluster.session.get("/detent/events", {"target_type": "experiment", "target_id": experiment.id})["events"]
    assert any("the best of three is 0.250" in event["text"] for event in events)


def test_optuna_draws_and_prunes_trials_also_when_the_master_is_killed(cluster: LiveCluster, tmp_path: Path):
    pytest.importorskip("optuna")
    pruner = {"name": "percentile", "percentile": 1.0, "n_startup_trials": 1}
    searcher = {"name": "optuna", "pruner": pruner, "max_trials": 3, "max_concurrent_trials": 1}
    experiment = submitted(cluster, tmp_path / "context", searcher)
    wait_until(lambda: len(experiment.trials) == 2, within=90.0, what="the second trial")
    cluster.kill_master()
    cluster.start_master()
    experiment.ended(within=180)
    assert len({trial["hparams"]["x"] for trial in experiment.trials}) == 3
    decisions = cluster.session.get(f"/detent/experiments/{experiment.id}/search")["decisions"]
    created = [decision["reason"] for decision in decisions if decision["kind"] == "created"]
    assert created == [f"trial {number} of 3, drawn by TPESampler" for number in (1, 2, 3)]
    stopped = [decision["reason"] for decision in decisions if decision["kind"] == "stopped"]
    assert all(reason.startswith("stopped by PercentilePruner after 1 batches (loss ") for reason in stopped)
