"""Result folders from variables: below the project, they and values derived from them move with the project."""

import os
import sys
from pathlib import Path

import pytest

from determined_workflows.hydra import composition, submission
from determined_workflows.hydra import project as projects
from determined_workflows.hydra.launcher_settings import LauncherSettings

SCRIPT = """
import os
os.environ["MY_HOME"] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import hydra


@hydra.main(version_base="1.3", config_path="../settings", config_name="base")
def go(cfg):
    pass


go()
"""
RUN, SWEEP = "hydra.run.dir=", "hydra.sweep.dir="


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    for name, text in (("code/go.py", SCRIPT), ("settings/base.yaml", "home: ${oc.env:MY_HOME}\nlr: 1\n")):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SCRATCH", str(tmp_path / "scratch"))
    return folder


def prepare_submission(*arguments):
    composed = composition.compose(Path("code/go.py"), arguments, python=sys.executable)
    return submission.prepare(composed, projects.find(composed), LauncherSettings(), is_checked=False)


def argument(prepared, start):
    """Returns the value of the last override that begins with ``start``, which is the effective one."""
    return [word.removeprefix(start) for word in prepared.jobs["jobs"][0] if word.startswith(start)][-1]


@pytest.mark.parametrize(
    ("written", "expected", "excluded"),
    [
        ("${home}/results/first", "results/first", "/results/first/"),
        ("${oc.env:MY_HOME}/results/${lr}", "results/1", "/results/"),
        ("${hydra:runtime.cwd}/runs/${lr}", "runs/1", "/runs/"),
        ("${hydra.runtime.cwd}/runs", "runs", "/runs/"),
        ("runs/${lr}", "runs/1", "/runs/"),
    ],
)
def test_a_result_folder_below_the_project_is_relative_in_the_task(folder, written, expected, excluded):
    prepared = prepare_submission(f"hydra.run.dir='{written}'")
    assert argument(prepared, RUN) == expected
    assert excluded in prepared.project.excludes
    swept = prepare_submission("--multirun", "lr=1,2", f"hydra.sweep.dir='{written}'")
    assert argument(swept, SWEEP) == expected


def test_a_result_folder_is_relative_to_the_working_folder_of_the_task(folder, monkeypatch):
    monkeypatch.chdir(folder / "code")
    composed = composition.compose(Path("go.py"), ["hydra.run.dir=${home}/results"], python=sys.executable)
    prepared = submission.prepare(composed, projects.find(composed), LauncherSettings(), is_checked=False)
    assert argument(prepared, RUN) == "../results"


def test_a_result_folder_with_an_absolute_path_is_unchanged(folder):
    prepared = prepare_submission(f"hydra.run.dir={folder}/kept")
    assert argument(prepared, RUN) == f"{folder}/kept"
    assert prepared.warnings == []
    assert argument(prepare_submission(f"+place={folder}/kept", "hydra.run.dir=${place}/a"), RUN) == f"{folder}/kept/a"


def test_a_variable_that_leads_out_of_the_project_is_warned_about(folder, tmp_path):
    prepared = prepare_submission("hydra.run.dir=${oc.env:SCRATCH}/a")
    assert argument(prepared, RUN) == f"{tmp_path}/scratch/a"
    assert prepared.warnings == [
        f"warning: hydra.run.dir comes from a variable: results go to {tmp_path}/scratch/a on the machine of the agent"
    ]


def test_result_folders_of_a_project_behind_a_link_are_relative(folder, tmp_path, monkeypatch):
    os.symlink(folder, tmp_path / "link")
    monkeypatch.chdir(tmp_path / "link")
    assert argument(prepare_submission("hydra.run.dir=${oc.env:MY_HOME}/results"), RUN) == "results"
