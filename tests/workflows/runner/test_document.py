"""The example of runner's README: names of the output tree and lines of the console."""

import re
from pathlib import Path

import pytest
import yaml
from tests.workflows.runner import document_example
from tests.workflows.runner.conftest import Run


@pytest.fixture
def lines(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the output of the run, in which averaging fails for one of the tasks."""
    monkeypatch.setenv("PATH", document_example.write(folder)["PATH"])
    code, lines = run(document_example.PARAMS)
    assert code == 1
    return lines


def test_the_console_prints_the_lines_of_the_readme(lines: list[str]) -> None:
    assert lines[:2] == ["Orphan params: set()", "Tasks: 4, commands to run: 12"]
    started = sorted(re.sub(r"gpu: \d", "gpu: N", line) for line in lines if ", train: " in line)
    assert started == [
        "START   gpu: N, train: 1/ 4, output/Norm_new-Moment_0.1",
        "START   gpu: N, train: 2/ 4, output/Norm_new-Moment_0.05",
        "START   gpu: N, train: 3/ 4, output/Norm_batch-Moment_0.1",
        "START   gpu: N, train: 4/ 4, output/Norm_batch-Moment_0.05",
    ]
    (failed,) = [line for line in lines if line.startswith("FAIL ")]
    assert re.fullmatch(r"FAIL    gpu: \d, avg  : 1/ 4, output/Norm_new-Moment_0\.1", failed)
    assert lines[-2:] == ["Failed tasks: 1/4", "    output/Norm_new-Moment_0.1"]


def test_the_output_tree_has_the_names_of_the_readme(lines: list[str], folder: Path) -> None:
    task = folder / "output" / "Norm_batch-Moment_0.1"
    names = sorted(re.sub(r"\d{8}\.\d{6}$", "TIME", path.name) for path in task.iterdir())
    assert names == [
        "averaged_model.pt",
        "checkpoint51.pt",
        "checkpoint52.pt",
        "log.avg.TIME",
        "log.test.TIME",
        "log.train.TIME",
        "param",
        "stat",
    ]
    (log,) = task.glob("log.train.*")
    assert log.read_text()[1:] == (
        ": train.py data-bin/iwslt14 --seed 1 --criterion label_smoothed_cross_entropy --arch transformer_iwslt_de_en_v2"
        " --share-all-embeddings --optimizer adam --adam-betas (0.9,0.98) --clip-norm 0.0 --dropout 0.3"
        " --attention-dropout 0.1 --relu-dropout 0.1 --lr-scheduler inverse_sqrt --warmup-init-lr 1e-07"
        " --warmup-updates 8000 --lr 0.0015 --min-lr 1e-09 --label-smoothing 0.1 --weight-decay 0.0001"
        " --max-tokens 4096 --save-dir output/Norm_batch-Moment_0.1 --tensorboard-logdir output/Norm_batch-Moment_0.1"
        " --no-save-optimizer-state --update-freq 1 --log-format simple --log-interval 50 --ddp-backend no_c10d"
        " --keep-last-epochs 5 --early-stop 5 --norm-momentum 0.1 --normalization batch\n"
    )
    failed = folder / "output" / "Norm_new-Moment_0.1"
    assert yaml.safe_load((failed / "stat").read_text()) == {"train": "finished", "avg": "failed"}
    assert not list(failed.glob("log.test.*"))
