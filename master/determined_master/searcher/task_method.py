"""Searches whose method runs in a task: what its events look like, and which of its actions are refused. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from determined.config.search_plan import TrainingTime
from determined.hyperparameter_tree import is_group
from determined.searcher.sampling import listed_point
from determined_master.json_numbers import outward
from determined_master.searcher.actions import (
    Action,
    Create,
    Event,
    LimitsChanged,
    ResumeDue,
    Shutdown,
    Stop,
    TrialClosed,
    TrialValidated,
)
from determined_master.searcher.step_reports import StepReports
from determined_master.searcher.training_time import Diverged, UnusableReport, metric_of, metrics_of_time, time_of

NOT_BEGUN = -1
"""Cursor of a search whose method has not been asked for its first actions."""
FIRST = 0
"""Cursor of a search whose method has returned its first actions and read no event."""
MAX_EVENTS_A_STEP = 256
FAILURE = "failure"
"""Key of a snapshot: why the method failed last."""
STORED_BY = "stored_by"
"""Key of a snapshot: the allocation whose task stored it."""
STATE = "state"
"""Key of a snapshot: what the task stored."""
STEPS = "steps"
"""Key of a snapshot: what trials have reported at their newest steps. Absent in those of earlier versions."""


class RefusedActions(Exception):
    """Actions that a search may not take. The text is for the owner of the experiment."""


@dataclass(frozen=True)
class TaskEvents:
    """Events as the task reads them, and the actions that the master takes itself because reports are unusable.

    ``steps``: what is known of the trials' newest steps after these events.
    """

    values: list[dict[str, Any]] = field(default_factory=list)
    own_actions: list[Action] = field(default_factory=list)
    steps: dict[str, Any] = field(default_factory=dict)


def task_events(
    events: Iterable[Event | ResumeDue], searcher: Mapping[str, Any], snapshot: Mapping[str, Any]
) -> TaskEvents:
    """Returns the events for the task; a search in a task is never continued.

    The validations of one step are one event, once they have the metrics that the search needs. A trial whose metric is
    not finite fails. A metric that is no number, or that a step ends without, ends the search.

    Args:
        events: those that follow the snapshot.
        searcher: the section of the configuration.
        snapshot: that of the search.
    """
    result = TaskEvents()
    time = TrainingTime(searcher.get("time_metric") or "batches", 0)
    steps = StepReports({searcher["metric"], *metrics_of_time(time, 0)})
    steps.restore(snapshot.get(STEPS, {}))
    for event in events:
        if isinstance(event, TrialValidated):
            for step in steps.add(event):
                _judge(step, result, searcher["metric"], time)
        elif isinstance(event, TrialClosed):
            last = steps.close(event.request_id)
            if last is not None and event.reason == "completed":
                _judge(last, result, searcher["metric"], time)
            result.values.append({"kind": "closed", "requestId": event.request_id, "reason": event.reason})
        elif isinstance(event, LimitsChanged):
            result.values.append(_limits(event))
    return replace(result, steps=steps.snapshot())


def _judge(step: TrialValidated, found: TaskEvents, metric: str, time: TrainingTime) -> None:
    try:
        found.values.append(_validated(step, metric, time))
    except Diverged as error:
        found.own_actions.append(Stop(step.request_id, f"failed: {error}", failed=True))
    except UnusableReport as error:
        found.own_actions.append(Shutdown(failed=True, reason=str(error)))


def _validated(event: TrialValidated, metric: str, time: TrainingTime) -> dict[str, Any]:
    return {
        "kind": "validated",
        "requestId": event.request_id,
        "steps": event.steps,
        "time": time_of(event, time, 0, lambda: None),
        "metric": metric_of(event, metric, smaller_is_better=True),
        "metrics": outward(event.metrics),
    }


def _limits(event: LimitsChanged) -> dict[str, Any]:
    return {
        "kind": "limits",
        "maxTrials": event.max_trials,
        "maxConcurrentTrials": event.max_concurrent_trials,
    }


def checked_actions(
    actions: Sequence[Action],
    *,
    hyperparameters: Mapping[str, Any],
    max_trials: int,
    created: int,
    known: Collection[str],
) -> list[Action]:
    """Returns the actions, with the constants of the configuration in their hyperparameters. Raises RefusedActions.

    Args:
        actions: what the task wants.
        hyperparameters: the section of the configuration.
        max_trials: the limit of now.
        created: number of trials that exist.
        known: the request ids among those of ``actions`` that trials have.
    """
    new = [action for action in actions if isinstance(action, Create)]
    if created + len(new) > max_trials:
        raise RefusedActions(f"it asks for {created + len(new)} trials, and searcher.max_trials is {max_trials}")
    names = set(known)
    checked: list[Action] = []
    for action in actions:
        if isinstance(action, Create):
            if action.request_id in names:
                raise RefusedActions(f"it creates two trials with the request id {action.request_id}")
            names.add(action.request_id)
            checked.append(_completed(action, hyperparameters))
            continue
        if isinstance(action, Stop) and action.request_id not in names:
            raise RefusedActions(f"it stops a trial that does not exist: {action.request_id}")
        checked.append(action)
    return checked


def _completed(action: Create, hyperparameters: Mapping[str, Any]) -> Create:
    missing = sorted(open_ranges(hyperparameters, action.hparams))
    if missing:
        raise RefusedActions(f"it creates a trial without a value of {', '.join(missing)}")
    values = listed_point(hyperparameters, action.hparams)
    return Create(action.request_id, values, action.seed, action.reason)


def open_ranges(hyperparameters: Mapping[str, Any], values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yields the dotted names of ranges that have no value.

    >>> list(open_ranges({"a": {"type": "const", "val": 1}, "b": {"c": {"type": "int", "minval": 1, "maxval": 2}}}, {}))
    ['b.c']
    """
    for name, part in hyperparameters.items():
        if is_group(part):
            below = values.get(name, {})
            if isinstance(below, Mapping):
                yield from open_ranges(part, below, f"{prefix}{name}.")
        elif part["type"] != "const" and name not in values:
            yield f"{prefix}{name}"


def to_json(action: Action) -> dict[str, Any]:
    """Returns a checked action as it is stored until its lot is applied."""
    return {"kind": type(action).__name__, **asdict(action)}


def from_json(value: Mapping[str, Any]) -> Action:
    """Returns the action that ``to_json`` has made a value of."""
    kinds: dict[str, type[Action]] = {kind.__name__: kind for kind in (Create, Stop, Shutdown)}
    return kinds[value["kind"]](**{name: part for name, part in value.items() if name != "kind"})


def task_progress(max_trials: int, closed: int, live_progress: float) -> float:
    """Returns the progress of a search whose method does not know it.

    >>> task_progress(4, 1, 1.0)
    0.5
    """
    return min(1.0, (closed + live_progress) / max_trials)
