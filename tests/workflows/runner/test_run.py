"""``det runner init``, ``run`` and ``status`` with real commands."""

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


def test_a_task_stores_its_states_parameters_commands_and_logs(run: Run, folder: Path) -> None:
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


def test_exit_zero_ignores_failed_tasks(run: Run) -> None:
    assert run(GRID, "--exit-zero")[0] == 0


def test_the_example_of_init_runs_and_is_not_overwritten(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["runner", "init"]) == 0
    assert main(["runner", "run"]) == 0
    assert "No task failed." in capfd.readouterr().out
    (folder / "params.yaml").write_text("mine")
    assert main(["runner", "init"]) == 7
    assert (folder / "params.yaml").read_text() == "mine"


def test_debug_runs_the_first_task_with_its_output_on_the_terminal(run: Run, folder: Path) -> None:
    run(GRID)
    code, lines = run(GRID, "-d")
    assert code == 0
    assert "Tasks: 1, commands to run: 2" in lines
    assert "iwslt14 0.1 --norm new" in lines
    newest = max((folder / "output" / "Norm_new-Lr_0.1").glob("log.train.*"))
    assert newest.read_text().endswith("iwslt14 0.1 --norm new\n")


def test_a_dry_run_prints_the_commands_and_creates_no_output(run: Run, folder: Path) -> None:
    code, lines = run(GRID, "--dry-run", "-c", "test")
    assert code == 0
    assert len(lines) == 6
    assert lines[2].startswith("CUDA_VISIBLE_DEVICES=0 test new != bad > output/Norm_new-Lr_0.1/log.test.")
    assert not (folder / "output").exists()


def test_tasks_with_no_subdir_have_separate_files(run: Run, folder: Path) -> None:
    code, lines = run(GRID, "--no-subdir", "-t", "all", "--verbose")
    assert code == 4, lines
    code, lines = run(GRID.replace("norm: [", "_title: all\nnorm: ["), "--no-subdir", "-t", "all", "--verbose")
    assert code == 1
    assert sum(line.startswith("SUCCEED gpu: ") for line in lines) == 6
    names = {path.name for path in (folder / "output").iterdir()}
    assert {"params.yaml.all", "param.Norm_new-Lr_0.1", "stat.Norm_bad-Lr_0.05"} <= names
    assert sum(name.startswith("log.train.") and name.endswith(".Norm_new-Lr_0.1") for name in names) == 1


def test_the_param_file_keeps_the_commands_of_earlier_runs(run: Run, folder: Path) -> None:
    run(GRID, "-c", "train")
    run(GRID, "-c", "test")
    param = yaml.safe_load((folder / "output" / "Norm_new-Lr_0.1" / "param").read_text())
    assert set(param["_scripts"]) == {"train", "test"}


def test_states_in_the_format_of_older_versions_are_read(run: Run, folder: Path) -> None:
    task = folder / "output" / "Norm_new-Lr_0.1"
    task.mkdir(parents=True)
    (task / "stat").write_text("train: {state: finished, gpu: 0}\ntest: {state: failed, gpu: 0}\n")
    _, lines = run(GRID)
    assert sum(line.startswith("SKIP ") for line in lines) == 1


def test_each_worker_has_its_resource(run: Run, folder: Path) -> None:
    # Three tasks wait for each other, then the next three, so each of the three workers runs two.
    (folder / "task").write_text(
        "echo $CUDA_VISIBLE_DEVICES >> all; until [ $(wc -l < all) -ge $((($1 + 2) / 3 * 3)) ]; do sleep 0.01; done"
    )
    grid = "resource: [0, '1,2', 0]\ntemplate: {a: 'timeout 60 sh task {n}'}\n---\nn: [1, 2, 3, 4, 5, 6]\n"
    assert run(grid)[0] == 0
    assert sorted((folder / "all").read_text().split()) == ["0", "0", "0", "0", "1,2", "1,2"]


def test_a_command_may_redirect_its_output(run: Run, folder: Path) -> None:
    assert run("resource: [0]\ntemplate: {a: 'echo here > {_output}/text'}\n---\nn: 1\n")[0] == 0
    assert (folder / "output" / "N_1" / "text").read_text() == "here\n"


def test_an_output_that_cannot_be_written_is_named(run: Run) -> None:
    code, lines = run(GRID, "-o", "params.yaml")
    assert code == 1
    assert lines[-1] == "det: the output params.yaml cannot be written: File exists"


def test_a_task_whose_files_cannot_be_written_fails_and_others_continue(run: Run, folder: Path) -> None:
    (folder / "output").mkdir()
    (folder / "output" / "Norm_new-Lr_0.1").touch()
    code, lines = run(GRID)
    assert code == 1
    assert any(line.endswith("output/Norm_new-Lr_0.1: output/Norm_new-Lr_0.1: File exists") for line in lines)
    assert "Failed tasks: 3/4" in lines


def test_status_lists_the_states_of_tasks(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    run(GRID)
    assert main(["runner", "status"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "failed      Norm_bad-Lr_0.05  (train: finished, test: failed)"
    assert lines[-1] == "Tasks: 4 (2 failed, 2 finished)"
    assert main(["runner", "status", "-o", "none"]) == 3
