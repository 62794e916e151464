"""Runs the search method of an experiment: the entrypoint of a task without slots, in the folder of the context.

It takes events from the master, calls the method, and sends back its actions with its snapshot in one request. The
master stores both or neither, so this process may die at any moment.
"""

import contextlib
import faulthandler
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from determined.client import searches
from determined.client.session import Session
from determined.errors import ApiError, Conflict, DeterminedError, Forbidden, NotFound, Unauthenticated
from determined.exec import trial_class
from determined.searcher.method import SearchContext, SearchMethod
from determined.searcher.search_run import InvalidActions, SearchRun, event_of
from determined_launch import environment
from determined_launch.environment import TaskFacts

POLL_SECONDS = 60
MAX_REASON = 2000
BEFORE_THE_FIRST_EVENT = 0
LAST_RESORT_SECONDS = 30.0
"""After the deadline: C code that holds the interpreter's lock keeps the report of a hang from being sent."""
HUNG = 70
STANDARD_ERROR = 2
"""By number: code of the user may have replaced the stream."""
OPTUNA = "determined.searcher.optuna_search:OptunaSearch"


class _Failed(Exception):
    """A search that cannot go on here. ``is_final``: another task would fail in the same way."""

    def __init__(self, reason: str, *, is_final: bool) -> None:
        super().__init__(reason)
        self.is_final = is_final


def main() -> int:
    """Runs the search until it is over, and returns the exit code."""
    environ = environment.current()
    facts = TaskFacts.from_environment(environ)
    number = environ.get(environment.EXPERIMENT_ID, "")
    if facts is None or not number.isdecimal():
        print("determined: only the master starts this, to run a search method", file=sys.stderr)
        return 2
    with Session(facts.master, allocation_token=facts.session_token) as session:
        experiment_id = int(number)
        try:
            return run(session, experiment_id)
        except _Failed as failure:
            reason = str(failure)[:MAX_REASON]
            print(f"ERROR: {reason}", file=sys.stderr, flush=True)
            with contextlib.suppress(ApiError):
                searches.fail(session, experiment_id, reason, is_final=failure.is_final)
        except (NotFound, Unauthenticated, Forbidden) as error:
            print(f"determined: the search is not this task's any more: {error}", file=sys.stderr, flush=True)
        except ApiError as error:
            print(f"ERROR: {error}", file=sys.stderr, flush=True)
            with contextlib.suppress(ApiError):
                searches.fail(session, experiment_id, str(error)[:MAX_REASON], is_final=True)
        return 1


def run(session: Session, experiment_id: int) -> int:
    """Runs the search from its snapshot on. Raises _Failed, and ApiError for actions that the master refuses."""
    while True:
        with contextlib.suppress(Conflict):  # another task of this search has gone on meanwhile
            _run(session, experiment_id)
            return 0


def _run(session: Session, experiment_id: int) -> None:
    start = searches.begin(session, experiment_id)
    if start["isOver"]:
        return
    seconds = float(start["searcher"]["event_timeout"])
    search = SearchRun(_loaded(start))

    def guarded(work: Callable[[], Any]) -> Any:  # noqa: ANN401  # the result of ``work``
        with _deadline(session, experiment_id, search, seconds), _described(search):
            return work()

    cursor = int(start["cursor"])
    is_over = False
    if cursor < BEFORE_THE_FIRST_EVENT:
        actions = guarded(search.begin).actions
        is_over = _send(session, experiment_id, guarded, search, cursor, BEFORE_THE_FIRST_EVENT, actions)
        cursor = BEFORE_THE_FIRST_EVENT
    else:
        guarded(lambda: search.restore(start["snapshot"]))
        print(f"determined: the search goes on after event {cursor}", flush=True)
    while not is_over:
        news = searches.events(session, experiment_id, cursor, POLL_SECONDS)
        is_over, to = bool(news["isOver"]), int(news["to"])
        if is_over or to == cursor:
            continue
        actions = []
        for each in news["events"]:
            event = event_of(each)
            actions += guarded(partial(search.process, event)).actions
        is_over = _send(session, experiment_id, guarded, search, cursor, to, actions)
        cursor = to


def _send(
    session: Session,
    experiment_id: int,
    guarded: Callable[[Callable[[], Any]], Any],
    search: SearchRun,
    cursor: int,
    to: int,
    actions: list[dict[str, Any]],
) -> bool:
    body = {
        "cursor": cursor,
        "to": to,
        "actions": actions,
        "snapshot": guarded(search.snapshot),
        "progress": guarded(search.progress),
    }
    for action in actions:
        print(f"determined: {_line(action)}", flush=True)
    return searches.step(session, experiment_id, body)


def _line(action: Mapping[str, Any]) -> str:
    """Returns an action as a line of the log."""
    reason = f" ({action['reason']})" if action["reason"] else ""
    if action["kind"] == "create":
        return f"creates trial {action['request_id']} with {json.dumps(action['hparams'])}{reason}"
    if action["kind"] == "stop":
        return f"stops trial {action['request_id']}{reason}"
    return f"ends the search{' as failed' if action['failed'] else ''}{reason}"


def _loaded(start: Mapping[str, Any]) -> SearchMethod:
    """Returns the method that the configuration names. Raises _Failed, which is final."""
    searcher = start["searcher"]
    context = SearchContext(
        hyperparameters=start["hyperparameters"],
        metric=searcher["metric"],
        smaller_is_better=searcher["smaller_is_better"],
        max_trials=searcher["max_trials"],
        max_concurrent_trials=searcher["max_concurrent_trials"],
        time_metric=searcher["time_metric"] or "",
        seed=start["seed"],
        arguments=searcher.get("arguments", searcher),
    )
    spec = searcher["method"] if searcher["name"] == "search_method" else OPTUNA
    try:
        found = trial_class.find(spec, "search method")
        if not isinstance(found, type) or not issubclass(found, SearchMethod):
            raise InvalidActions(f"{spec} is not a subclass of determined.searcher.SearchMethod")
        method: SearchMethod = found(context)
    except DeterminedError as error:
        raise _Failed(str(error), is_final=True) from error
    except BaseException as error:
        traceback.print_exc()
        raise _Failed(f"{spec} cannot be loaded: {_raised(error)}", is_final=True) from error
    if not hasattr(method, "context"):
        raise _Failed(f"{spec}: its constructor does not call super().__init__(context)", is_final=True)
    return method


@contextlib.contextmanager
def _described(search: SearchRun) -> Iterator[None]:
    """Turns what a callback raises into _Failed with a readable reason."""
    try:
        yield
    except InvalidActions as error:
        raise _Failed(str(error), is_final=True) from error
    except BaseException as error:
        traceback.print_exc()
        raise _Failed(f"{search.callback} raised {_raised(error)}", is_final=False) from error


def _raised(error: BaseException) -> str:
    """Returns an exception in one line, with the innermost line of the context's own files."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    here = Path.cwd()
    own = [frame for frame in frames if Path(frame.filename).resolve().is_relative_to(here)]
    if isinstance(error, SyntaxError) and error.filename:
        return text
    if not own:
        return text
    name = Path(own[-1].filename).resolve().relative_to(here)
    return f"{text} ({name}:{own[-1].lineno})"


@contextlib.contextmanager
def _deadline(session: Session, experiment_id: int, search: SearchRun, seconds: float) -> Iterator[None]:
    """Ends this process, with a report and the stacks of all threads, unless the block ends within ``seconds``."""

    def end() -> None:
        reason = f"{search.callback} did not return within {seconds:g} s (searcher.event_timeout)"
        faulthandler.dump_traceback(STANDARD_ERROR, all_threads=True)
        print(f"ERROR: {reason}", file=sys.stderr, flush=True)
        with contextlib.suppress(ApiError):
            searches.fail(session, experiment_id, reason, is_final=False)
        os._exit(HUNG)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(seconds + LAST_RESORT_SECONDS, exit=True, file=STANDARD_ERROR)
    try:
        yield
    finally:
        timer.cancel()
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    sys.exit(main())
