"""Comparison with the unmodified mlrunner 0.5.9: equal files from one grid, and each continues and examines the
other's.

Our runner also writes hidden files, which are not compared: ``.runner.lock``, ``.runner.console``, ``.runner.exit``.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.workflows.runner import document_example

ORIGINAL = Path(__file__).parents[3] / ".cache" / "mlrunner" / "bin"
OURS = (sys.executable, "-m", "determined_cli", "runner", "run")
THEIRS = (str(ORIGINAL / "run"),)
FLAGS_AND_ALIASES = """\
---
template:
  prepare: touch {_output}/{_name}.txt && echo {_time}
  train: >
    echo [use-amp] [warmup_steps] {width} {label_smoothing_loss} '{"keys": 1}' $HOME
default:
  use-amp: false
  warmup_steps: 100
resource: [0]
alias:
  size:
    small: {width: 1, label_smoothing_loss: 0.5}
    big: {width: 20000000, label_smoothing_loss: 1.0e-05}
---
_title: sizes
size: [small, big]
use-amp: [true, false]
---
_title: other
_cmd: [train]
warmup_steps: [1, 2]
width: 3
label_smoothing_loss: 1
"""
TABLE = """\
from {module}.examine import Examiner, latest_log


def parse(path, experiment, caches):
    experiment.metric["words"] = len(open(latest_log("train", path)).read().split())


examiner = Examiner()
examiner.add(parse)
examiner.exam(output="output", regex=".*batch.*")
for name in sorted(examiner.experiments):
    experiment = examiner.experiments[name]
    print(name.rpartition("/")[2], sorted(experiment.param), experiment.metric)
"""

RunIn = Callable[..., str]


@pytest.fixture
def run_in(tmp_path: Path) -> RunIn:
    """Returns a function that runs a program on a grid in one of two folders. It returns the standard output."""
    assert (ORIGINAL / "run").exists(), "the original is not installed: make mlrunner"

    def run(name: str, argv: tuple[str, ...], *, grid: str = document_example.PARAMS) -> str:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        environment = document_example.write(folder)
        (folder / "params.yaml").write_text(grid)
        done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    return run


def tree(output: Path) -> dict[str, Any]:
    """Returns the names below a folder and the content of its files. Times are replaced."""
    content_by_name = {}
    for path in sorted(output.rglob("[!.]*")):
        content: Any = "folder"
        if path.is_file():
            text = re.sub(r"\d{8}\.\d{6}", "TIME", path.read_text())
            content = yaml.safe_load(text) if re.match("param$|stat$|param[.]|stat[.]", path.name) else text
        content_by_name[re.sub(r"\d{8}\.\d{6}", "TIME", str(path.relative_to(output)))] = content
    return content_by_name


@pytest.mark.parametrize(
    ("grid", "flags"),
    [
        (document_example.PARAMS, ()),
        (FLAGS_AND_ALIASES, ("-t", "sizes")),
        (FLAGS_AND_ALIASES, ("-t", "other")),
        (FLAGS_AND_ALIASES, ("-c", "prepare", "-t", "sizes")),
    ],
    ids=["document", "aliases", "title and _cmd", "command"],
)
def test_names_and_contents_equal_those_of_the_original(
    grid: str, flags: tuple[str, ...], run_in: RunIn, tmp_path: Path
) -> None:
    run_in("theirs", (*THEIRS, "-r", "0", *flags), grid=grid)
    run_in("ours", (*OURS, "-r", "0", *flags), grid=grid)
    theirs, ours = tree(tmp_path / "theirs" / "output"), tree(tmp_path / "ours" / "output")
    assert len(theirs) > 4
    assert ours == theirs


@pytest.mark.parametrize(("first", "second"), [(OURS, THEIRS), (THEIRS, OURS)], ids=["ours first", "theirs first"])
def test_each_runner_continues_the_run_of_the_other(
    first: tuple[str, ...], second: tuple[str, ...], run_in: RunIn
) -> None:
    run_in("both", first)
    text = run_in("both", second)
    started = [line for line in text.splitlines() if line.startswith("START")]
    assert len(started) == 1
    assert re.fullmatch(r"START   gpu: \d, avg *: 1/ 4, output/Norm_new-Moment_0\.1", started[0])


@pytest.mark.parametrize("writer", [OURS, THEIRS], ids=["ours", "theirs"])
def test_both_examiners_read_the_output_of_both_runners(writer: tuple[str, ...], run_in: RunIn, tmp_path: Path) -> None:
    run_in("both", writer)
    for stat in (tmp_path / "both" / "output").glob("*/stat"):  # as older versions wrote it
        states = yaml.safe_load(stat.read_text())
        stat.write_text(yaml.safe_dump({name: {"state": state, "gpu": 0} for name, state in states.items()}))
    theirs = run_in("both", (str(ORIGINAL / "python"), "-c", TABLE.format(module="mlrunner")))
    ours = run_in("both", (sys.executable, "-c", TABLE.format(module="determined_workflows.runner")))
    assert theirs.splitlines()[-2:] == ours.splitlines()
    assert len(ours.splitlines()) == 2
    assert "Norm_batch-Moment_0.05" in ours
