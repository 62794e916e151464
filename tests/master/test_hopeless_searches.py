"""A search whose trials all report invalid hyperparameters ends with the reason instead of replacing them forever."""

from typing import Any

import pytest

from determined_master.searcher.actions import Create, Shutdown, TrialClosed, TrialValidated
from determined_master.searcher.methods import make

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
RANDOM = {"name": "random", "metric": "loss", "max_trials": 3, "max_concurrent_trials": 2}
CASES = [(HALVING, 12), (RANDOM, 10), (RANDOM | {"max_trials": 30}, 30)]


def played(searcher: dict[str, Any], *, valid: int = 0, most: int = 100) -> tuple[list[Any], int]:
    """Returns the last actions of a search, and the number of its ended trials. The first ``valid`` trials are valid."""
    hparams = {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0}}
    search = make({"searcher": searcher, "hyperparameters": hparams, "reproducibility": {"experiment_seed": 7}}, None)
    actions = search.initial()
    live = [a.request_id for a in actions if isinstance(a, Create)]
    ended = 0
    while live and ended < most:
        trial = live.pop(0)
        if ended < valid:
            search.on_event(TrialValidated(trial, 1, {"loss": 0.1}))
        actions = search.on_event(TrialClosed(trial, "completed" if ended < valid else "invalid_hp"))
        live += [a.request_id for a in actions if isinstance(a, Create)]
        ended += 1
        if any(isinstance(a, Shutdown) for a in actions):
            break
    return actions, ended


@pytest.mark.parametrize(("searcher", "tried"), CASES)
def test_a_search_of_invalid_trials_ends_after_max_trials_and_at_least_ten(searcher: dict[str, Any], tried: int):
    (end,), ended = played(searcher)
    assert ended == tried
    assert (end.canceled, end.failed) == (True, False)
    assert end.reason.startswith(f"all {tried} trials so far reported invalid hyperparameters")


@pytest.mark.parametrize(("searcher", "tried"), CASES)
def test_a_search_with_one_valid_trial_replaces_invalid_ones(searcher: dict[str, Any], tried: int):
    actions, ended = played(searcher, valid=1)
    assert ended == 100
    assert [type(action) for action in actions] == [Create]
