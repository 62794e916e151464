"""``Examiner``: parsers, the table, and the files that it reads."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.workflows.runner.conftest import GRID, Run

from determined_workflows.runner.examine import Examiner, Experiment, latest_log, load_params, match_output


def count_words(path: Path, experiment: Experiment, caches: dict[Any, Any]) -> None:
    log = latest_log("train", path)
    assert log is not None
    experiment.metric["words"] = len(log.read_text().split())
    experiment.metric["_hidden"] = 1
    caches[path.name] = log


def test_the_table_has_parameters_that_differ_and_metrics(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    run(GRID)
    examiner = Examiner()
    examiner.add(count_words)
    examiner.exam(output="output", regex="Norm_new.*", workers=2)
    examiner.table()
    assert capfd.readouterr().out == "lr\twords\n0.05\t4\n0.1\t4\n"
    examiner.table(markdown=True)
    assert capfd.readouterr().out == "| lr | words |\n| --- | --- |\n| 0.05 | 4 |\n| 0.1 | 4 |\n"
    examiner.table(concise=False)
    assert capfd.readouterr().out.splitlines()[0] == "data\tlr\tnorm\twords"
    assert sorted(examiner.caches) == ["Norm_new-Lr_0.05", "Norm_new-Lr_0.1"]
    examiner.reset()
    assert not examiner.experiments
    assert not examiner.caches


def test_a_parser_that_fails_is_named_and_the_others_continue(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(path: Path, experiment: Experiment, caches: dict[Any, Any]) -> None:
        raise ValueError("no BLEU here")

    run(GRID)
    examiner = Examiner()
    examiner.add(fail)
    examiner.add(count_words)
    examiner.exam(regex=".*new-Lr_0.1$")
    assert capfd.readouterr().err == "output/Norm_new-Lr_0.1: fail: ValueError: no BLEU here\n"
    assert examiner.experiments["Norm_new-Lr_0.1"].metric["words"] == 4


def test_table_returns_a_data_frame_if_pandas_is_installed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = SimpleNamespace(DataFrame=lambda rows, columns: (columns, rows))
    run(GRID)
    examiner = Examiner()
    examiner.exam(regex=".*bad.*")
    monkeypatch.setitem(sys.modules, "pandas", frame)
    assert examiner.table(print_tsv=False) == (["lr"], [[0.05], [0.1]])
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert examiner.table(print_tsv=False) is None


def test_latest_log_load_params_and_match_output_read_a_folder(tmp_path: Path) -> None:
    for name in ("log.train.20260101.000001", "log.train.20260102.000000", "log.train_more.20270101.000000"):
        (tmp_path / name).touch()
    assert latest_log("train", tmp_path) == tmp_path / "log.train.20260102.000000"
    assert latest_log("train", str(tmp_path), -2) == tmp_path / "log.train.20260101.000001"
    assert latest_log("test", tmp_path) is None
    assert load_params(tmp_path) == {}
    assert match_output(tmp_path) == []
