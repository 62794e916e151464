"""The record of the experiment that runs the grid of an output."""

from pathlib import Path

import pytest
from tests.workflows.runner.conftest import GRID, Run

from determined_workflows.runner.cluster import record as records
from determined_workflows.runner.cluster.record import FetchedTask, Record
from determined_workflows.runner.errors import RunnerError


def test_reading_a_record_returns_what_was_written(tmp_path: Path) -> None:
    assert records.read(tmp_path) is None
    record = Record("http://lab:8080", 7, ["a", "b"], fetched={"a": FetchedTask("uuid", {"train": "finished"})})
    record.write(tmp_path)
    assert records.read(tmp_path) == record


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    for text in ("", "[]", '{"master": 1}'):
        (tmp_path / records.FILE_NAME).write_text(text)
        with pytest.raises(RunnerError, match=r"\.runner\.cluster cannot be read .*; remove it"):
            records.read(tmp_path)


def test_no_command_runs_locally_while_the_cluster_runs_the_grid(folder: Path, run: Run) -> None:
    (folder / "output").mkdir()
    record = Record("http://lab:8080", 7, ["a"])
    record.write(folder / "output")
    code, lines = run(GRID)
    assert code == 7
    assert "experiment 7 of http://lab:8080 runs the grid of output; `det runner logs -f`" in lines[-1]
    assert not list((folder / "output").glob("*/stat"))
    record.is_over = True
    record.write(folder / "output")
    assert run(GRID)[0] == 1
    assert len(list((folder / "output").glob("*/stat"))) == 4
