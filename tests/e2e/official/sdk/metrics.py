"""Prints every report of a trial that the SDK reads: ``metrics.py TRIAL``."""

import json
import sys

from determined.experimental import client

trial = int(sys.argv[1])
print(
    json.dumps(
        {
            group: [[m.steps_completed, m.metrics] for m in client.stream_trials_metrics([trial], group)]
            for group in ("training", "validation")
        }
    )
)
