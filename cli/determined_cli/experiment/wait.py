"""``det experiment wait``."""

import time
from typing import Any

from determined.client import experiments
from determined.client.session import Session
from determined_cli import connection
from determined_cli.main import say
from determined_cli.states import has_ended, shown

TIMED_OUT = 8


def wait(args: Any) -> int:
    """0 where it completed, 1 where it ended otherwise, 8 where the time was up."""
    session = connection.connect(args.options)
    state = until_end(session, args.experiment_id, args.polling_interval, args.timeout)
    if state is None:
        say(f"det: experiment {args.experiment_id} has not ended after {args.timeout:g} s")
        return TIMED_OUT
    say(f"experiment {args.experiment_id} ended: {state}")
    return 0 if state == "COMPLETED" else 1


def until_end(session: Session, experiment_id: int, interval: float, timeout: float | None = None) -> str | None:
    """The final state; None where ``timeout`` seconds did not suffice."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        state = experiments.get(session, experiment_id)["state"]
        if has_ended(state):
            return shown(state)
        if end is not None and time.monotonic() >= end:
            return None
        pause = interval if end is None else max(0.0, min(interval, end - time.monotonic()))
        time.sleep(pause)
