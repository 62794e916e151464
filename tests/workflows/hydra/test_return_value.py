"""The callback that reports what a job of Hydra returned."""

import pytest
from hydra.core.utils import JobReturn

from determined import core
from determined_workflows.hydra.task.det_hydra_result import ReportResult


@pytest.mark.parametrize("value", [0.5, ["a", 1]])
def test_the_value_that_a_job_returned_is_reported_as_a_metric(monkeypatch, value):
    reports = []

    class Context:
        def __init__(self, **_):
            self.train = self

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def report_metrics(self, group, steps_completed, metrics):
            reports.append((group, steps_completed, metrics))

    monkeypatch.setattr(core, "init", Context)
    job = JobReturn()
    job.return_value = value
    ReportResult().on_job_end(None, job)
    assert reports == [("hydra", 1, {"return_value": value})]
