"""A trial that only reports one metric."""

import determined.core

with determined.core.init() as core_context:
    core_context.train.report_validation_metrics(1, {"loss": 1.0})
