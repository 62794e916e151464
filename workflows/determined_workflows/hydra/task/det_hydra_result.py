"""Callback of Hydra that reports the return value of a job to the master, for the launcher that waits for it.

It is a validation metric if the script reports nothing else, so that lists show it, and a group of its own otherwise.
"""

import json
import os
import sys

from hydra.experimental.callback import Callback

GROUP, VALUE = "hydra", "return_value"


class ReportResult(Callback):
    """Hydra makes it from ``hydra.callbacks`` and calls it at the end of the job."""

    def on_job_end(self, config: object, job_return: object, **_: object) -> None:
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
        # A script that reports metrics of its own has numbered its steps already.
        is_only_report = "determined.core" not in sys.modules and isinstance(value, (int, float))
        from determined import core

        with core.init(distributed=core.DummyDistributedContext()) as core_context:
            group = "validation" if is_only_report else GROUP
            core_context.train.report_metrics(group, steps_completed=1, metrics={VALUE: value})
