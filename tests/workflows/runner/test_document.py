"""The example of runner's README: names of the output tree and lines of the console, compared name by name."""

import re
from pathlib import Path

import pytest
import yaml
from tests.workflows.runner.conftest import Run

PARAMS = """\
---
template:
  train: >
    python train.py data-bin/{data}
      --seed 1
      --arch transformer_iwslt_de_en_v2 --share-all-embeddings
      --optimizer adam --adam-betas '(0.9,0.98)' --clip-norm 0.0
      --save-dir {_output}
      --tensorboard-logdir {_output}
      --norm-momentum {moment}
      --normalization {norm}

  avg: >
    python scripts/average_checkpoints.py --inputs {_output}
      --num-epoch-checkpoints 5 --output {_output}/averaged_model.pt

  test: >
    python generate.py data-bin/{data}
        --max-tokens 4096 --beam 5 --lenpen 1.0 --remove-bpe
        --path {_output}/averaged_model.pt --gen-subset test

default:
  data: iwslt14
  norm: batch
  moment: 0.1

resource: [ 0, 1, 2, 3 ]


---
norm: [ new, batch ]
moment: [ 0.1, 0.05 ]
"""
PYTHON = """\
#!/bin/bash
echo "$CUDA_VISIBLE_DEVICES: $*"
while [ $# -gt 0 ]; do
  case $1 in
    --save-dir) touch "$2/checkpoint51.pt" "$2/checkpoint52.pt";;
    --output) case $2 in *Norm_new*0.1/*) exit 1;; *) touch "$2";; esac;;
  esac
  shift
done
"""


@pytest.fixture
def lines(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The output of the run, in which averaging fails for one of the tasks."""
    (folder / "bin").mkdir()
    (folder / "bin" / "python").write_text(PYTHON)
    (folder / "bin" / "python").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin")
    code, lines = run(PARAMS)
    assert code == 1
    return lines


def test_the_lines_of_the_console(lines: list[str]) -> None:
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


def test_the_tree_of_the_output(lines: list[str], folder: Path) -> None:
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
        ": train.py data-bin/iwslt14 --seed 1 --arch transformer_iwslt_de_en_v2 --share-all-embeddings"
        " --optimizer adam --adam-betas (0.9,0.98) --clip-norm 0.0 --save-dir output/Norm_batch-Moment_0.1"
        " --tensorboard-logdir output/Norm_batch-Moment_0.1 --norm-momentum 0.1 --normalization batch\n"
    )
    failed = folder / "output" / "Norm_new-Moment_0.1"
    assert yaml.safe_load((failed / "stat").read_text()) == {"train": "finished", "avg": "failed"}
    assert not list(failed.glob("log.test.*"))
