"""The plan of a grid on a cluster: configuration, commands and folders of the trials."""

import json
from pathlib import Path

import pytest
import yaml

from determined.errors import ConfigError
from determined_workflows.runner import grid, params_file
from determined_workflows.runner.cluster import plan as plans
from determined_workflows.runner.cluster.record import FetchedTask, Record
from determined_workflows.runner.grid import Selection, Task

GRID = """\
template:
  train: python3 train.py [lr] --save {_output} --at {_time}
  test: cat {_output}/model
default: {lr: 0.1}
resource: ["0,1", "2,3", "4,5"]
---
lr: [0.1, 0.05]
"""


@pytest.fixture
def tasks(tmp_path: Path) -> list[Task]:
    return grid.tasks(params_file.parse(GRID, "params.yaml"), tmp_path / "results", Selection())


def planned(tasks: list[Task], **options: object) -> plans.GridPlan:
    output = tasks[0].output.parent
    return plans.plan(tasks, output, ["0,1", "2,3"], "20261125.101010", name="grid", **options)  # type: ignore[arg-type]


def test_each_task_is_a_trial_with_its_parameters(tasks: list[Task]) -> None:
    config = yaml.safe_load(planned(tasks).config)
    assert config["searcher"]["trials"] == [{"_name": "Lr_0.1", "lr": 0.1}, {"_name": "Lr_0.05", "lr": 0.05}]
    assert config["searcher"]["max_concurrent_trials"] == 2
    assert config["resources"]["slots_per_trial"] == 2
    assert config["max_restarts"] == 0


def test_commands_write_below_the_working_folder_of_the_trial(tasks: list[Task]) -> None:
    trials = json.loads(planned(tasks).trials_file())
    assert trials["output"] == "results"
    assert trials["tasks"]["Lr_0.05"]["commands"] == {
        "train": "python3 train.py --lr 0.05 --save results/Lr_0.05 --at 20261125.101010",
        "test": "cat results/Lr_0.05/model",
    }
    assert trials["tasks"]["Lr_0.05"]["params"] == {"lr": 0.05, "_name": "Lr_0.05", "_output": "results/Lr_0.05"}


def test_changes_override_settings_except_those_that_the_grid_decides(tasks: list[Task]) -> None:
    config = yaml.safe_load(planned(tasks, changes=["resources.resource_pool=gpus", "max_restarts=2"]).config)
    assert (config["resources"]["resource_pool"], config["max_restarts"]) == ("gpus", 2)
    with pytest.raises(ConfigError, match=r"searcher.trials follows from the grid; change params.yaml"):
        planned(tasks, changes=["searcher.trials=[]"])
    with pytest.raises(ConfigError, match=r"nonsense"):
        planned(tasks, changes=["resources.nonsense=1"])


def test_workers_of_different_sizes_are_refused() -> None:
    with pytest.raises(ConfigError, match="workers with 1 and 2 ids"):
        plans.slots_of(["0", "1,2"])


def test_only_tasks_with_an_unfinished_command_are_submitted(tasks: list[Task]) -> None:
    first, second = tasks
    first.output.mkdir(parents=True)
    (first.output / "stat").write_text("train: finished\n")
    assert plans.unfinished(tasks) == [first, second]
    (first.output / "stat").write_text("train: finished\ntest: finished\n")
    assert plans.unfinished(tasks) == [second]


def test_a_retry_submits_only_failed_tasks(tasks: list[Task]) -> None:
    first, _ = tasks
    assert plans.failed(tasks) == []
    first.output.mkdir(parents=True)
    (first.output / "stat").write_text("train: finished\ntest: failed\n")
    assert plans.failed(tasks) == [first]


def test_a_task_continues_from_its_fetched_checkpoint_unless_its_folder_has_changed(tasks: list[Task]) -> None:
    output = tasks[0].output
    output.mkdir(parents=True)
    (output / "stat").write_text("train: finished\ntest: failed\n")
    fetched = {"Lr_0.1": FetchedTask("a-uuid", {"train": "finished", "test": "failed"})}
    earlier = Record("http://lab:8080", 7, ["Lr_0.1"], is_over=True, fetched=fetched)
    entries = json.loads(planned(tasks, earlier=earlier).trials_file())["tasks"]
    assert [entry.get("checkpoint") for entry in entries.values()] == ["a-uuid", None]
    (output / "stat").write_text("train: failed\n")
    entries = json.loads(planned(tasks, earlier=earlier).trials_file())["tasks"]
    assert "checkpoint" not in entries["Lr_0.1"]
