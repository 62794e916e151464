"""Metric reports on disk: kept in order through a crash of the process, and sent once."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.support.fake_master import serving, task_environment

from determined import core
from determined.core._spool import FILE_NAME, SENT_NAME, Spool

REPORTS = 50

SCRIPT = """
import os, signal, sys
from determined import core

with core.init() as context:
    for step in range(1, int(sys.argv[1]) + 1):
        context.train.report_training_metrics(step, {"loss": 1.0 / step})
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def master():
    with serving() as server:
        yield server


def steps(bodies):
    return [body["metrics"]["stepsCompleted"] for body in bodies]


def on_disk(folder):
    return [json.loads(line) for line in (folder / "spool" / FILE_NAME).read_text().splitlines()]


def run_and_kill(master, folder, reports=REPORTS):
    """Runs a task that reports and dies by SIGKILL."""
    environ = {**os.environ, **task_environment(master, folder)}
    ended = subprocess.run([sys.executable, "-c", SCRIPT, str(reports)], env=environ, timeout=180, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def test_reports_survive_a_kill_while_the_master_is_away_and_are_sent_once_in_order(master, tmp_path, monkeypatch):
    master.on("POST", "/metrics", (503, {"message": "away"}))
    run_and_kill(master, tmp_path)
    assert steps(on_disk(tmp_path)) == list(range(1, REPORTS + 1))
    assert set(steps(master.bodies("/metrics"))) <= {1}

    # A second master, which the killed process never reached.
    with serving() as back:
        for name, value in task_environment(back, tmp_path).items():
            monkeypatch.setenv(name, value)
        with core.init() as context:
            context.train.report_training_metrics(REPORTS + 1, {"loss": 0.0})
        assert steps(back.bodies("/metrics")) == list(range(1, REPORTS + 2))
    assert not (tmp_path / "spool" / FILE_NAME).exists()


def test_reports_that_the_master_accepted_are_not_sent_again(master, tmp_path, monkeypatch):
    spool = Spool(tmp_path / "spool")
    assert spool.open() == []
    reports = [spool.append({"metrics": {"stepsCompleted": step}, "group": "training"}) for step in range(1, 6)]
    for report in reports[:3]:
        spool.remove(report)
    spool.close()
    for name, value in task_environment(master, tmp_path).items():
        monkeypatch.setenv(name, value)
    with core.init():
        pass
    assert steps(master.bodies("/metrics")) == [4, 5]


def test_half_a_line_of_the_spool_is_dropped_before_the_next_report(tmp_path):
    (tmp_path / FILE_NAME).write_text('{"step": 1}\n{"st')
    spool = Spool(tmp_path)
    assert [report.body for report in spool.open()] == [{"step": 1}]
    spool.append({"step": 2})
    spool.close()
    assert (tmp_path / FILE_NAME).read_text() == '{"step": 1}\n{"step": 2}\n'


def test_a_sent_mark_beyond_the_end_of_the_spool_is_ignored(tmp_path):
    """The process died between emptying the file and writing the mark. Another process appended later."""
    (tmp_path / FILE_NAME).write_text('{"step": 7}\n')
    (tmp_path / SENT_NAME).write_text("00000000000000004096")
    spool = Spool(tmp_path)
    assert [report.body for report in spool.open()] == [{"step": 7}]
    spool.close()


def test_an_ignored_mark_does_not_hide_the_reports_of_the_next_process(tmp_path):
    (tmp_path / FILE_NAME).touch()
    (tmp_path / SENT_NAME).write_text("00000000000000000024")
    spool = Spool(tmp_path)
    assert spool.open() == []
    for step in (1, 2):
        spool.append({"step": step})
    spool.close()  # like a kill: nothing was accepted
    assert [report.body for report in Spool(tmp_path).open()] == [{"step": 1}, {"step": 2}]


def test_the_spool_is_emptied_when_every_report_is_accepted(tmp_path):
    spool = Spool(tmp_path)
    spool.open()
    for step in range(3):
        spool.remove(spool.append({"step": step}))
        assert (tmp_path / FILE_NAME).stat().st_size == 0
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_a_second_spool_of_one_folder_keeps_its_reports_in_memory(tmp_path, caplog):
    first, second = Spool(tmp_path), Spool(tmp_path)
    first.open()
    first.append({"step": 1})
    assert second.open() == []
    assert second.append({"step": 2}).end is None
    second.close()
    assert (tmp_path / FILE_NAME).read_text() == '{"step": 1}\n'
    first.close()
    assert "kept in memory only" in caplog.text


def test_a_spool_in_an_unwritable_folder_keeps_its_reports_in_memory(tmp_path, caplog):
    (tmp_path / "spool").write_text("a file, where a folder is needed")
    spool = Spool(tmp_path / "spool")
    assert spool.open() == []
    assert spool.append({"step": 1}) == ({"step": 1}, len(b'{"step": 1}\n'), None)
    spool.close()
    assert "kept in memory only" in caplog.text


def test_the_spool_refuses_a_report_without_a_json_form(tmp_path):
    spool = Spool(tmp_path)
    spool.open()
    with pytest.raises(TypeError):
        spool.append({"step": object()})
    spool.append({"step": 1})
    spool.close()
    assert (tmp_path / FILE_NAME).read_text() == '{"step": 1}\n'
