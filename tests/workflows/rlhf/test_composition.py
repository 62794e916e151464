"""An experiment becomes roles of one trial, and the configuration of an experiment of the cluster."""

from pathlib import Path

import pytest
import yaml

from determined.errors import ConfigError
from determined_workflows.rlhf import composition, project
from determined_workflows.rlhf.composition import Role

pytestmark = pytest.mark.budget(20, "the first project imports torch")

NAMES = ("line", "first")


def compose(folder: Path) -> composition.Composition:
    project.load(folder)
    return composition.compose(*NAMES, folder)


def edit(folder: Path, old: str, new: str) -> None:
    path = folder / "experiments" / "line.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_slotless_workers_come_first_and_a_model_has_a_role_with_its_replicas(project_folder: Path) -> None:
    found = compose(project_folder)
    assert found.roles == (Role("master_worker", 1, 0), Role("data_worker", 1, 0), Role("line", 2, 1))
    assert found.slots == 2
    assert found.summary() == "4 workers on 2 slots: 1 master_worker, 1 data_worker, 2 line"


def test_the_roles_file_starts_every_worker_by_the_same_command(project_folder: Path) -> None:
    file = compose(project_folder).roles_file({"A": "1"})
    assert {tuple(role["command"]) for role in file["roles"]} == {
        ("python3", "-m", composition.WORKER_MODULE, "line", "first")
    }
    assert {role["environment"]["A"] for role in file["roles"]} == {"1"}
    assert "torch" in file["preload"]


def test_workers_take_the_slots_and_variables_of_their_own_scheduling(project_folder: Path) -> None:
    edit(
        project_folder,
        "TasksGroup(self.replicas, Scheduling.model_worker_default())",
        "[TasksGroup(self.replicas, Scheduling.model_worker_default(gpu=2, env_vars=dict(A='1')))]",
    )
    found = compose(project_folder)
    assert found.roles[-1] == Role("line", 2, 2, {"A": "1"})
    assert (found.slots, found.gpus) == (4, 4)


def test_cores_and_memory_have_an_effect_in_a_job_of_slurm_only(project_folder: Path) -> None:
    edit(project_folder, "data_worker_default()", 'data_worker_default(cpu=9, exclude="a1")')
    built = compose(project_folder).built
    assert built.notes() == ["cpu, exclude of the scheduling have no effect: the pool and its agents decide"]
    assert built.notes(is_job=True) == ["exclude of the scheduling have no effect: the pool and its agents decide"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("TasksGroup(self.replicas,", "TasksGroup(3,", "model_worker: scheduling_setup has 3, initial_setup 2"),
        (
            "data_worker=TasksGroup(1,",
            "data_worker=TasksGroup(2,",
            "data_worker: scheduling_setup has 2, initial_setup 1",
        ),
        (
            "master_worker=TasksGroup(1,",
            "master_worker=TasksGroup(2,",
            "master_worker: scheduling_setup has 2, initial_setup 1",
        ),
        ("self.epochs, self.lr, self.replicas =", "return None\n        self.a, self.b, self.c =", "has no attribute"),
    ],
)
def test_an_experiment_whose_parts_do_not_fit_is_refused(
    project_folder: Path, old: str, new: str, problem: str
) -> None:
    edit(project_folder, old, new)
    with pytest.raises(ConfigError, match=problem):
        compose(project_folder)


def test_an_error_in_initial_setup_names_the_users_line(project_folder: Path) -> None:
    edit(project_folder, "        models = [", "        1 / 0\n        models = [")
    with pytest.raises(
        ConfigError, match=r"experiment 'line' cannot be built: ZeroDivisionError.*experiments/line.py:\d+\)"
    ):
        compose(project_folder)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            'ModelBackend(\n                    "torch_train"',
            'ModelBackend(\n                    "torch_trian"',
            "torch_train",
        ),
        ('Model("line")', 'Model("lime")', "there is no model 'lime'.*line"),
        ('Dataset("points"', 'Dataset("point"', "there is no dataset 'point'.*points"),
    ],
)
def test_an_unregistered_name_is_refused_before_anything_runs(
    project_folder: Path, old: str, new: str, problem: str
) -> None:
    edit(project_folder, old, new)
    with pytest.raises(ConfigError, match=problem):
        compose(project_folder)


def test_the_configuration_has_the_slots_of_all_workers_and_one_trial(project_folder: Path) -> None:
    text, _ = composition.experiment_config(
        compose(project_folder),
        changes=["resources.resource_pool=gpus"],
        max_restarts=2,
    )
    config = yaml.safe_load(text)
    assert config["name"] == "line_first"
    assert config["resources"] == {"slots_per_trial": 2, "resource_pool": "gpus"}
    assert config["searcher"]["name"] == "single"
    assert config["max_restarts"] == 2


def test_a_change_of_what_the_experiment_decides_is_refused(project_folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"resources\.slots_per_trial follows from experiment 'line'"):
        composition.experiment_config(compose(project_folder), changes=["resources.slots_per_trial=8"], max_restarts=0)
