"""The experiment of a composition: its configuration, and the command of each job."""

import pytest
import yaml
from tests.workflows.hydra.compositions import composition, job

from determined.errors import ConfigError, ContextError
from determined_workflows.hydra import project
from determined_workflows.hydra.launcher_settings import LauncherSettings
from determined_workflows.hydra.submission import prepare


@pytest.fixture
def folder(tmp_path):
    for name in ("scripts", "configs"):
        (tmp_path / "project" / name).mkdir(parents=True)
    return tmp_path / "project"


def prepared(found, settings=LauncherSettings(), changes=()):
    return prepare(found, project.find(found), settings, changes)


def test_a_run_is_one_trial(folder):
    found = prepared(composition(folder, job(0, lr=0.1), arguments=["--config-name", "other", "lr=0.1"]))
    config = yaml.safe_load(found.config)
    assert config["name"] == "digits"
    assert config["searcher"]["name"] == "single"
    assert config["hyperparameters"] == {"lr": 0.1, "hydra": {"job": 0, "overrides": "lr=0.1"}}
    assert config["environment"] == {"image": "venv:/opt/envs/hydra"}
    assert found.jobs["script"] == "scripts/train.py"
    assert found.jobs["jobs"] == [
        ["--config-name", "other", "lr=0.1", "hydra.run.dir=outputs/now", "hydra.mode=RUN"],
    ]


def test_a_multirun_is_a_list_search_whose_jobs_keep_their_numbers(folder):
    arguments = ["--multirun", "lr=1,2", "hydra.job.chdir=true"]
    found = prepared(composition(folder, job(3, ["lr=1"], lr=1), job(4, ["lr=2"], lr=2), arguments=arguments))
    config = yaml.safe_load(found.config)
    assert config["searcher"]["name"] == "list"
    assert [each["lr"] for each in config["searcher"]["trials"]] == [1, 2]
    assert found.jobs["jobs"][1] == [
        "hydra.job.chdir=true",
        "lr=2",
        "hydra.job.num=4",
        "hydra.job.id='4'",
        "hydra.sweep.dir=multirun/now",
        "hydra.run.dir='${hydra.sweep.dir}/${hydra.sweep.subdir}'",
        "hydra.mode=RUN",
    ]


def test_keys_of_the_launcher_become_settings(folder):
    settings = LauncherSettings(4, "compute", "sweep", "why", ["export A=1"], 90, 7)
    found = prepared(composition(folder, job(0, lr=1), job(1, lr=2)), settings)
    config = yaml.safe_load(found.config)
    assert config["resources"] == {"slots_per_trial": 4, "resource_pool": "compute"}
    assert config["name"] == "sweep"
    assert config["description"] == "why"
    assert config["searcher"]["max_concurrent_trials"] == 7
    assert found.jobs["setup"] == ["export A=1"]
    assert found.jobs["timeout_min"] == 90


def test_settings_change_the_experiment(folder):
    changes = ["resources.slots_per_trial=2", "environment.image=venv:/opt/other", "searcher.metric=loss"]
    config = yaml.safe_load(prepared(composition(folder), changes=changes).config)
    assert config["resources"]["slots_per_trial"] == 2
    assert config["environment"] == {"image": "venv:/opt/other"}
    assert config["searcher"]["metric"] == "loss"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("hyperparameters.lr=1", "hyperparameters.lr follows from the composition"),
        ("entrypoint=train.py", "entrypoint follows from the composition"),
        ("searcher.name=grid", "searcher.name follows from the composition"),
        ("resources.slots=2", 'unknown field "slots"'),
    ],
)
def test_a_setting_that_cannot_have_an_effect_is_refused(folder, change, expected):
    with pytest.raises(ConfigError, match="(?s).*" + expected):
        prepared(composition(folder), changes=[change])


def test_the_project_is_the_smallest_folder_with_script_and_configurations(folder):
    found = project.find(composition(folder))
    assert found.folder == folder
    assert (found.working_folder, found.script) == (".", "scripts/train.py")
    assert found.excludes == ["/multirun/", "/outputs/"]


def test_folders_of_results_are_left_out_up_to_their_first_variable_part(folder):
    found = project.find(composition(folder, output_folders=["runs/all/${task_name}", f"{folder}/sweeps/x"]))
    assert found.excludes == ["/multirun/", "/outputs/", "/runs/all/", "/sweeps/x/"]


def test_a_whole_machine_is_no_project(folder, tmp_path):
    with pytest.raises(ContextError, match="change into the folder of the project"):
        project.find(composition(folder, config_folder=tmp_path.joinpath("/etc/hydra")))
