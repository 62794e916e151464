"""``det experiment wait``."""

import time
from argparse import Namespace

from determined.client import experiments
from determined.errors import MasterUnreachable
from determined_cli import connection
from determined_cli.experiment.best_trial import say_best_trial
from determined_cli.output.states import has_ended, without_prefix
from determined_cli.reconnect import Reconnector
from determined_cli.terminal.messages import say

TIMED_OUT = 8


def wait(args: Namespace) -> int:
    """Returns 0 if the experiment completed, 1 if it ended otherwise, 8 after the timeout."""
    reconnector = Reconnector(connection.connect(args.options))
    state = until_end(reconnector, args.experiment_id, args.polling_interval, args.timeout)
    if state is None:
        say(f"det: experiment {args.experiment_id} has not ended after {args.timeout:g} s")
        return TIMED_OUT
    say(f"experiment {args.experiment_id} ended: {state}")
    say_best_trial(reconnector, args.experiment_id)
    return 0 if state == "COMPLETED" else 1


def until_end(
    reconnector: Reconnector, experiment_id: int, interval: float, timeout: float | None = None
) -> str | None:
    """Returns the final state, or None after ``timeout`` seconds. Waits while the master is unreachable."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        try:
            state = reconnector.call(lambda: experiments.get(reconnector.session, experiment_id)["state"], until=end)
        except MasterUnreachable:
            if not reconnector.outages or end is None or time.monotonic() < end:
                raise
            return None
        if has_ended(state):
            return without_prefix(state)
        if end is not None and time.monotonic() >= end:
            return None
        time.sleep(interval if end is None else max(0.0, min(interval, end - time.monotonic())))
