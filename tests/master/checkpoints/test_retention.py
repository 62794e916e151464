"""Checkpoint retention: the worked example of the rule, and what holds for every policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined_master.checkpoints.retention import Candidate, Policy, superfluous

LOSSES: dict[int, list[float | None]] = {1: [None, None, 0.6, 0.5, 0.4], 2: [None, 0.2, 0.3, None, None]}
EXAMPLE = [
    Candidate(str(5 * (trial - 1) + step), trial, step, loss, 10 * trial + step)
    for trial, losses in LOSSES.items()
    for step, loss in enumerate(losses, 1)
]
"""Checkpoints 1 to 5 of a first trial and 6 to 10 of a second one; smaller losses are better."""


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ((0, 0, 0), set()),
        ((2, 0, 0), {8, 7}),
        ((0, 1, 0), {7, 5}),
        ((0, 0, 1), {10, 5}),
        ((0, 0, 3), {10, 9, 8, 5, 4, 3}),
        ((0, 1, 1), {10, 7, 5}),
        ((2, 1, 1), {10, 8, 7, 5}),
    ],
)
def test_the_worked_example(policy: tuple[int, int, int], kept: set[int]) -> None:
    gone = {int(uuid) for uuid in superfluous(EXAMPLE, Policy(*policy))}
    assert set(range(1, 11)) - gone == kept


def test_of_equal_metrics_the_earlier_validation_is_better() -> None:
    equal = [Candidate("b", 1, 2, 0.5, 8), Candidate("a", 1, 1, 0.5, 7)]
    assert superfluous(equal, Policy(0, 1, 0)) == ["b"]


def test_numbers_that_a_configuration_does_not_have_are_the_defaults() -> None:
    assert Policy.of({"type": "shared_fs"}) == Policy(0, 1, 1)
    assert Policy.of({"save_trial_best": 0, "save_experiment_best": None}) == Policy(0, 0, 1)


metrics = st.none() | st.floats(allow_nan=False)
checkpoints = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50), metrics), max_size=25).map(
    lambda rows: [Candidate(str(n), trial, steps, metric, n) for n, (trial, steps, metric) in enumerate(rows)]
)
policies = st.builds(Policy, *[st.integers(0, 30)] * 3)


def kept(found: list[Candidate], policy: Policy) -> set[str]:
    return {each.uuid for each in found} - set(superfluous(found, policy))


@given(checkpoints, policies, policies)
def test_a_larger_policy_keeps_at_least_as_much(found: list[Candidate], one: Policy, other: Policy) -> None:
    larger = Policy(
        max(one.save_experiment_best, other.save_experiment_best),
        max(one.save_trial_best, other.save_trial_best),
        max(one.save_trial_latest, other.save_trial_latest),
    )
    assert kept(found, one) | kept(found, other) <= kept(found, larger)


@given(checkpoints, st.integers(0, 5))
def test_the_newest_of_each_trial_are_kept(found: list[Candidate], most: int) -> None:
    left = kept(found, Policy(0, 0, most))
    for trial in {each.trial_id for each in found}:
        steps = sorted((each.steps for each in found if each.trial_id == trial), reverse=True)
        assert sorted((e.steps for e in found if e.trial_id == trial and e.uuid in left), reverse=True) == steps[:most]


@given(checkpoints, policies)
def test_the_order_of_the_question_does_not_matter(found: list[Candidate], policy: Policy) -> None:
    assert kept(found[::-1], policy) == kept(found, policy)


@given(checkpoints, policies)
def test_nothing_is_deleted_twice(found: list[Candidate], policy: Policy) -> None:
    left = [each for each in found if each.uuid in kept(found, policy)]
    assert superfluous(left, policy) == []
