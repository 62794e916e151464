"""A search that a user ended and continued has the state of one that was never ended."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from determined_master.experiments.hp_search import SearchView, decide
from determined_master.searcher.actions import Create, SearchContinued, Shutdown, Stop, TrialClosed, TrialValidated
from determined_master.searcher.methods import make

HPARAMS = {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0, "count": 7}}
HALVING = {
    "name": "async_halving",
    "metric": "loss",
    "time_metric": "batches",
    "max_time": 16,
    "num_rungs": 3,
    "divisor": 4.0,
    "max_trials": 12,
    "max_concurrent_trials": 4,
}
ADAPTIVE = HALVING | {"name": "adaptive_asha", "max_rungs": 5, "mode": "standard", "max_time": 64, "max_trials": 16}
RANDOM = {"name": "random", "metric": "loss", "max_trials": 7, "max_concurrent_trials": 2}
GRID = {"name": "grid", "metric": "loss", "max_concurrent_trials": 3}
STEPS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["report", "completed"]), st.floats(0, 1)), max_size=60)


class Cluster:
    """Simulates the trials of a search. Trials that the search requests while it is being stopped are not created."""

    def __init__(self, searcher: dict[str, Any]) -> None:
        config = {"searcher": searcher, "hyperparameters": HPARAMS, "reproducibility": {"experiment_seed": 7}}
        self.search: Any = make(config, None)
        self.known: list[str] = []
        self.live: dict[str, int] = {}
        self.stopped: set[str] = set()
        self.apply(self.search.initial())

    def apply(self, actions: list[Any]) -> None:
        for action in actions:
            if isinstance(action, Create):
                self.known.append(action.request_id)
                self.live[action.request_id] = 0
            elif isinstance(action, Stop):
                self.stopped.add(action.request_id)

    def play(self, which: int, what: str, loss: float) -> None:
        if not self.live:
            return
        trial = sorted(self.live)[which % len(self.live)]
        if what == "report" and trial not in self.stopped:
            self.live[trial] += 2
            self.apply(self.search.on_event(TrialValidated(trial, self.live[trial], {"loss": loss})))
        else:
            del self.live[trial]
            reason = "searcher_stopped" if trial in self.stopped else "completed"
            self.apply(self.search.on_event(TrialClosed(trial, reason)))

    def state(self) -> dict[str, Any]:
        snapshot: dict[str, Any] = json.loads(json.dumps(self.search.snapshot()))
        snapshot.pop("rng", None)  # of random searches: rejected draws are lost
        return snapshot


@pytest.mark.parametrize("searcher", [HALVING, ADAPTIVE, RANDOM, GRID], ids=lambda searcher: searcher["name"])
@settings(deadline=None)  # a busy machine takes long for one example
@given(steps=STEPS)
def test_a_continued_search_has_the_state_from_before_it_was_killed(
    searcher: dict[str, Any], steps: list[tuple[int, str, float]]
):
    cluster = Cluster(searcher)
    for step in steps:
        cluster.play(*step)
    if not cluster.live:
        return
    before, stopped = cluster.state(), sorted(cluster.stopped & cluster.live.keys())
    ended = [action for trial in cluster.live for action in cluster.search.on_event(TrialClosed(trial, "killed"))]
    assert isinstance(ended[-1], Shutdown) or any(isinstance(action, Create) for action in ended)
    actions = cluster.search.on_event(SearchContinued(tuple(cluster.live), tuple(cluster.known)))
    assert sorted(action.request_id for action in actions if isinstance(action, Stop)) == stopped
    assert [action for action in actions if not isinstance(action, Stop)] == []
    assert cluster.state() == before


@pytest.mark.parametrize("searcher", [HALVING, ADAPTIVE, RANDOM, GRID], ids=lambda searcher: searcher["name"])
def test_a_continued_failed_search_retries_exactly_its_trials(searcher: dict[str, Any]):
    cluster = Cluster(searcher)
    errored_trials: list[str] = []
    while cluster.live:
        trial, _ = cluster.live.popitem()
        errored_trials.append(trial)
        cluster.apply(cluster.search.on_event(TrialClosed(trial, "errored")))
    assert sorted(errored_trials) == sorted(cluster.known)
    assert cluster.search.on_event(SearchContinued(tuple(errored_trials), tuple(errored_trials))) == []
    ends = [cluster.search.on_event(TrialClosed(trial, "completed")) for trial in errored_trials]
    assert [len(end) for end in ends] == [0] * (len(errored_trials) - 1) + [1]
    assert (ends[-1][0].failed, ends[-1][0].canceled) == (False, False)


@pytest.mark.parametrize("searcher", [HALVING, RANDOM, GRID], ids=lambda searcher: searcher["name"])
def test_a_continued_search_with_no_trial_left_ends_at_once(searcher: dict[str, Any]):
    cluster = Cluster(searcher)
    while cluster.live:
        trial, _ = cluster.live.popitem()
        cluster.apply(cluster.search.on_event(TrialClosed(trial, "completed")))
    (action,) = cluster.search.on_event(SearchContinued((), tuple(cluster.known)))
    assert isinstance(action, Shutdown)


def test_a_continued_search_drops_the_trials_requested_at_its_former_end():
    """A search may be continued before the ends of its trials are processed."""
    cluster = Cluster(RANDOM)
    trials = tuple(cluster.live)
    ends = tuple(TrialClosed(trial, "killed") for trial in trials)
    continued = SearchContinued(trials, tuple(cluster.known))
    view = SearchView((*ends, continued), tuple(range(1, len(ends) + 2)), len(ends) + 1, 0.0)
    search = deepcopy(cluster.search)
    assert any(isinstance(action, Shutdown | Create) for action in decide(search, replace(view, news=ends)).actions)
    assert not any(isinstance(action, Shutdown) for action in decide(cluster.search, view).actions)


def test_events_before_a_continuation_that_is_processed_later_have_no_effect():
    cluster = Cluster(RANDOM)
    ends = tuple(TrialClosed(trial, "killed") for trial in cluster.live)
    view = SearchView(ends, tuple(range(1, len(ends) + 1)), len(ends), 0.0, is_past=True)
    assert decide(cluster.search, view).actions == []
