"""Asynchronous halving: which trials stop at which rung, what ends the search, and restarts without an effect."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined_master.searcher.actions import Create, Keep, LimitsChanged, Shutdown, Stop, TrialClosed, TrialValidated
from determined_master.searcher.methods import make

HPARAMS = {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0}}
HALVING = {
    "name": "async_halving",
    "metric": "loss",
    "time_metric": "batches",
    "max_time": 16,
    "num_rungs": 3,
    "divisor": 4.0,
    "max_trials": 12,
    "max_concurrent_trials": 12,
}
ADAPTIVE = HALVING | {"name": "adaptive_asha", "max_rungs": 5, "mode": "standard", "max_time": 64, "max_trials": 16}


def search_of(searcher=HALVING, snapshot=None, hparams=None, **more) -> Any:
    config = {"searcher": searcher, "hyperparameters": hparams or HPARAMS, "reproducibility": {"experiment_seed": 7}}
    return make(config | more, snapshot)


def created(actions):
    return [a.request_id for a in actions if isinstance(a, Create)]


def report(request_id, steps, loss, **metrics):
    return TrialValidated(request_id, steps, {"loss": loss} | metrics)


def test_a_quarter_of_a_rung_continues_and_each_decision_has_a_reason():
    search = search_of()
    trials = created(search.initial())
    assert len(trials) == 12
    (decision,) = search.on_event(report(trials[0], 1, 0.5))
    assert decision == Keep(trials[0], "kept at rung 1: 1st of 1, 1 kept (loss 0.5 after 1 batches)", decision.result)
    (stopped,) = search.on_event(report(trials[1], 2, 0.6))
    assert stopped.reason == "stopped at rung 1: 2nd of 2, 1 kept (loss 0.6 after 2 batches)"
    assert (stopped.result.units, stopped.result.rank, stopped.failed) == (1, 2, False)
    decisions = [search.on_event(report(trial, 1, 0.9 + n))[0] for n, trial in enumerate(trials[2:7])]
    assert {type(decision) for decision in decisions} == {Stop}
    (eighth,) = search.on_event(report(trials[7], 1, 0.55))
    assert eighth.reason.startswith("kept at rung 1: 2nd of 8, 2 kept")
    assert search.on_event(report(trials[1], 3, 0.0)) == []


def test_a_late_report_passes_several_rungs_and_the_last_one_ends_the_trial():
    search = search_of(HALVING | {"max_concurrent_trials": 1})
    (trial,) = created(search.initial())
    actions = search.on_event(report(trial, 16, 0.5))
    assert [type(a) for a in actions] == [Keep, Keep, Stop, Create]
    assert actions[2].reason == "finished the last rung, 3: 1st of 1 (loss 0.5 after 16 batches)"
    assert not any(isinstance(a, Shutdown) for a in search.on_event(TrialClosed(trial, "searcher_stopped")))


def test_a_search_with_larger_is_better_keeps_the_larger_metric():
    search = search_of(HALVING | {"smaller_is_better": False})
    first, second, *_ = created(search.initial())
    search.on_event(report(first, 1, 0.5))
    assert isinstance(search.on_event(report(second, 1, 0.7))[0], Keep)


def test_adaptive_search_has_the_brackets_of_the_documented_example():
    search = search_of(ADAPTIVE | {"max_concurrent_trials": 16})
    actions = search.initial()
    # 16 concurrent trials are 8 per bracket. The smaller bracket has 4 trials.
    assert len(actions) == 12
    assert sum("bracket 1" in a.reason for a in actions) == 8
    assert actions[0].reason == "created in bracket 1: trial 1 of 12"
    stored = search.snapshot()["brackets"]
    assert [(bracket["units"], bracket["max_trials"]) for bracket in stored] == [([4, 16, 64], 12), ([16, 64], 4)]


@pytest.mark.parametrize(("max_concurrent", "expected"), [(0, 12), (5, 5), (99, 12)])
def test_a_bracket_starts_with_max_concurrent_trials(max_concurrent, expected):
    # 0 means divisor ** (rungs - 1), here 16, and at most max_trials.
    assert len(search_of(HALVING | {"max_concurrent_trials": max_concurrent}).initial()) == expected


def test_a_failure_is_last_in_its_rung_and_invalid_hyperparameters_are_replaced():
    search = search_of(HALVING | {"max_trials": 4, "max_concurrent_trials": 2})
    first, second = created(search.initial())
    assert len(created(search.on_event(TrialClosed(first, "out_of_restarts")))) == 1
    assert search.snapshot()["brackets"][0]["rungs"][0][0][0] > 1e300
    search.on_event(report(second, 1, 0.5))
    (third,) = created(search.on_event(TrialClosed(second, "invalid_hp")))
    assert len(search.snapshot()["brackets"][0]["rungs"][0]) == 1
    assert third


def test_a_search_whose_every_trial_fails_is_a_failure():
    search = search_of(HALVING | {"max_trials": 3})
    ends = [search.on_event(TrialClosed(trial, "errored")) for trial in created(search.initial())]
    assert ends[-1] == [Shutdown(failed=True, reason="every trial of the search failed (3 of 3)")]


def test_a_trial_that_reports_nan_fails_without_ending_the_search():
    search = search_of(HALVING | {"max_trials": 3, "max_concurrent_trials": 1})
    (trial,) = created(search.initial())
    stop, create = search.on_event(report(trial, 1, "NaN"))
    assert stop == Stop(trial, "failed: the validation after 1 batches reported loss = nan", failed=True)
    assert isinstance(create, Create)


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        ({"accuracy": 1.0}, "the validation after 1 batches has no loss, the searcher's metric; it reported accuracy"),
        ({"loss": "low"}, "reported loss as a text"),
        ({"loss": True}, "reported loss as a boolean"),
        ({"loss": 0.1}, "has no seen, the search's time metric; it reported loss"),
        ({"loss": 0.1, "seen": "x"}, "reported seen as a text"),
        ({"loss": 0.1, "seen": "NaN"}, "reported seen = nan, by which the search measures training time"),
    ],
)
def test_a_report_that_cannot_be_compared_ends_the_search_with_the_reason(metrics, text):
    search = search_of(HALVING | {"time_metric": "seen"})
    trial, *_ = created(search.initial())
    ends = search.on_event(TrialValidated(trial, 1, metrics)) or search.on_event(TrialValidated(trial, 2, metrics))
    (end,) = ends
    assert end.failed
    assert text in end.reason
    assert search.on_event(TrialClosed(trial, "errored")) == []


def test_reports_of_one_step_are_judged_together():
    search = search_of(HALVING | {"time_metric": "seen"})
    trial, *_ = created(search.initial())
    assert search.on_event(TrialValidated(trial, 1, {"accuracy": 1.0})) == []
    search = search_of(HALVING | {"time_metric": "seen"}, search.snapshot())
    assert search.on_event(TrialValidated(trial, 1, {"seen": 64})) == []
    assert search.on_event(TrialValidated(trial, 1, {"loss": 0.1})) != []
    assert search.on_event(TrialValidated(trial, 1, {"p5": 0.1})) == []


def test_a_trial_that_ends_without_the_metric_of_its_last_step_ends_the_search():
    search = search_of(HALVING)
    trial, *_ = created(search.initial())
    assert search.on_event(TrialValidated(trial, 1, {"accuracy": 1.0})) == []
    (end,) = search.on_event(TrialClosed(trial, "completed"))
    assert end.failed
    assert end.reason.startswith("the validation after 1 batches has no loss, the searcher's metric")


@pytest.mark.parametrize(
    ("searcher", "metrics", "is_kept"),
    [
        ({"max_length": 16}, {}, True),
        ({"max_length": {"batches": 16}}, {}, True),
        ({"max_length": {"records": 160}}, {}, True),
        ({"max_length": {"records": 320}}, {}, False),
        ({"max_length": {"epochs": 16}}, {"epochs": 1}, True),
        ({"max_length": {"epochs": 16}}, {"epochs": 0.5}, False),
        ({"max_length": {"epochs": 16}}, {}, True),
        ({"max_time": 16, "time_metric": "epochs"}, {}, True),
        ({"max_time": 16, "time_metric": "seen"}, {"seen": 0.9}, False),
    ],
)
def test_the_training_time_comes_from_either_dialect(searcher, metrics, is_kept):
    """One batch of ten records reaches the first rung, unless the searcher requires more."""
    values = {k: v for k, v in HALVING.items() if k not in ("max_time", "time_metric")} | searcher
    hparams = HPARAMS | {"global_batch_size": {"type": "categorical", "vals": [10]}}
    search = search_of(values, hparams=hparams, records_per_epoch=10)
    trial, *_ = created(search.initial())
    assert bool(search.on_event(report(trial, 1, 0.5, **metrics))) is is_kept


def test_limits_of_a_running_search_are_divided_among_its_brackets():
    search = search_of(ADAPTIVE | {"max_concurrent_trials": 2})
    assert len(search.initial()) == 2
    more = search.on_event(LimitsChanged(max_trials=160, max_concurrent_trials=6))
    assert len(created(more)) == 4
    brackets = search.snapshot()["brackets"]
    assert [(bracket["max_trials"], bracket["concurrent"], len(bracket["units"])) for bracket in brackets] == [
        (117, 3, 3),
        (43, 3, 2),
    ]
    again = search_of(ADAPTIVE | {"max_trials": 160}, json.loads(json.dumps(search.snapshot())))
    assert again.on_event(LimitsChanged(max_trials=1, max_concurrent_trials=1)) == []


# The steps of a simulated search: the index of the live trial, its action, and its loss.
STEPS = st.lists(
    st.tuples(
        st.integers(0, 99),
        st.sampled_from(["report", "report", "report", "completed", "errored", "invalid_hp", "limits"]),
        st.sampled_from([0.1, 0.2, 0.3, 0.4, "NaN"]),
    ),
    max_size=80,
)


class Player:
    """Simulates a cluster: trials train by batches, and a stopped trial ends at its next step."""

    def __init__(self, searcher):
        self.search = search_of(searcher)
        self.searcher = searcher
        self.actions = self.search.initial()
        self.steps = dict.fromkeys(created(self.actions), 0)
        self.stopped = set()

    def restart(self):
        self.search = search_of(self.searcher, json.loads(json.dumps(self.search.snapshot())))

    def play(self, which, what, loss):
        if what == "limits":
            self.handle(LimitsChanged(max_concurrent_trials=which % 8))
        elif self.steps:
            trial = sorted(self.steps)[which % len(self.steps)]
            if trial in self.stopped:
                what = "searcher_stopped"
            if what == "report":
                self.steps[trial] += 2
                self.handle(report(trial, self.steps[trial], loss))
            else:
                del self.steps[trial]
                self.handle(TrialClosed(trial, what))

    def handle(self, event):
        new = self.search.on_event(event)
        self.actions += new
        self.steps |= dict.fromkeys(created(new), 0)
        self.stopped |= {a.request_id for a in new if isinstance(a, Stop)}


@pytest.mark.parametrize("searcher", [HALVING | {"max_concurrent_trials": 3}, ADAPTIVE])
@given(steps=STEPS, cut=st.integers(0, 80))
def test_an_adaptive_search_restored_at_any_point_continues_the_same(searcher, steps, cut):
    straight, broken = Player(searcher), Player(searcher)
    for number, step in enumerate(steps):
        if number == cut:
            broken.restart()
        straight.play(*step)
        broken.play(*step)
    assert straight.actions == broken.actions
    assert json.dumps(straight.search.snapshot()) == json.dumps(broken.search.snapshot())
    assert straight.search.progress(0.0) == broken.search.progress(0.0)


@pytest.mark.parametrize("searcher", [HALVING, ADAPTIVE])
@given(steps=STEPS)
def test_no_trial_is_decided_on_twice_and_no_more_are_created_than_wanted(searcher, steps):
    player = Player(searcher)
    for step in steps:
        player.play(*step)
    stops = [a.request_id for a in player.actions if isinstance(a, Stop)]
    keeps = [(a.request_id, a.result.rung) for a in player.actions if isinstance(a, Keep)]
    ids = created(player.actions)
    invalid = sum(bracket["states"].count("i") for bracket in player.search.snapshot()["brackets"])
    assert (len(stops), len(keeps), len(ids)) == (len(set(stops)), len(set(keeps)), len(set(ids)))
    assert len(ids) - invalid <= searcher["max_trials"]
    assert 0.0 <= player.search.progress(0.0) <= 1.0


@given(losses=st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=2, max_size=12), data=st.data())
def test_a_decision_depends_on_the_results_of_a_rung_and_not_on_their_order(losses, data):
    """Equal results have a fixed order, so the last trial is judged the same whatever the order of the others."""
    outcomes = set()
    for order in (range(len(losses) - 1), data.draw(st.permutations(range(len(losses) - 1)))):
        search = search_of(HALVING)
        trials = created(search.initial())
        for number in order:
            search.on_event(report(trials[number], 1, losses[number]))
        (last,) = search.on_event(report(trials[len(losses) - 1], 1, losses[-1]))
        outcomes.add((type(last), last.reason))
        outcomes.add(json.dumps(search.snapshot()["brackets"][0]["rungs"][0]))
    assert len(outcomes) == 2


@given(data=st.data())
def test_the_trials_follow_from_the_seed_in_whatever_order_results_come(data):
    drawn = []
    for _ in range(2):
        search = search_of(ADAPTIVE | {"max_concurrent_trials": 4})
        actions = search.initial()
        live = created(actions)
        while live:
            trial = live.pop(data.draw(st.integers(0, len(live) - 1)))
            new = search.on_event(TrialClosed(trial, "completed"))
            actions += new
            live += created(new)
        assert actions[-1] == Shutdown()
        drawn.append({(a.request_id, a.hparams["lr"], a.seed) for a in actions if isinstance(a, Create)})
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == ADAPTIVE["max_trials"]
