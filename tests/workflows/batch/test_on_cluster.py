"""The experiment of a job: its configuration, and what its tasks read."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.recorded_jobs import project_in

from determined.errors import ConfigError
from determined_workflows.batch import on_cluster, settings
from determined_workflows.batch.on_cluster import PreparedExperiment
from determined_workflows.batch.project import Project
from determined_workflows.batch.submission import Request
from determined_workflows.site_profile import SiteProfile

TORCHRUN: dict[str, Any] = {"kind": "distributed", "launcher": "torchrun", "nodes": "2", "gpus": "4"}
AGENT = "wandb agent --count 1 a/b/SWEEP_ID"
SWEEP = "program: main.py\nmethod: grid\nmetric: {name: loss, goal: minimize}\nparameters: {lr: {values: [1, 2]}}\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = project_in(tmp_path)
    (found.root / "main.py").write_text("print(1)\n")
    return found


def prepare(
    project: Project,
    command: str = "python main.py",
    *,
    searcher: str | None = None,
    changes: tuple[str, ...] = (),
    count: int | None = None,
    said: list[str] | None = None,
    site: SiteProfile = SiteProfile(),
    **flags: object,
) -> PreparedExperiment:
    found, _ = settings.read(flags)
    sweep_id = "ab12" if found.kind == "sweep" and searcher is None else None
    asked = Request(found, project, command, ["det"], (), site, sweep_id=sweep_id, count=count, max_parallel=None)
    say = (said if said is not None else []).append
    return on_cluster.prepare(asked, ["default", "gpus"], say, searcher=searcher, changes=changes)


def config(prepared: PreparedExperiment) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(prepared.config)
    return found


def test_a_plain_job_is_one_trial_on_one_machine_that_a_pause_ends(project: Project) -> None:
    prepared = prepare(project, exp_name="tiny", gpus="2", partition="gpus")
    assert config(prepared) == {
        "name": "standard-project-tiny",
        "entrypoint": "python3 .det_batch/run_in_task.py",
        "hyperparameters": {},
        "searcher": {"name": "single", "metric": "loss"},
        "resources": {"slots_per_trial": 2, "is_single_node": True, "resource_pool": "gpus"},
        "max_restarts": 0,
        "labels": ["batch"],
        "preemption_timeout": 10,
    }
    assert "starts anew" in prepared.notes[-1]


def test_a_script_with_the_core_api_keeps_the_time_to_save(project: Project) -> None:
    (project.root / "main.py").write_text("from determined import core\n")
    prepared = prepare(project)
    assert "preemption_timeout" not in config(prepared)
    assert "it can be paused" in prepared.notes[-1]


def test_a_distributed_job_has_the_slots_of_all_nodes_and_the_launch_layer(project: Project) -> None:
    prepared = prepare(project, **TORCHRUN)
    assert config(prepared)["resources"] == {"slots_per_trial": 8}
    assert prepared.job["command"] == "python3 -m determined.launch.torch_distributed python main.py"
    assert prepared.job["is_distributed"] is True


def test_a_sweep_is_a_list_of_trials_of_the_agent(project: Project) -> None:
    prepared = prepare(project, AGENT, kind="sweep", gpus="0", count=2)
    assert config(prepared)["searcher"] == {
        "name": "list",
        "metric": "loss",
        "trials": [{"sweep_run": 1}, {"sweep_run": 2}],
    }
    assert prepared.job["command"] == "wandb agent --count 1 a/b/ab12"
    assert prepared.job["arguments"] == ""


def test_a_search_of_our_own_takes_parameters_and_program_of_the_sweep(project: Project) -> None:
    (project.files / "sweeper.yml").write_text(SWEEP)
    prepared = prepare(project, AGENT, kind="sweep", searcher="grid")
    assert config(prepared)["searcher"]["name"] == "grid"
    assert config(prepared)["hyperparameters"] == {"lr": {"type": "categorical", "vals": [1, 2]}}
    assert prepared.shown_command == "/usr/bin/env python main.py HYPERPARAMETERS"
    assert prepared.job["parameters"] == ["lr"]


def test_a_number_of_runs_is_refused_for_a_grid(project: Project) -> None:
    (project.files / "sweeper.yml").write_text(SWEEP)
    with pytest.raises(ConfigError, match="a grid has as many trials as combinations"):
        prepare(project, AGENT, kind="sweep", searcher="grid", count=3)


def test_a_search_without_a_program_appends_to_the_command_file(project: Project) -> None:
    (project.files / "sweeper.yml").write_text(SWEEP.replace("program: main.py\n", ""))
    prepared = prepare(project, "python main.py --a 1", kind="sweep", searcher="random", count=3)
    assert prepared.shown_command == "python main.py --a 1 HYPERPARAMETERS"
    with pytest.raises(ConfigError, match="names no `program`, and the command is one of `wandb agent`"):
        prepare(project, AGENT, kind="sweep", searcher="grid")


def test_adaptive_asha_is_a_valid_search(project: Project) -> None:
    text = f"{SWEEP}early_terminate: {{type: hyperband, max_iter: 27}}\n"
    (project.files / "sweeper.yml").write_text(text)
    for name in ("adaptive_asha", "async_halving"):
        found = config(prepare(project, AGENT, kind="sweep", searcher=name, count=3))["searcher"]
        assert (found["name"], found["max_trials"], found["max_time"]) == (name, 3, 27)


@pytest.mark.parametrize(
    ("names", "environment"),
    [
        (("requirements.txt",), {"venv": {"requirements": "requirements.txt"}}),
        (("requirements.txt", "Pipfile"), {"venv": {"requirements": "Pipfile"}}),
        ((), None),
    ],
)
def test_the_list_of_packages_becomes_the_environment(
    project: Project, names: tuple[str, ...], environment: dict[str, Any] | None
) -> None:
    for name in names:
        (project.root / name).write_text("[packages]\n" if name == "Pipfile" else "numpy\n")
    assert config(prepare(project)).get("environment") == environment
    variables = config(prepare(project, changes=("environment.environment_variables=[A=b]",)))["environment"]
    assert variables == {**(environment or {}), "environment_variables": ["A=b"]}
    image = "environment.image=venv:/opt/other"
    assert config(prepare(project, changes=(image,)))["environment"] == {"image": "venv:/opt/other"}


def test_an_environment_of_the_users_own_is_used_as_it_is(project: Project) -> None:
    (project.root / "virtual_env").mkdir()
    (project.root / "requirements.txt").write_text("numpy\n")
    said: list[str] = []
    image = config(prepare(project, said=said))["environment"]["image"]
    assert image == f"venv:{project.root / 'virtual_env'}"
    assert "is your own environment" in said[0]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"partition": "gpu"}, "the cluster has no pool of that name; there are default, gpus"),
        ({"data": ["absent"]}, "--data absent: there is no"),
        ({"workdir": ".."}, "and that is outside of it"),
        ({"workdir": "absent"}, "there is no folder"),
        ({"searcher": "random"}, "--searcher has an effect with --job-type sweep only"),
        ({"kind": "sweep", "searcher": "random"}, "needs the parameters and the metric of"),
        ({"changes": ("entrypoint=a.py",)}, "entrypoint follows from the command file and the flags"),
        ({"changes": ("resources.slots=2",)}, 'unknown field "slots"'),
    ],
)
def test_what_a_cluster_cannot_run_is_refused(project: Project, flags: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        prepare(project, **flags)
    assert sentence in raised.value.message
    assert not project.outputs.exists()


def test_the_tasks_read_the_variables_of_the_site_and_where_the_data_is(project: Project) -> None:
    (project.scratch_dir / "data").mkdir()
    prepared = prepare(project, data=["data"], workdir="hpc_files", site=SiteProfile(environment={"A": "b"}))
    assert prepared.job["environment"] == {"A": "b"}
    assert prepared.job["workdir"] == "hpc_files"
    assert prepared.job["data"]["paths"] == ("data",)
    assert Path(prepared.job["data"]["archive"]).is_file()
