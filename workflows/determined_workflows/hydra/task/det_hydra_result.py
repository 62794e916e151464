"""Callback of Hydra that reports the return value of a job to the master, for the launcher that waits for it."""

import json
import os

GROUP, VALUE = "hydra", "return_value"


class ReportResult:
    """Hydra calls its methods; only the end of a job matters here."""

    def on_run_start(self, **_: object) -> None:
        """Called before a run."""

    def on_run_end(self, **_: object) -> None:
        """Called after a run."""

    def on_job_start(self, **_: object) -> None:
        """Called before a job."""

    def on_job_end(self, job_return: object, **_: object) -> None:
        """Reports the value that the decorated function returned, if it has a JSON form."""
        value = getattr(job_return, "_return_value", None)
        if value is None or isinstance(value, BaseException) or os.environ.get("RANK", "0") != "0":
            return
        value = value.item() if hasattr(value, "item") else value
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            print(f"the job's return value, a {type(value).__name__}, has no JSON form and is not reported")
            return
        from determined import core

        with core.init(distributed=core.DummyDistributedContext()) as core_context:
            core_context.train.report_metrics(GROUP, steps_completed=1, metrics={VALUE: value})
