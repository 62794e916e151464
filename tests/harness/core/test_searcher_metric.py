"""The warnings and the error about a trial that never reports the searcher's metric."""

import json
import logging

import pytest
from tests.support.waiting import wait_until

from determined import core


@pytest.fixture
def configured(master, monkeypatch, tmp_path):
    config = {
        "checkpoint_storage": {"type": "directory", "container_path": f"{tmp_path}/checkpoints"},
        "searcher": {"name": "random", "metric": "accuracy"},
    }
    monkeypatch.setenv("DET_EXPERIMENT_CONFIG", json.dumps(config))
    return master


def lines(caplog, level):
    """Returns the records of a level about the searcher's metric."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == level and "searcher's" in record.getMessage()
    ]


def test_a_trial_without_the_searchers_metric_warns_once_and_ends_with_an_error(configured, caplog):
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        assert lines(caplog, logging.WARNING) == []
        context.train.report_validation_metrics(1, {"acuracy": 0.5, "loss": 1.0})
        context.train.report_validation_metrics(2, {"acuracy": 0.6, "loss": 1.0})
    (warning,) = lines(caplog, logging.WARNING)
    assert 'searcher\'s metric "accuracy": validations reported acuracy, loss; did you mean "acuracy"?' in warning
    (error,) = lines(caplog, logging.ERROR)
    assert error.startswith('the trial ended without any value of the searcher\'s metric "accuracy"')


def test_a_trial_with_the_searchers_metric_gives_no_warning(configured, caplog):
    with core.init() as context:
        context.train.report_validation_metrics(1, {"accuracy": 0.5})
    assert [*lines(caplog, logging.WARNING), *lines(caplog, logging.ERROR)] == []


def test_the_metric_in_another_report_of_the_same_step_gives_no_warning(configured, caplog):
    with core.init() as context:
        for step in range(3):
            context.train.report_validation_metrics(step, {"p5": 0.6})
            context.train.report_training_metrics(step, {"loss": 0.6})
            context.train.report_validation_metrics(step, {"accuracy": 0.5})
            context.train.report_validation_metrics(step, {"p1": 0.6})
    assert [*lines(caplog, logging.WARNING), *lines(caplog, logging.ERROR)] == []


def test_the_last_step_without_the_metric_warns_at_the_end(configured, caplog):
    with core.init() as context:
        context.train.report_validation_metrics(1, {"accuracy": 0.5})
        context.train.report_validation_metrics(2, {"p5": 0.5})
    (warning,) = lines(caplog, logging.WARNING)
    assert warning.startswith('the validation after 2 batches has no value of the searcher\'s metric "accuracy"')
    assert lines(caplog, logging.ERROR) == []


def test_a_metric_that_arrives_later_gives_no_error(configured, caplog):
    with core.init() as context:
        context.train.report_validation_metrics(1, {"loss": 0.5})
        context.train.report_validation_metrics(2, {"accuracy": 0.5})
    assert len(lines(caplog, logging.WARNING)) == 1
    assert lines(caplog, logging.ERROR) == []


def test_a_trial_without_a_validation_gets_a_warning_only(configured, caplog):
    with core.init() as context:
        context.train.report_training_metrics(1, {"accuracy": 1.0})
    (warning,) = lines(caplog, logging.WARNING)
    assert 'the trial ended without a validation: the searcher\'s metric "accuracy" has no value' in warning
    assert lines(caplog, logging.ERROR) == []


def test_a_script_that_reports_nothing_is_not_warned(configured, caplog):
    with core.init():
        pass
    assert [*lines(caplog, logging.WARNING), *lines(caplog, logging.ERROR)] == []


def test_a_preempted_trial_without_the_metric_gives_no_warning(configured, caplog):
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        configured.preempt.set()
        wait_until(context.preempt.should_preempt)
    assert [*lines(caplog, logging.WARNING), *lines(caplog, logging.ERROR)] == []


def test_a_resumed_trial_without_the_metric_gives_no_warning(configured, caplog, monkeypatch):
    monkeypatch.setenv("DET_LATEST_CHECKPOINT", "3f2b8c1e-0000-4000-8000-000000000001")
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        context.train.report_validation_metrics(1, {"loss": 1.0})
    assert [*lines(caplog, logging.WARNING), *lines(caplog, logging.ERROR)] == []


def test_a_failed_trial_without_the_metric_gives_no_warning(configured, caplog):
    with pytest.raises(ZeroDivisionError), core.init() as context:
        context.train.report_training_metrics(1 // 0, {"loss": 1.0})
    assert [*lines(caplog, logging.WARNING), *lines(caplog, logging.ERROR)] == []
