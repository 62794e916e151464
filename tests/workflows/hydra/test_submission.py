"""The experiment of a composition: its configuration, its project, and the command of each job."""

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


def prepared(composed, settings=LauncherSettings(), changes=()):
    return prepare(composed, project.find(composed), settings, changes)


def test_a_run_becomes_a_single_search_with_one_job(folder):
    submission = prepared(composition(folder, job(0, lr=0.1), arguments=["--config-name", "other", "lr=0.1"]))
    config = yaml.safe_load(submission.config)
    assert config["name"] == "digits"
    assert config["searcher"]["name"] == "single"
    assert config["hyperparameters"] == {"lr": 0.1, "hydra": {"job": 0, "overrides": "lr=0.1"}}
    assert config["environment"] == {"image": "venv:/opt/envs/hydra"}
    assert submission.jobs["script"] == "scripts/train.py"
    assert submission.jobs["jobs"] == [
        ["--config-name", "other", "lr=0.1", "hydra.run.dir=outputs/now", "hydra.mode=RUN"],
    ]


def test_a_multirun_becomes_a_list_search_whose_jobs_keep_their_numbers(folder):
    arguments = ["--multirun", "lr=1,2", "hydra.job.chdir=true"]
    submission = prepared(composition(folder, job(3, ["lr=1"], lr=1), job(4, ["lr=2"], lr=2), arguments=arguments))
    config = yaml.safe_load(submission.config)
    assert config["searcher"]["name"] == "list"
    assert [trial["lr"] for trial in config["searcher"]["trials"]] == [1, 2]
    assert submission.jobs["jobs"][1] == [
        "hydra.job.chdir=true",
        "lr=2",
        "hydra.job.num=4",
        "hydra.job.id='4'",
        "hydra.sweep.dir=multirun/now",
        "hydra.run.dir='${hydra.sweep.dir}/${hydra.sweep.subdir}'",
        "hydra.mode=RUN",
    ]


def test_keys_of_the_launcher_become_settings_of_the_experiment(folder):
    settings = LauncherSettings(4, "compute", "sweep", "why", ["export A=1"], 90, 7)
    submission = prepared(composition(folder, job(0, lr=1), job(1, lr=2)), settings)
    config = yaml.safe_load(submission.config)
    assert config["resources"] == {"slots_per_trial": 4, "resource_pool": "compute"}
    assert config["name"] == "sweep"
    assert config["description"] == "why"
    assert config["searcher"]["max_concurrent_trials"] == 7
    assert submission.jobs["setup"] == ["export A=1"]
    assert submission.jobs["timeout_min"] == 90


def test_changes_override_settings_of_the_experiment(folder):
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
def test_a_change_of_a_setting_that_the_composition_decides_is_refused(folder, change, expected):
    with pytest.raises(ConfigError, match="(?s).*" + expected):
        prepared(composition(folder), changes=[change])


def test_the_project_is_the_smallest_folder_with_script_and_configurations(folder):
    hydra_project = project.find(composition(folder))
    assert hydra_project.folder == folder
    assert (hydra_project.working_folder, hydra_project.script) == (".", "scripts/train.py")
    assert hydra_project.excludes == ["/multirun/", "/outputs/"]


def test_result_folders_are_excluded_up_to_their_first_variable_part(folder):
    hydra_project = project.find(composition(folder, output_folders=["runs/all/${task_name}", f"{folder}/sweeps/x"]))
    assert hydra_project.excludes == ["/multirun/", "/outputs/", "/runs/all/", "/sweeps/x/"]


def test_a_project_that_would_be_the_root_folder_is_refused(folder, tmp_path):
    with pytest.raises(ContextError, match="change into the folder of the project"):
        project.find(composition(folder, config_folder=tmp_path.joinpath("/etc/hydra")))
