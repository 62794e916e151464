"""A search creates many trials in lots: the same trials in the same order, whatever happens between the lots."""

import hashlib
import json

import pytest

from determined_master.searcher.actions import (
    Create,
    CreateMore,
    LimitsChanged,
    LotDue,
    SearchContinued,
    Shutdown,
    TrialClosed,
)
from determined_master.searcher.method import TRIALS_A_LOT
from determined_master.searcher.methods import make

AXES = {
    "a": {"type": "int", "minval": 0, "maxval": 29, "count": 30},
    "b": {"type": "int", "minval": 0, "maxval": 19, "count": 20},
}
RANGES = {
    "lr": {"type": "double", "minval": 0.0, "maxval": 1.0},
    "k": {"type": "categorical", "vals": ["x", "y", "z"]},
}
RUNGS = {"metric": "loss", "divisor": 4, "time_metric": "batches", "max_time": 64}
SEARCHES = {
    "random": {"max_trials": 700, "max_concurrent_trials": 0},
    "grid": {"max_concurrent_trials": 0},
    "list": {"trials": [{"lr": n / 1000, "k": "x"} for n in range(500)], "max_concurrent_trials": 0},
    "adaptive_asha": RUNGS | {"max_trials": 900, "max_concurrent_trials": 800, "max_rungs": 3, "mode": "standard"},
    "async_halving": RUNGS | {"max_trials": 600, "max_concurrent_trials": 600, "num_rungs": 3},
}
FORMER = {
    "random": (700, "35aa5bb1667635fb"),
    "grid": (600, "7903455285758fd8"),
    "list": (500, "fc426a7895d9fe0e"),
    "adaptive_asha": (645, "aaa9d1b55de3ee1c"),
    "async_halving": (600, "f61b97d81cc1591b"),
}
"""Number and digest of the trials that the version before lots created at once."""
SEARCH = pytest.mark.parametrize("name", SEARCHES)


def config(name):
    return {
        "searcher": {"name": name, **SEARCHES[name]},
        "hyperparameters": AXES if name == "grid" else RANGES,
        "reproducibility": {"experiment_seed": 7},
    }


def created_of(actions):
    return [action for action in actions if isinstance(action, Create)]


def filled(search, actions, after_each=lambda search: search):
    """Returns the search and all actions until it requests no more."""
    actions_so_far = list(actions)
    while actions_so_far and isinstance(actions_so_far[-1], CreateMore):
        search = after_each(search)
        lot = search.on_event(LotDue())
        assert len(created_of(lot)) <= TRIALS_A_LOT
        actions_so_far = actions_so_far[:-1] + lot
    return search, created_of(actions_so_far)


def digest(created):
    text = json.dumps([(action.request_id, action.hparams, action.seed, action.reason) for action in created])
    return len(created), hashlib.sha256(text.encode()).hexdigest()[:16]


@SEARCH
def test_lots_have_the_same_trials_as_the_version_without_lots(name):
    search = make(config(name), None)
    first = search.initial()
    assert len(created_of(first)) == TRIALS_A_LOT
    assert digest(filled(search, first)[1]) == FORMER[name]


@SEARCH
def test_a_search_restored_between_all_lots_creates_the_same(name):
    def restored(search):
        return make(config(name), json.loads(json.dumps(search.snapshot())))

    search = make(config(name), None)
    assert digest(filled(search, search.initial(), restored)[1]) == FORMER[name]


@SEARCH
def test_trials_that_end_between_lots_neither_end_the_search_nor_change_its_trials(name):
    search = make(config(name), None)
    first = search.initial()
    waiting = [action.request_id for action in created_of(first)]

    def close_all(search):
        for request_id in waiting:
            assert search.on_event(TrialClosed(request_id, "completed")) == []
        waiting.clear()
        return search

    created = {action.request_id for action in filled(search, first, close_all)[1]}
    straight = make(config(name), None)
    assert created >= {action.request_id for action in filled(straight, straight.initial())[1]}


@pytest.mark.parametrize("name", ["random", "grid", "list"])
def test_a_search_whose_trials_all_end_between_lots_ends_after_the_last_one(name):
    search = make(config(name), None)
    actions = search.initial()
    total = 0
    while not isinstance(actions[-1], Shutdown):
        total += len(created_of(actions))
        closing = [search.on_event(TrialClosed(create.request_id, "completed")) for create in created_of(actions)]
        ended = [action for some in closing for action in some]
        actions = ended or search.on_event(LotDue())
    assert total == FORMER[name][0]
    assert actions == [Shutdown()]


@SEARCH
def test_a_search_stopped_between_lots_continues_with_the_next_lot(name):
    search = make(config(name), None)
    first = created_of(search.initial())
    known = tuple(action.request_id for action in first)
    for request_id in known:
        search.on_event(TrialClosed(request_id, "user_canceled"))
    actions = search.on_event(SearchContinued(known, known))
    assert digest([*first, *filled(search, actions)[1]]) == FORMER[name]


def test_a_much_larger_limit_is_filled_in_lots():
    search = make(
        config("random") | {"searcher": {"name": "random", "max_trials": 2, "max_concurrent_trials": 0}}, None
    )
    first = search.initial()
    assert len(first) == 2
    actions = search.on_event(LimitsChanged(max_trials=700))
    assert len(created_of(actions)) == TRIALS_A_LOT
    more = filled(search, actions)[1]
    assert [(action.request_id, action.hparams, action.seed) for action in [*first, *more]] == [
        (action.request_id, action.hparams, action.seed) for action in filled_straight("random")
    ]


def filled_straight(name):
    search = make(config(name), None)
    return filled(search, search.initial())[1]


def test_a_search_of_one_lot_requests_no_other():
    settings = config("random")
    settings["searcher"] |= {"max_trials": TRIALS_A_LOT}
    actions = make(settings, None).initial()
    assert len(actions) == len(created_of(actions)) == TRIALS_A_LOT
