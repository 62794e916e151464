"""A client that reports metrics like a training task, and records each step whose report was answered.

Run as a program: ``metric_reporter.py MASTER TOKEN TRIAL ANSWERED STOP``. It ends after the file ``STOP`` appears.
"""

import sys
from pathlib import Path

from determined.client.session import FOR_EVER, Session


def loss_of(trial: int, step: int) -> float:
    """Returns the value of a report, which is unique to its trial and step."""
    return trial + step / 1_000_000


def main(master: str, token: str, trial_id: str, answered: str, stop: str) -> None:
    trial, step = int(trial_id), 0
    session = Session(master, allocation_token=token, retry=FOR_EVER)
    with open(answered, "a", encoding="ascii") as file:
        while not Path(stop).exists():
            step += 1
            metrics = {"avgMetrics": {"loss": loss_of(trial, step)}}
            report = {"trialRunId": 1, "stepsCompleted": step, "metrics": metrics}
            # Repeated like the reports of the harness: the master identifies each by its trial, run, group and step.
            body = {"group": "training", "metrics": report}
            session.post(f"/api/v1/trials/{trial}/metrics", body, retry=FOR_EVER)
            file.write(f"{step}\n")
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
