"""``create -f``: the first trial's log on stdout, one progress line on stderr, until the experiment ends."""

import sys
import threading
import time
from collections.abc import Sequence
from typing import TextIO

from determined.client import experiments, lifecycle, trials
from determined.client.session import Session
from determined.errors import ApiError, DeterminedError, MasterUnreachable
from determined_cli import logs
from determined_cli.experiment.best_trial import say_best_trial
from determined_cli.experiment.progress import Stretch, TrialProgress
from determined_cli.experiment.wait import until_end
from determined_cli.output.states import has_ended, without_prefix
from determined_cli.reconnect import Reconnector
from determined_cli.terminal.messages import INTERRUPTED, say

TERMINAL_SECONDS = 0.5
OTHER_SECONDS = 30.0
FIRST_TRIAL_SECONDS = 0.1


def follow(session: Session, experiment_id: int, published: Sequence[str] = ()) -> int:
    """Follows the experiment. Returns 0 if it completed, INTERRUPTED after Ctrl-C, which only stops
    following, else 1. ``published``: ports of
    the first trial, ``[LOCAL:]REMOTE``, that are reached from this machine meanwhile."""
    line = StatusLine(sys.stderr)
    reconnector = Reconnector(session, tell=line.say)
    reconnector.connected()  # the experiment was just created
    try:
        trial_id = _first_trial(reconnector, experiment_id, line)
        if trial_id is not None:
            if published:
                _publish(session, trial_id, published)
            _watch(reconnector, trial_id, line)
        state = until_end(reconnector, experiment_id, 0.2)
    except KeyboardInterrupt:
        line.clear()
        say(f"detached; experiment {experiment_id} keeps running. To follow it again: det e logs -f {experiment_id}")
        say(f"To stop it: det e cancel {experiment_id}")
        return INTERRUPTED
    finally:
        line.clear()
    say(f"experiment {experiment_id} ended: {state}")
    say_best_trial(reconnector, experiment_id)
    return 0 if state == "COMPLETED" else 1


def _first_trial(reconnector: Reconnector, experiment_id: int, line: "StatusLine") -> int | None:
    while True:
        trial_id = reconnector.call(lambda: logs.find_first_trial(reconnector.session, experiment_id))
        if trial_id is not None:
            return trial_id
        state = reconnector.call(lambda: experiments.get(reconnector.session, experiment_id)["state"])
        if has_ended(state):
            return None
        line.show(f"experiment {experiment_id} is {without_prefix(state).lower()}, no trial yet")
        time.sleep(FIRST_TRIAL_SECONDS)


def _publish(session: Session, trial_id: int, published: Sequence[str]) -> None:
    """Forwards ports in a thread, which ends with this process."""
    from determined_cli.streams import port_forward

    ports = [port_forward.ports_of(text) for text in published]
    task_id = str(trials.get(session, trial_id)["taskId"])
    threading.Thread(target=_forward, args=(session, task_id, ports), name="ports", daemon=True).start()


def _forward(session: Session, task_id: str, ports: list[tuple[int, int]]) -> None:
    from determined_cli.streams import port_forward

    try:
        port_forward.forward(session, task_id, ports, announce=say)
    except DeterminedError as error:
        say(f"det: {error.message}")


def _watch(reconnector: Reconnector, trial_id: int, line: "StatusLine") -> None:
    """Prints the log, and updates the progress line in a thread; both end with the trial."""
    over = threading.Event()
    ticker = threading.Thread(target=_tick, args=(reconnector.session, trial_id, line, over), daemon=True)
    ticker.start()
    try:
        for entry in logs.followed(reconnector, trial_id, follow=True):
            line.print(logs.message(entry, short=sys.stdout.isatty()))
    finally:
        over.set()
        ticker.join(timeout=1.0)


def _tick(session: Session, trial_id: int, line: "StatusLine", over: threading.Event) -> None:
    interval = TERMINAL_SECONDS if line.is_terminal else OTHER_SECONDS
    stretch = Stretch()
    while not over.wait(interval):
        try:
            facts = lifecycle.progress(session, trial_id)
        except MasterUnreachable:
            continue  # following the log reports this error
        except ApiError as error:
            line.show(f"trial {trial_id}: {error.message}")
            continue
        except DeterminedError:
            return
        if not over.is_set():
            progress = TrialProgress.from_wire(facts)
            line.show(progress.render(stretch.pace(progress, time.monotonic())))


class StatusLine:
    """The last line of a terminal: redrawn in place, moved down when text is printed; elsewhere plain lines."""

    def __init__(self, stream: TextIO, out: TextIO | None = None) -> None:
        self.is_terminal = stream.isatty()
        self._stream, self._out = stream, out or sys.stdout
        self._text = ""
        self._lock = threading.Lock()

    def show(self, text: str) -> None:
        """Replaces the line."""
        with self._lock:
            if text == self._text:
                return
            if self.is_terminal:
                self._write(f"\r{_fit(text, self._stream)}\x1b[K")
            else:
                self._write(f"{text}\n")
            self._text = text

    def print(self, text: str) -> None:
        """Prints text above the line."""
        with self._lock:
            if self.is_terminal and self._text:
                self._write("\r\x1b[K")
            self._out.write(text)
            self._out.flush()
            if self.is_terminal and self._text:
                self._write(_fit(self._text, self._stream))

    def say(self, text: str) -> None:
        """Prints a message above the line."""
        self.clear()
        with self._lock:
            self._write(f"{text}\n")

    def clear(self) -> None:
        """Removes the line."""
        with self._lock:
            if self.is_terminal and self._text:
                self._write("\r\x1b[K")
            self._text = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _fit(text: str, stream: TextIO) -> str:
    """Cuts the text to the width of the terminal: a wrapped line could not be redrawn in place."""
    import os

    try:
        width = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        width = 80
    return text[: max(1, width - 1)]
