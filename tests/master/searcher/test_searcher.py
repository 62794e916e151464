"""Single, random, grid and list searches: number and order of trials, ends, and snapshots without an effect."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined_master.searcher.actions import Create, LimitsChanged, Shutdown, TrialClosed
from determined_master.searcher.methods import make


def config(searcher, hparams=None):
    return {
        "searcher": searcher,
        "hyperparameters": hparams or {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0}},
        "reproducibility": {"experiment_seed": 7},
    }


RANDOM = {"name": "random", "max_trials": 5, "max_concurrent_trials": 2}
GRID = {"name": "grid", "max_concurrent_trials": 0}
AXES = {
    "a": {"type": "categorical", "vals": ["x", "y"]},
    "b": {"type": "int", "minval": 1, "maxval": 3, "count": 3},
}


def play(search, reasons):
    """Closes trials in the order of their creation with these reasons. Returns all actions in order."""
    actions = search.initial()
    queue = [a for a in actions if isinstance(a, Create)]
    for reason in reasons:
        if not queue:
            break
        done = queue.pop(0)
        new = search.on_event(TrialClosed(done.request_id, reason))
        queue += [a for a in new if isinstance(a, Create)]
        actions += new
    return actions


def test_single_search_creates_one_trial_and_ends_with_it():
    actions = play(make(config({"name": "single"}), None), ["completed"])
    assert [type(a) for a in actions] == [Create, Shutdown]
    assert actions[-1] == Shutdown()


def test_random_search_runs_max_concurrent_trials_at_a_time():
    search = make(config(RANDOM), None)
    assert len(search.initial()) == 2
    assert sum(isinstance(a, Create) for a in play(make(config(RANDOM), None), ["completed"] * 9)) == 5


def test_random_search_replaces_invalid_trials_but_not_failed_ones():
    created = [
        a
        for a in play(make(config(RANDOM), None), ["invalid_hp", "errored"] + ["completed"] * 9)
        if isinstance(a, Create)
    ]
    assert len(created) == 6


def test_grid_search_creates_the_whole_product_in_reverse_order():
    created = [a for a in play(make(config(GRID, AXES), None), []) if isinstance(a, Create)]
    points = [(c.hparams["a"], c.hparams["b"]) for c in created]
    assert sorted(points) == [(a, b) for a in "xy" for b in (1, 2, 3)]
    assert points == sorted(points, reverse=True)


@pytest.mark.parametrize(
    ("reasons", "end"),
    [
        (["errored"] * 5, Shutdown(failed=True, reason="every trial of the search failed (5 of 5)")),
        (["user_canceled"] * 5, Shutdown(canceled=True)),
        (["errored", "completed", "completed", "completed", "completed"], Shutdown()),
    ],
)
def test_a_search_ends_by_the_reasons_of_its_trials(reasons, end):
    assert play(make(config(RANDOM), None), reasons)[-1] == end


def test_random_search_draws_the_same_trials_for_the_same_seed():
    assert play(make(config(RANDOM), None), ["completed"] * 9) == play(make(config(RANDOM), None), ["completed"] * 9)


def test_a_repeated_event_does_not_change_the_search():
    search = make(config(RANDOM), None)
    first = search.initial()[0]
    search.on_event(TrialClosed(first.request_id, "completed"))
    before = search.snapshot()
    assert search.on_event(TrialClosed(first.request_id, "completed")) == []
    assert search.snapshot() == before


@given(
    st.sampled_from(["random", "grid"]),
    st.lists(st.sampled_from(["completed", "errored", "invalid_hp", "user_canceled"]), min_size=8, max_size=12),
    st.integers(0, 8),
)
def test_a_search_restored_at_any_point_continues_the_same(name, reasons, cut):
    settings = config(RANDOM if name == "random" else GRID, None if name == "random" else AXES)
    straight = make(settings, None)
    broken = make(settings, None)
    queue = [straight.initial(), broken.initial()]
    assert queue[0] == queue[1]
    waiting = [a for a in queue[0] if isinstance(a, Create)]
    for number, reason in enumerate(reasons):
        if not waiting:
            break
        if number == cut:
            broken = make(settings, json.loads(json.dumps(broken.snapshot())))
        event = TrialClosed(waiting.pop(0).request_id, reason)
        first, second = straight.on_event(event), broken.on_event(event)
        assert first == second
        waiting += [a for a in first if isinstance(a, Create)]
    assert straight.progress(0.0) == broken.progress(0.0)


def test_a_grid_search_goes_on_from_a_snapshot_that_an_older_master_stored():
    """The remaining points follow from ``created`` alone, in the order of the product from its end."""
    whole = [{"a": a, "b": b} for a in "xy" for b in (1, 2, 3)]
    concurrent = GRID | {"max_concurrent_trials": 2}
    straight = make(config(concurrent, AXES), None)
    first, second = straight.initial()
    stored = {"created": 2, "invalid": 0, "closed": {}, "over": False, "rng": straight.snapshot()["rng"]}
    resumed = make(config(concurrent, AXES), json.loads(json.dumps(stored)))
    points = [first.hparams, second.hparams]
    waiting = [first, second]
    while waiting:
        new = resumed.on_event(TrialClosed(waiting.pop(0).request_id, "completed"))
        waiting += [a for a in new if isinstance(a, Create)]
        points += [a.hparams for a in new if isinstance(a, Create)]
    assert points == whole[::-1]


def test_a_huge_grid_is_indexed_and_never_built():
    axis = {"type": "int", "minval": 0, "maxval": 299, "count": 300}
    search = make(config(GRID | {"max_concurrent_trials": 1}, {"a": axis, "b": axis, "c": axis}), None)
    (only,) = search.initial()
    assert only.hparams == {"a": 299, "b": 299, "c": 299}
    tracemalloc.start()
    (after,) = search.on_event(TrialClosed(only.request_id, "completed"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after.hparams == {"a": 299, "b": 299, "c": 298}
    assert peak < 1_000_000


def test_a_list_runs_its_trials_in_order_over_the_constants():
    hparams = {"lr": {"type": "const", "val": 0.1}, "net": {"width": {"type": "const", "val": 8}, "depth": 2}}
    searcher = {"name": "list", "trials": [{"lr": 1}, {"net": {"depth": 3}}, {}], "max_concurrent_trials": 2}
    actions = play(make(config(searcher, hparams), None), ["completed", "invalid_hp", "completed"])
    assert [a.hparams for a in actions if isinstance(a, Create)] == [
        {"lr": 1, "net": {"width": 8, "depth": 2}},
        {"lr": 0.1, "net": {"width": 8, "depth": 3}},
        {"lr": 0.1, "net": {"width": 8, "depth": 2}},
    ]
    assert actions[-1] == Shutdown()


def test_limits_of_a_running_search_can_be_raised_and_lowered():
    search = make(config(RANDOM), None)
    first = search.initial()
    more = search.on_event(LimitsChanged(max_concurrent_trials=4))
    assert (len(first), len(more)) == (2, 2)
    assert search.on_event(LimitsChanged(max_concurrent_trials=1, max_trials=6)) == []
    search = make(config(RANDOM), json.loads(json.dumps(search.snapshot())))
    live = [*first, *more]
    while len(live) > 1:
        assert search.on_event(TrialClosed(live.pop().request_id, "completed")) == []
    created = 4
    while live:
        new = search.on_event(TrialClosed(live.pop().request_id, "completed"))
        live = [a for a in new if isinstance(a, Create)]
        created += len(live)
    assert created == 6
