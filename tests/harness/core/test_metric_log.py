"""Reported metrics in the task's log: lines of level DEBUG, one a minute for each group, and the last report."""

import json
import os
from functools import partial

import pytest

from determined import core
from determined.core import _context
from determined.core._metric_log import MAX_LENGTH, MetricLog, line
from determined_agent.output.line_parser import parse
from determined_agent.output.log_segments import STDERR, Frame


class Log:
    """A metric log with a clock that the test sets, and its lines."""

    def __init__(self, **options):
        self.now = 0.0
        self.lines = []
        self.log = MetricLog(write=self.lines.append, clock=lambda: self.now, **options)


def test_each_group_has_one_line_a_minute_and_a_line_of_the_last_report():
    log = Log()
    for step in range(1, 31):
        log.now = step * 6.0
        log.log.add("training", step, {"loss": step * 0.5})
        if step == 10:
            log.log.add("validation", step, {"accuracy": 0.5})
    assert log.lines == [
        "DEBUG: training metrics after 1 steps: loss 0.5\n",
        "DEBUG: validation metrics after 10 steps: accuracy 0.5\n",
        "DEBUG: training metrics after 11 steps: loss 5.5\n",
        "DEBUG: training metrics after 21 steps: loss 10.5\n",
    ]
    log.log.close()
    assert log.lines[-1] == "DEBUG: training metrics after 30 steps: loss 15\n"
    log.log.close()
    assert len(log.lines) == 5


def test_a_metric_line_is_parsed_as_level_debug():
    log = Log()
    log.log.add("training", 1, {"loss": 1.0})
    frame = Frame(time=0.0, stream=STDERR, line=f"[rank=0] {log.lines[0].strip()}".encode())
    parsed = parse(frame)
    assert (parsed.level, parsed.log) == ("DEBUG", "training metrics after 1 steps: loss 1")


def test_the_last_report_is_written_once():
    log = Log()
    log.log.add("training", 1, {"loss": 1.0})
    log.log.close()
    assert len(log.lines) == 1


def test_a_metric_line_is_one_line_of_limited_length():
    text = line("training", 1, {f"metric {number}\n": "x" for number in range(500)})
    assert text.count("\n") == 1
    assert len(text) == MAX_LENGTH + 1
    assert text.endswith("…\n")


def test_a_disabled_metric_log_writes_nothing():
    log = Log(enabled=False)
    log.log.add("training", 1, {"loss": 1.0})
    log.log.close()
    assert log.lines == []


@pytest.mark.parametrize(("setting", "count"), [(None, 2), ("true", 2), ("false", 0), ("False", 0), ("0", 0)])
def test_the_chief_logs_its_reports_unless_det_log_metrics_is_off(master, monkeypatch, capsys, setting, count):
    if setting is not None:
        monkeypatch.setenv("DET_LOG_METRICS", setting)
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.5})
        context.train.report_validation_metrics(1, {"accuracy": 0.5})
    err = capsys.readouterr().err
    assert err.count(" metrics after 1 steps: ") == count
    assert len(master.bodies("/metrics")) == 2


@pytest.mark.parametrize(("debug", "lines"), [(False, [1, 4]), (True, [1, 3, 4])])
def test_debug_in_the_configuration_writes_a_line_each_second(master, monkeypatch, capsys, debug, lines):
    config = json.loads(os.environ["DET_EXPERIMENT_CONFIG"]) | {"debug": debug}
    monkeypatch.setenv("DET_EXPERIMENT_CONFIG", json.dumps(config))
    times = iter((0.0, 0.5, 1.5, 2.0))
    monkeypatch.setattr(_context, "MetricLog", partial(MetricLog, clock=lambda: next(times)))
    with core.init() as context:
        for step in range(1, 5):
            context.train.report_training_metrics(step, {"loss": 1.5})
    assert [int(line.split()[4]) for line in capsys.readouterr().err.splitlines() if " metrics after " in line] == lines
