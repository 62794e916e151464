"""A project is imported as a worker imports it, and every fault is a sentence with the user's file and line."""

from pathlib import Path

import pytest

from determined.errors import ConfigError
from determined_workflows.rlhf import project

pytestmark = pytest.mark.budget(20, "the first project imports torch")


def test_the_example_registers_its_experiment(project_folder: Path) -> None:
    project.load(project_folder)
    assert project.matching("") == ["line"]
    assert project.matching("^in") == []


def test_a_folder_without_experiments_is_refused(tmp_path: Path, clean_modules: None) -> None:
    with pytest.raises(ConfigError, match=r"no folder experiments.*det rlhf init"):
        project.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import os\nimport nothing_of_this_name\n", r"ModuleNotFoundError.*\(experiments/line.py:2\)"),
        ("x = 1 +\n", r"SyntaxError.*\(experiments/line.py:1:"),
        ("raise SystemExit(3)\n", r"SystemExit: 3 \(experiments/line.py:1\)"),
    ],
)
def test_an_experiment_file_that_fails_names_file_and_line(project_folder: Path, text: str, problem: str) -> None:
    (project_folder / "experiments" / "line.py").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        project.load(project_folder)


def test_a_module_of_impl_that_fails_is_named(project_folder: Path) -> None:
    (project_folder / "impl" / "model.py").write_text("from api.model import no_such_name\n")
    with pytest.raises(ConfigError, match=r"impl.model cannot be imported: ImportError.*impl/model.py:1"):
        project.load(project_folder)


def test_an_unknown_experiment_names_the_nearest(project_folder: Path) -> None:
    project.load(project_folder)
    with pytest.raises(ConfigError, match=r"there is no experiment 'lines': did you mean 'line'\?"):
        project.build("lines", "first", project_folder)


def test_an_experiment_that_cannot_be_made_names_the_line(project_folder: Path) -> None:
    with (project_folder / "experiments" / "line.py").open("a") as file:
        file.write('register_experiment("broken", functools.partial(LineExperiment, colour=3))\n')
    project.load(project_folder)
    with pytest.raises(ConfigError, match=r"experiment 'broken' cannot be built: TypeError.*colour"):
        project.build("broken", "first", project_folder)


@pytest.mark.parametrize(
    ("trial", "problem"),
    [("first_try", "has a '_': use '-', as 'first-try'"), ("../first", "letters, digits"), ("", "letters, digits")],
)
def test_a_trial_name_that_cannot_be_used_is_refused(project_folder: Path, trial: str, problem: str) -> None:
    project.load(project_folder)
    with pytest.raises(ConfigError, match=problem):
        project.build("line", trial, project_folder)


def test_a_pattern_that_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"-r '\(' is no regular expression"):
        project.matching("(")


def test_the_trial_of_a_user_with_an_underscore_has_a_usable_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ann_b")
    assert project.default_trial() == "test-ann-b"


def test_the_trial_of_a_uid_without_a_name_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert project.default_trial() == "test-user"
