"""``det rlhf``: what it refuses before anything is started."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.rlhf_project import forgotten_modules

from determined_cli.main import main
from determined_workflows.rlhf import example

pytestmark = pytest.mark.budget(20, "the first project imports torch")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    with forgotten_modules():
        example.init(tmp_path / "project")
        yield tmp_path / "project"


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            ["--on", "det", "--recover-mode", "resume"],
            "`det rlhf retry line first` continues one that ran on the cluster",
        ),
        (["--config", "max_restarts=3"], "--config has no effect with --on local"),
        (["--retries", "2"], "--retries has no effect with --on local"),
        (["--partition", "gpu"], "--partition has no effect with --on local"),
    ],
)
def test_a_flag_without_effect_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], flags: list[str], problem: str
) -> None:
    assert main(["rlhf", "run", "line", "first", "--project", str(project), *flags]) == 4
    assert problem in capsys.readouterr().err


def test_a_trial_that_was_not_started_has_no_status(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rlhf", "status", "line", "first", "--project", str(project)]) == 3
    assert "line first was not started from here" in capsys.readouterr().err


def test_init_leaves_files_as_they_are(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rlhf", "init", str(project)]) == 7
    assert "exists already; nothing was written" in capsys.readouterr().err
