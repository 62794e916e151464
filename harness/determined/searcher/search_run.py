"""Runs a search method over events: keeps the limits, checks its actions, and ends a search that asks for nothing."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from determined.errors import DeterminedError
from determined.searcher.actions import (
    CANCELED,
    FAILED,
    Action,
    Create,
    Event,
    LimitsChanged,
    Shutdown,
    Stop,
    TrialClosed,
    TrialValidated,
)
from determined.searcher.method import SearchMethod

MAX_REASON_CHARACTERS = 1000
MAX_SNAPSHOT_BYTES = 4 << 20
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,36}\Z")


class InvalidActions(DeterminedError):
    """A search method returned something that the search cannot do. Running it again would not help."""


@dataclass
class Step:
    """What follows from some events: actions in their order, as JSON values."""

    actions: list[dict[str, Any]] = field(default_factory=list)


class SearchRun:
    """A search method and the trials that it asked for.

    Creates beyond ``max_concurrent_trials`` wait until a trial has ended. Those beyond ``max_trials`` are refused.
    """

    def __init__(self, method: SearchMethod) -> None:
        self.method = method
        self.callback = ""
        """What is called, or was called last, such as ``MySearch.initial``."""
        self._running: list[str] = []
        self._waiting: deque[Create] = deque()
        self._counts = {"ended": 0, "failed": 0, "canceled": 0}
        self._is_over = False

    def begin(self) -> Step:
        """Returns the first actions. Raises InvalidActions."""
        return self._step(lambda step: self._call(step, self.method.initial))

    def process(self, event: Event) -> Step:
        """Returns the actions that follow an event. Raises InvalidActions."""
        return self._step(lambda step: self._process(step, event))

    def progress(self) -> float | None:
        """Returns the progress that the method knows. Raises InvalidActions."""
        self.callback = f"{self._name}.progress"
        value = self.method.progress()
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value <= 1):
            raise InvalidActions(f"{self.callback} returned {value!r}; return a number from 0 to 1, or None")
        return value

    def snapshot(self) -> dict[str, Any]:
        """Returns the state of the search and of its method as a JSON value. Raises InvalidActions."""
        self.callback = f"{self._name}.snapshot"
        own = self.method.snapshot()
        size = _check_json(own, f"{self.callback} returned a value that JSON cannot carry")
        if size > MAX_SNAPSHOT_BYTES:
            raise InvalidActions(
                f"{self.callback} returned {size} bytes of JSON; at most {MAX_SNAPSHOT_BYTES} are stored"
            )
        context = self.method.context
        return {
            "limits": [context.max_trials, context.max_concurrent_trials],
            "running": list(self._running),
            "waiting": [asdict(each) for each in self._waiting],
            "counts": dict(self._counts),
            "over": self._is_over,
            "method": own,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restores what :meth:`snapshot` returned."""
        most, at_once = snapshot["limits"]
        self.method.context = replace(self.method.context, max_trials=most, max_concurrent_trials=at_once)
        self._running = list(snapshot["running"])
        self._waiting = deque(Create(**each) for each in snapshot["waiting"])
        self._counts = dict(snapshot["counts"])
        self._is_over = snapshot["over"]
        self._tell_counts()
        self.callback = f"{self._name}.restore"
        self.method.restore(snapshot["method"])

    @property
    def _name(self) -> str:
        return type(self.method).__name__

    def _step(self, work: Callable[[Step], None]) -> Step:
        step = Step()
        if self._is_over:
            return step
        work(step)
        self._create_waiting(step)
        if not self._is_over and not self._running:
            self._end(step, self._shutdown())
        return step

    def _process(self, step: Step, event: Event) -> None:
        if isinstance(event, LimitsChanged):
            self._change_limits(event)
            self._call(step, self.method.on_limits_changed, event)
        elif isinstance(event, TrialClosed):
            if event.request_id not in self._running:
                return
            self._running.remove(event.request_id)
            self._close(step, event)
        elif event.request_id in self._running:
            self._call(step, self.method.on_validation, event)

    def _close(self, step: Step, event: TrialClosed) -> None:
        self._counts["ended"] += 1
        self._counts["failed"] += event.reason in FAILED
        self._counts["canceled"] += event.reason in CANCELED
        self._call(step, self.method.on_trial_ended, event)

    def _change_limits(self, event: LimitsChanged) -> None:
        context = self.method.context
        most, at_once = event.max_trials, event.max_concurrent_trials
        self.method.context = replace(
            context,
            max_trials=context.max_trials if most is None else most,
            max_concurrent_trials=context.max_concurrent_trials if at_once is None else at_once,
        )

    def _call(self, step: Step, callback: Callable[..., Iterable[Action]], *arguments: object) -> None:
        """Calls the method of the class and takes its actions, one by one: there may be endlessly many."""
        self.callback = f"{self._name}.{callback.__name__}"
        self._tell_counts()
        returned = callback(*arguments)
        if isinstance(returned, (str, bytes, Mapping)) or not isinstance(returned, Iterable):
            raise InvalidActions(
                f"{self.callback} returned {_described(returned)}; return a list of Create, Stop and Shutdown"
            )
        stopped: list[TrialClosed] = []
        for action in returned:
            self._take(step, action, stopped)
        self._tell_counts()
        for event in stopped:
            self._close(step, event)

    def _take(self, step: Step, action: object, stopped: list[TrialClosed]) -> None:
        if isinstance(action, Create):
            self._check_create(action)
            self._waiting.append(action)
        elif isinstance(action, Stop):
            waiting = next((each for each in self._waiting if each.request_id == action.request_id), None)
            if waiting is None:
                step.actions.append({"kind": "stop", **asdict(action), "reason": self._reason(action.reason)})
            else:
                self._waiting.remove(waiting)
                stopped.append(TrialClosed(action.request_id, "searcher_stopped"))
        elif isinstance(action, Shutdown):
            self._end(step, action)
        else:
            raise InvalidActions(f"{self.callback} returned {_described(action)}, which is no Create, Stop or Shutdown")

    def _check_create(self, action: Create) -> None:
        where = f"{self.callback} returned a Create"
        most = self.method.context.max_trials
        if len(self._running) + len(self._waiting) + self._counts["ended"] >= most:
            raise InvalidActions(
                f"{self.callback} asks for more than {most} trials (searcher.max_trials); "
                "create no more than self.room, or raise max_trials"
            )
        if not isinstance(action.request_id, str) or not _REQUEST_ID.match(action.request_id):
            raise InvalidActions(
                f"{where} with the request_id {action.request_id!r}; use 1 to 36 letters, digits, - and _, "
                "or self.create()"
            )
        if action.request_id in self._running or any(w.request_id == action.request_id for w in self._waiting):
            raise InvalidActions(f"{where} with the request_id {action.request_id}, which another trial has")
        if isinstance(action.seed, bool) or not isinstance(action.seed, int) or not 0 <= action.seed < 2**31:
            raise InvalidActions(f"{where} with the seed {action.seed!r}; use a whole number from 0 to 2^31 - 1")
        if not isinstance(action.hparams, dict) or not all(isinstance(name, str) for name in action.hparams):
            raise InvalidActions(f"{where} whose hparams are {_described(action.hparams)}; use a dict with text keys")
        _check_json(action.hparams, f"{where} whose hparams JSON cannot carry")
        self._reason(action.reason)

    def _create_waiting(self, step: Step) -> None:
        most = self.method.context.max_concurrent_trials
        while self._waiting and not self._is_over and not (most and len(self._running) >= most):
            action = self._waiting.popleft()
            self._running.append(action.request_id)
            step.actions.append({"kind": "create", **asdict(action), "reason": self._reason(action.reason)})
        self._tell_counts()

    def _shutdown(self) -> Shutdown:
        """Returns the end of a search that asks for nothing and has no trial left."""
        ended = self._counts["ended"]
        if ended and self._counts["failed"] == ended:
            return Shutdown(failed=True, reason=f"every trial of the search failed ({ended} of {ended})")
        return Shutdown()

    def _end(self, step: Step, action: Shutdown) -> None:
        self._is_over = True
        self._waiting.clear()
        canceled = bool(self._counts["ended"]) and self._counts["canceled"] == self._counts["ended"]
        is_canceled = canceled and not self._running and not action.failed
        reason = self._reason(action.reason)
        step.actions.append(
            {"kind": "shutdown", "failed": bool(action.failed), "canceled": is_canceled, "reason": reason}
        )

    def _reason(self, reason: object) -> str:
        if not isinstance(reason, str):
            raise InvalidActions(f"{self.callback} returned an action whose reason is {_described(reason)}, not a text")
        is_long = len(reason) > MAX_REASON_CHARACTERS
        return f"{reason[: MAX_REASON_CHARACTERS - 1]}…" if is_long else reason

    def _tell_counts(self) -> None:
        self.method.running = len(self._running) + len(self._waiting)
        self.method.created = self.method.running + self._counts["ended"]


def event_of(value: Mapping[str, Any]) -> Event:
    """Returns the event of a JSON object of the master.

    >>> event_of({"kind": "closed", "requestId": "a", "reason": "completed"})
    TrialClosed(request_id='a', reason='completed')
    """
    kind = value["kind"]
    if kind == "limits":
        return LimitsChanged(value["maxTrials"], value["maxConcurrentTrials"])
    if kind == "closed":
        return TrialClosed(value["requestId"], value["reason"])
    return TrialValidated(value["requestId"], value["steps"], value["time"], value["metric"], value["metrics"])


def _check_json(value: object, what: str) -> int:
    """Returns the size of a value as JSON. Raises InvalidActions, which begins with ``what``."""
    try:
        return len(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidActions(f"{what}: {error}") from None


def _described(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 80 else text[:79] + '…'} ({type(value).__name__})"
