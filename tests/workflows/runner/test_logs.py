"""``det runner logs``: the lines of a run, the output of a task, and following both."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.workflows.runner.conftest import GRID, Run, Start

from determined_cli.main import main
from determined_workflows.runner import program

Captured = pytest.CaptureFixture[str]
TASK = "Norm_bad-Lr_0.05"
WAITING = """\
resource: [0]
template:
  first: echo first; touch started; until [ -e go ]; do sleep 0.01; done; echo more
  second: echo second {n}; [ {n} != 2 ]
---
n: [1, 2]
"""


def test_logs_prints_the_lines_of_the_run_that_has_ended(run: Run, capfd: Captured) -> None:
    _, lines = run(GRID)
    assert main(["runner", "logs"]) == 0
    assert capfd.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("name", [TASK, f"output/{TASK}", f"output/{TASK}/"])
def test_logs_of_a_task_prints_the_newest_log_of_each_command(
    run: Run, folder: Path, capfd: Captured, name: str
) -> None:
    run(GRID)
    older = folder / "output" / TASK / "log.train.20200101.000000"
    older.write_text("old\n")
    (train,) = [path for path in older.parent.glob("log.train.*") if path != older]
    (test,) = older.parent.glob("log.test.*")
    assert main(["runner", "logs", name]) == 0
    shown = [path.relative_to(folder) for path in (train, test)]
    assert capfd.readouterr().out == f"==> {shown[0]} <==\niwslt14 0.05 --norm bad\n==> {shown[1]} <==\n"


def test_logs_of_a_task_without_a_folder_of_its_own_prints_only_its_own(run: Run, capfd: Captured) -> None:
    run(GRID, "--no-subdir")
    assert main(["runner", "logs", "Norm_new-Lr_0.1"]) == 0
    out = capfd.readouterr().out
    assert "iwslt14 0.1 --norm new" in out
    assert "bad" not in out


def test_logs_with_follow_waits_for_the_next_command_of_the_task_and_not_for_other_tasks(
    folder: Path, start: Start
) -> None:
    (folder / "params.yaml").write_text(WAITING)
    runner = start()
    runner.wait_for_file("started")
    argv = [sys.executable, "-m", "determined_cli", "runner", "logs", "N_1", "-f"]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline().startswith("==> output/N_1/log.first.")
        assert follower.stdout.readline() == "first\n"
        (folder / "go").touch()
        assert follower.stdout.readline() == "more\n"
        assert follower.stdout.readline().startswith("==> output/N_1/log.second.")
        assert follower.stdout.readline() == "second 1\n"
        assert follower.wait() == 0
    assert runner.end()[0] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "det: there is no output output\n"),
        (("-f",), "det: there is no output output\n"),
        (("N_1",), 'det: no task "N_1" has run in output\n'),
    ],
)
def test_logs_without_a_run_are_refused(folder: Path, capfd: Captured, words: tuple[str, ...], message: str) -> None:
    assert main(["runner", "logs", *words]) == 3
    assert capfd.readouterr().err == message


def test_logs_of_an_unknown_task_names_the_nearest(run: Run, capfd: Captured) -> None:
    run(GRID)
    assert main(["runner", "logs", "Norm_bad-Lr_0.5"]) == 3
    assert capfd.readouterr().err == (f'det: no task "Norm_bad-Lr_0.5" has run in output; did you mean "{TASK}"?\n')
    assert main(["runner", "logs", "../../x"]) == 3
    assert "`det runner status` names those that have" in capfd.readouterr().err


def test_the_program_of_the_small_distribution_has_logs_and_its_older_word(run: Run, capfd: Captured) -> None:
    code, lines = run(GRID)
    assert program.main(["logs"]) == 0
    assert capfd.readouterr().out.splitlines() == lines
    assert program.main(["attach"]) == code
    assert capfd.readouterr().out.splitlines() == lines
