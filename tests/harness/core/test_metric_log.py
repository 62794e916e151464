"""Reported metrics in the task's log: one line a second for each group, and the last one."""

import pytest

from determined import core
from determined.core._metric_log import MAX_LENGTH, MetricLog, line


class Log:
    def __init__(self, **options):
        self.now = 0.0
        self.lines = []
        self.log = MetricLog(write=self.lines.append, clock=lambda: self.now, **options)


def test_each_group_has_one_line_a_second_and_the_last_report():
    made = Log()
    for step in range(1, 31):
        made.now = step * 0.1
        made.log.add("training", step, {"loss": step * 0.5})
        if step == 10:
            made.log.add("validation", step, {"accuracy": 0.5})
    assert made.lines == [
        "training metrics after 1 steps: loss 0.5\n",
        "validation metrics after 10 steps: accuracy 0.5\n",
        "training metrics after 11 steps: loss 5.5\n",
        "training metrics after 21 steps: loss 10.5\n",
    ]
    made.log.close()
    assert made.lines[-1] == "training metrics after 30 steps: loss 15\n"
    made.log.close()
    assert len(made.lines) == 5


def test_the_last_report_is_not_written_twice():
    made = Log()
    made.log.add("training", 1, {"loss": 1.0})
    made.log.close()
    assert len(made.lines) == 1


def test_a_line_is_one_line_of_limited_length():
    text = line("training", 1, {f"metric {number}\n": "x" for number in range(500)})
    assert text.count("\n") == 1
    assert len(text) == MAX_LENGTH + 1
    assert text.endswith("…\n")


def test_a_disabled_log_writes_nothing():
    made = Log(enabled=False)
    made.log.add("training", 1, {"loss": 1.0})
    made.log.close()
    assert made.lines == []


@pytest.mark.parametrize(("setting", "count"), [(None, 2), ("true", 2), ("false", 0), ("False", 0), ("0", 0)])
def test_the_chiefs_reports_are_in_its_log_unless_a_variable_turns_it_off(master, monkeypatch, capsys, setting, count):
    if setting is not None:
        monkeypatch.setenv("DET_LOG_METRICS", setting)
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.5})
        context.train.report_validation_metrics(1, {"accuracy": 0.5})
    err = capsys.readouterr().err
    assert err.count(" metrics after 1 steps: ") == count
    assert len(master.bodies("/metrics")) == 2
