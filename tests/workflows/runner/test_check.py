"""``det runner check`` and the dry run of ``retry``: what would run, without running or writing anything."""

from pathlib import Path

import pytest
from tests.workflows.runner.conftest import GRID, Run

from determined_cli.main import main
from determined_workflows.runner import program

Captured = pytest.CaptureFixture[str]


def test_check_prints_each_task_with_its_commands_and_writes_nothing(folder: Path, capfd: Captured) -> None:
    (folder / "params.yaml").write_text(GRID.replace("lr: [0.1, 0.05]", "lr: [0.1]\nseed: [3]"))
    assert main(["runner", "check"]) == 0
    captured = capfd.readouterr()
    assert captured.out.splitlines() == [
        "Orphan params: {'seed'}",
        "Tasks: 2, commands to run: 4",
        "output/Norm_new-Lr_0.1-Seed_3",
        "    train: echo iwslt14 0.1 --norm new ",
        "    test: test new != bad",
        "output/Norm_bad-Lr_0.1-Seed_3",
        "    train: echo iwslt14 0.1 --norm bad ",
        "    test: test bad != bad",
    ]
    assert captured.err == "params.yaml is valid: 2 tasks for 2 workers\n"
    assert [path.name for path in folder.iterdir()] == ["params.yaml"]


def test_check_selects_commands_as_run_does(folder: Path, capfd: Captured) -> None:
    (folder / "params.yaml").write_text(GRID)
    assert main(["runner", "check", "-c", "test", "--sample", "1"]) == 0
    out = capfd.readouterr().out
    assert "Tasks: 1, commands to run: 1" in out
    assert "train:" not in out


@pytest.mark.parametrize(
    ("text", "words", "code", "message"),
    [
        (None, (), 4, "params.yaml does not exist; `det runner init` writes an example"),
        (GRID.replace("{data}", "{missing}"), (), 4, "params.yaml:3:10: "),
        (GRID, ("-c", "nothing"), 4, "no command is called nothing; there are train, test"),
        (GRID, ("-t", "nothing"), 4, "no choices have the title nothing; there are none"),
        (GRID, ("--sample", "0"), 2, "argument --sample: invalid count value: '0'"),
    ],
)
def test_check_refuses_what_run_refuses(
    folder: Path, capfd: Captured, text: str | None, words: tuple[str, ...], code: int, message: str
) -> None:
    if text is not None:
        (folder / "params.yaml").write_text(text)
    assert main(["runner", "check", *words]) == code
    captured = capfd.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_a_dry_run_of_retry_prints_the_commands_of_failed_tasks_only(run: Run, folder: Path, capfd: Captured) -> None:
    run(GRID)
    before = sorted(folder.rglob("*"))
    assert main(["runner", "retry", "--dry-run"]) == 0
    out = capfd.readouterr().out
    assert "Tasks: 2, commands to run: 4" in out
    assert "test bad != bad" in out
    assert "test new != bad" not in out
    assert sorted(folder.rglob("*")) == before


def test_the_program_of_the_small_distribution_checks_a_grid(folder: Path, capfd: Captured) -> None:
    assert program.main(["check"]) == 4
    assert capfd.readouterr().err == "run: params.yaml does not exist; `run init` writes an example\n"
    (folder / "params.yaml").write_text(GRID)
    assert program.main(["check"]) == 0
    assert "Tasks: 4, commands to run: 8" in capfd.readouterr().out
