"""``det hydra init``: the project that it writes runs in plain Python, is valid, and can be continued."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.workflows.hydra.conftest import Det

from determined_workflows.hydra import example

pytestmark = pytest.mark.budget(15, "composes and runs real Hydra projects")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, det_here: Det) -> Path:
    monkeypatch.chdir(tmp_path)
    code, _, err = det_here("init", "line")
    assert code == 0
    assert "wrote line/train.py" in err
    monkeypatch.chdir(tmp_path / "line")
    return tmp_path / "line"


def test_the_example_runs_in_plain_python_and_learns(written: Path) -> None:
    run = [sys.executable, "train.py", "optimizer=fast", "hydra.run.dir=out"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "step 100 of 100: loss 0.0000" in done.stdout
    assert json.loads((written / "out" / "result.json").read_text())["slope"] == pytest.approx(2, abs=0.1)


def test_a_continued_run_of_the_example_ends_as_an_uninterrupted_one(written: Path, det_here: Det) -> None:
    assert det_here("run", "train.py", "--on", "local", "hydra.run.dir=whole")[0] == 0
    assert det_here("run", "train.py", "fail_at=60", "--on", "local", "hydra.run.dir=part")[0] == 1
    code, _, err = det_here("retry", "part", "--new_overrides", "fail_at=-1 hydra.run.dir=rest")
    assert code == 0, err
    assert "part: continues from step_50" in err
    assert (written / "rest" / "result.json").read_text() == (written / "whole" / "result.json").read_text()


def test_the_example_is_valid_in_each_choice_of_its_groups(written: Path, det_here: Det) -> None:
    code, out, err = det_here("check", "train.py", "+experiment=long", "-m", "optimizer=slow,fast")
    assert code == 0, err
    assert "trainer.steps = 200" in out
    code, _, err = det_here("check", "train.py", "hydra/launcher=slurm_launcher", "hydra.launcher.timeout_min=5")
    assert code == 0, err


def test_init_leaves_files_that_exist_and_writes_no_other(tmp_path: Path, det_here: Det) -> None:
    (tmp_path / "configs").mkdir()
    mine = tmp_path / "configs" / "config.yaml"
    mine.write_text("mine: 1\n")
    code, _, err = det_here("init", str(tmp_path))
    assert (code, err) == (7, f"det: {mine} exists already; nothing was written\n")
    assert mine.read_text() == "mine: 1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["configs"]


def test_init_below_a_file_names_the_file(tmp_path: Path, det_here: Det) -> None:
    (tmp_path / "file").touch()
    code, _, err = det_here("init", str(tmp_path / "file"))
    assert code == 1
    assert f"{tmp_path / 'file'} cannot be written: " in err


def test_every_file_of_the_example_is_named_relative_to_its_folder() -> None:
    assert not [name for name in example.FILES if name.startswith("/") or ".." in name]
