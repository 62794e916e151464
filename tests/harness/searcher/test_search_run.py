"""A search method and its limits: valid actions, the end of the search, and its restart from a snapshot."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import determined.searcher
from determined.searcher import (
    Action,
    Create,
    Event,
    LimitsChanged,
    ReplacedMethods,
    SearchContext,
    SearchMethod,
    Shutdown,
    Stop,
    TrialClosed,
    TrialValidated,
)
from determined.searcher.search_run import InvalidActions, SearchRun

RANGES = {"x": {"type": "double", "minval": 0.0, "maxval": 1.0}, "depth": {"type": "const", "val": 3}}


def context(trials: int = 4, at_once: int = 2, **more: Any) -> SearchContext:
    return SearchContext(RANGES, "loss", max_trials=trials, max_concurrent_trials=at_once, seed=7, **more)


def returning(*actions: Any, **limits: int) -> SearchRun:
    """Returns a search whose first actions are these."""

    class Mine(SearchMethod):
        def initial(self):
            return list(actions)

    return SearchRun(Mine(context(**limits)))


def created_ids(actions: list[dict[str, Any]]) -> list[str]:
    return [action["request_id"] for action in actions if action["kind"] == "create"]


def test_the_base_class_is_a_random_search_within_its_limits():
    run = SearchRun(SearchMethod(context()))
    first = created_ids(run.begin().actions)
    assert len(first) == len(set(first)) == 2
    (third,) = created_ids(run.process(TrialClosed(first[0], "completed")).actions)
    (fourth,) = created_ids(run.process(TrialClosed(first[1], "errored")).actions)
    assert run.process(TrialClosed(third, "completed")).actions == []
    (end,) = run.process(TrialClosed(fourth, "completed")).actions
    assert (end["kind"], end["failed"]) == ("shutdown", False)


def test_trials_beyond_the_concurrent_ones_wait_in_order():
    creations = [Create(name, {"x": 0.5}, 1) for name in "abcd"]
    run = returning(*creations)
    assert created_ids(run.begin().actions) == ["a", "b"]
    restored = SearchRun(SearchMethod(context()))
    restored.restore(json.loads(json.dumps(run.snapshot())))
    assert created_ids(restored.process(TrialClosed("b", "completed")).actions) == ["c"]
    assert created_ids(restored.process(TrialClosed("a", "completed")).actions) == ["d"]


def test_a_trial_that_is_stopped_before_it_begins_counts_as_ended():
    run = returning(*(Create(name, {"x": 0.5}, 1) for name in "abc"), Stop("c", "no"))
    assert created_ids(run.begin().actions) == ["a", "b"]
    assert (run.method.created, run.method.running) == (3, 2)
    assert len(created_ids(run.process(TrialClosed("a", "completed")).actions)) == 1


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (5, r"Mine.initial returned 5 \(int\); return a list of Create, Stop and Shutdown"),
        (["a"], r"Mine.initial returned 'a' \(str\), which is no Create, Stop or Shutdown"),
        ([Create("a b", {}, 1)], "with the request_id 'a b'; use 1 to 36 letters"),
        ([Create("a", {"x": object()}, 1)], "whose hparams JSON cannot carry: .*object"),
        ([Create("a", {"x": float("nan")}, 1)], "whose hparams JSON cannot carry"),
        ([Create("a", {1: 2}, 1)], "use a dict with text keys"),
        ([Create("a", {}, 2**31)], r"with the seed 2147483648; use a whole number"),
        ([Create("a", {}, 1), Create("a", {}, 1)], "with the request_id a, which another trial has"),
        ([Create("a", {}, 1, 7)], r"whose reason is 7 \(int\), not a text"),
        ([Create(str(n), {}, 1) for n in range(5)], r"asks for more than 4 trials \(searcher.max_trials\)"),
        ((Create(str(n), {}, 1) for n in itertools.count()), r"asks for more than 4 trials"),
    ],
)
def test_invalid_actions_of_a_search_are_refused_with_the_reason(returned: Any, text: str):
    class Mine(SearchMethod):
        def initial(self):
            return returned

    with pytest.raises(InvalidActions, match=text):
        SearchRun(Mine(context())).begin()


@pytest.mark.parametrize(
    ("value", "text"), [(object(), "JSON cannot carry"), ("x" * (5 << 20), "at most 4194304")], ids=["object", "long"]
)
def test_a_snapshot_that_cannot_be_stored_is_refused(value: Any, text: str):
    class Mine(SearchMethod):
        def snapshot(self):
            return value

    run = SearchRun(Mine(context()))
    run.begin()
    with pytest.raises(InvalidActions, match=rf"Mine\.snapshot returned .*{text}"):
        run.snapshot()


@pytest.mark.parametrize("value", [1.5, -1, "half", True])
def test_a_progress_outside_of_its_range_is_refused(value: Any):
    class Mine(SearchMethod):
        def progress(self):
            return value

    with pytest.raises(InvalidActions, match="return a number from 0 to 1, or None"):
        SearchRun(Mine(context())).progress()


@pytest.mark.parametrize(
    ("reasons", "failed", "canceled"),
    [
        (("errored", "out_of_restarts"), True, False),
        (("user_canceled", "killed"), False, True),
        (("errored", "completed"), False, False),
    ],
)
def test_a_search_without_further_actions_ends_with_the_state_of_its_trials(reasons: Any, failed: bool, canceled: bool):
    run = SearchRun(SearchMethod(context(trials=2)))
    names = created_ids(run.begin().actions)
    steps = [run.process(TrialClosed(name, reason)) for name, reason in zip(names, reasons, strict=True)]
    (end,) = steps[-1].actions
    assert (end["failed"], end["canceled"]) == (failed, canceled)
    assert end["reason"] == ("every trial of the search failed (2 of 2)" if failed else "")


def test_a_search_that_is_shut_down_gets_no_further_events():
    class Mine(SearchMethod):
        def initial(self):
            return [self.create(), Shutdown(reason="enough")]

        def on_trial_ended(self, event):
            raise AssertionError

    assert [action["kind"] for action in returning().begin().actions] == ["shutdown"]
    run = SearchRun(Mine(context()))
    assert [(action["kind"], action["reason"]) for action in run.begin().actions] == [("shutdown", "enough")]
    assert run.process(TrialClosed("a", "completed")).actions == []


def test_changed_limits_apply_immediately_and_after_a_restore():
    run = SearchRun(SearchMethod(context(trials=2)))
    run.begin()
    assert len(created_ids(run.process(LimitsChanged(5, 4)).actions)) == 2
    assert run.method.context.max_trials == 5
    restored = SearchRun(SearchMethod(context(trials=2)))
    restored.restore(run.snapshot())
    assert (restored.method.context.max_trials, restored.method.created) == (5, 4)


@pytest.mark.parametrize("name", ["initial_operations", "on_trial_closed", "save_method_state"])
def test_methods_of_the_class_of_2022_are_refused_with_their_replacement(name: str):
    with pytest.raises(ReplacedMethods, match=rf"{name} is replaced by (initial|on_trial_ended|snapshot)\("):
        type("Old", (SearchMethod,), {name: lambda self: []})


class Greedy(SearchMethod):
    """A search that stops trials much worse than the best. Its state is in the snapshot."""

    best = 1e9
    reports = 0

    def on_validation(self, event):
        self.reports += 1
        self.best = min(self.best, event.metric)
        return [Stop(event.request_id, f"after {self.reports}")] if event.metric > 1.5 * self.best else []

    def snapshot(self):
        return [self.best, self.reports]

    def restore(self, snapshot):
        self.best, self.reports = snapshot


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0.1, 9), st.booleans(), st.booleans()), max_size=40))
def test_a_search_that_is_restored_from_its_snapshot_decides_as_an_uninterrupted_one(story: list[Any]):
    straight, interrupted = SearchRun(Greedy(context(6, 3))), SearchRun(Greedy(context(6, 3)))
    actions = straight.begin().actions
    assert interrupted.begin().actions == actions
    trials = created_ids(actions)
    for position, metric, is_closed, is_restored in story:
        if not trials:
            break
        name = trials[position % len(trials)]
        event = TrialClosed(name, "completed") if is_closed else TrialValidated(name, 1, 1.0, metric)
        if is_closed:
            trials.remove(name)
        if is_restored:
            stored = json.loads(json.dumps(interrupted.snapshot()))
            interrupted = SearchRun(Greedy(context(6, 3)))
            interrupted.restore(stored)
        actions = straight.process(event).actions
        assert interrupted.process(event).actions == actions
        trials += created_ids(actions)
        assert len(trials) <= 3
    assert straight.method.created <= 6
    assert straight.snapshot() == interrupted.snapshot()


def test_importing_a_name_of_2022_from_the_searcher_names_its_replacement():
    with pytest.raises(ImportError, match="ValidateAfter belongs to the SearchMethod of Determined 2022"):
        exec("from determined.searcher import ValidateAfter", {})
    assert not hasattr(determined.searcher, "Nothing")


def test_the_aliases_event_and_action_hold_every_class():
    assert {kind.__name__ for kind in (*Event.__args__, *Action.__args__)} == {
        *("TrialValidated", "TrialClosed", "LimitsChanged"),
        *("Create", "Stop", "Shutdown"),
    }
