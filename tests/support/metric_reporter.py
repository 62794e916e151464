"""A client that reports metrics as a training task does, and writes down each step whose report was answered.

Run as a program: ``metric_reporter.py MASTER TOKEN TRIAL ANSWERED STOP``. It ends after the file ``STOP`` appears.
"""

import sys
from pathlib import Path

from determined.client.session import FOR_EVER, Session


def loss_of(trial: int, step: int) -> float:
    """The value that is reported, so that a test can tell reports apart."""
    return trial + step / 1_000_000


def main(master: str, token: str, trial_id: str, answered: str, stop: str) -> None:
    trial, step = int(trial_id), 0
    session = Session(master, allocation_token=token, retry=FOR_EVER)
    with open(answered, "a", encoding="ascii") as file:
        while not Path(stop).exists():
            step += 1
            metrics = {"avgMetrics": {"loss": loss_of(trial, step)}}
            report = {"trialRunId": 1, "stepsCompleted": step, "metrics": metrics}
            # The harness repeats reports too: the master knows each by its trial, run, group and step.
            body = {"group": "training", "metrics": report}
            session.post(f"/api/v1/trials/{trial}/metrics", body, retry=FOR_EVER)
            file.write(f"{step}\n")
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
