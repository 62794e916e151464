"""``det runner init`` and ``det runner run`` with real commands."""

from pathlib import Path

import pytest
import yaml
from tests.workflows.runner.conftest import GRID, Run

from determined_cli.main import main


def test_a_grid_runs_in_folders_named_by_its_points(run: Run, folder: Path) -> None:
    code, lines = run(GRID)
    assert code == 1
    assert lines[:2] == ["Orphan params: set()", "Tasks: 4, commands to run: 8"]
    assert "START   gpu: 0, train: 1/ 4, output/Norm_new-Lr_0.1" in lines or (
        "START   gpu: 1, train: 1/ 4, output/Norm_new-Lr_0.1" in lines
    )
    assert sum(line.startswith("FAIL    gpu: ") for line in lines) == 2
    assert "Failed tasks: 2/4" in lines
    names = {path.name for path in (folder / "output").iterdir() if path.is_dir()}
    assert names == {"Norm_new-Lr_0.1", "Norm_new-Lr_0.05", "Norm_bad-Lr_0.1", "Norm_bad-Lr_0.05"}
    assert (folder / "output" / "params.yaml").read_text() == GRID


def test_files_of_a_task(run: Run, folder: Path) -> None:
    run(GRID, "-r", "0,3")
    task = folder / "output" / "Norm_bad-Lr_0.05"
    assert yaml.safe_load((task / "stat").read_text()) == {"train": "finished", "test": "failed"}
    param = yaml.safe_load((task / "param").read_text())
    time = param["_time"]
    assert param == {
        "_name": "Norm_bad-Lr_0.05",
        "_output": "output/Norm_bad-Lr_0.05",
        "_time": time,
        "_scripts": {
            "train": "CUDA_VISIBLE_DEVICES=0,3 echo iwslt14 0.05 --norm bad"
            f"  > output/Norm_bad-Lr_0.05/log.train.{time} 2>&1",
            "test": f"CUDA_VISIBLE_DEVICES=0,3 test bad != bad > output/Norm_bad-Lr_0.05/log.test.{time} 2>&1",
        },
        "data": "iwslt14",
        "lr": 0.05,
        "norm": "bad",
    }
    assert (task / f"log.train.{time}").read_text() == "iwslt14 0.05 --norm bad\n"
    assert (task / "param").stat().st_mode & 0o777 == (folder / "params.yaml").stat().st_mode & 0o777


def test_finished_commands_are_skipped_unless_forced(run: Run) -> None:
    run(GRID)
    code, lines = run(GRID)
    assert code == 1
    assert sum(line.startswith("SKIP    train: ") for line in lines) == 4
    assert sum(line.startswith("START ") for line in lines) == 2
    assert lines[lines.index("Skipped tasks: 2/4") + 1].startswith("    output/Norm_new-")
    _, lines = run(GRID, "-f")
    assert sum(line.startswith("START ") for line in lines) == 8


def test_the_exit_status_can_be_that_of_the_original(run: Run) -> None:
    assert run(GRID, "--exit-zero")[0] == 0


def test_the_example_of_init_runs_and_is_not_overwritten(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["runner", "init"]) == 0
    assert main(["runner", "run"]) == 0
    assert "No task failed." in capfd.readouterr().out
    (folder / "params.yaml").write_text("mine")
    assert main(["runner", "init"]) == 7
    assert (folder / "params.yaml").read_text() == "mine"
