"""Checkpoint retention: the documented example, and properties of every policy."""

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
"""Checkpoints 1 to 5 of a first trial and 6 to 10 of a second one. Smaller losses are better."""


@pytest.mark.parametrize(
    ("policy", "kept_uuids"),
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
def test_retention_keeps_the_checkpoints_of_the_documented_example(
    policy: tuple[int, int, int], kept_uuids: set[int]
) -> None:
    gone = {int(uuid) for uuid in superfluous(EXAMPLE, Policy(*policy))}
    assert set(range(1, 11)) - gone == kept_uuids


def test_of_equal_metrics_the_earlier_validation_is_better() -> None:
    equal = [Candidate("b", 1, 2, 0.5, 8), Candidate("a", 1, 1, 0.5, 7)]
    assert superfluous(equal, Policy(0, 1, 0)) == ["b"]


def test_numbers_missing_in_a_retention_policy_are_the_defaults() -> None:
    assert Policy.of({"type": "shared_fs"}) == Policy(0, 1, 1)
    assert Policy.of({"save_trial_best": 0, "save_experiment_best": None}) == Policy(0, 0, 1)


metrics = st.none() | st.floats(allow_nan=False)
checkpoints = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50), metrics), max_size=25).map(
    lambda rows: [Candidate(str(n), trial, steps, metric, n) for n, (trial, steps, metric) in enumerate(rows)]
)
policies = st.builds(Policy, *[st.integers(0, 30)] * 3)


def kept_uuids(candidates: list[Candidate], policy: Policy) -> set[str]:
    return {candidate.uuid for candidate in candidates} - set(superfluous(candidates, policy))


@given(checkpoints, policies, policies)
def test_a_larger_retention_policy_keeps_at_least_as_much(
    candidates: list[Candidate], one: Policy, other: Policy
) -> None:
    larger = Policy(
        max(one.save_experiment_best, other.save_experiment_best),
        max(one.save_trial_best, other.save_trial_best),
        max(one.save_trial_latest, other.save_trial_latest),
    )
    assert kept_uuids(candidates, one) | kept_uuids(candidates, other) <= kept_uuids(candidates, larger)


@given(checkpoints, st.integers(0, 5))
def test_retention_keeps_the_newest_checkpoints_of_each_trial(candidates: list[Candidate], most: int) -> None:
    remaining = kept_uuids(candidates, Policy(0, 0, most))
    for trial in {candidate.trial_id for candidate in candidates}:
        steps = sorted((candidate.steps for candidate in candidates if candidate.trial_id == trial), reverse=True)
        assert (
            sorted((e.steps for e in candidates if e.trial_id == trial and e.uuid in remaining), reverse=True)
            == steps[:most]
        )


@given(checkpoints, policies)
def test_retention_does_not_depend_on_the_order_of_the_checkpoints(candidates: list[Candidate], policy: Policy) -> None:
    assert kept_uuids(candidates[::-1], policy) == kept_uuids(candidates, policy)


@given(checkpoints, policies)
def test_retention_of_the_kept_checkpoints_deletes_none(candidates: list[Candidate], policy: Policy) -> None:
    remaining = [candidate for candidate in candidates if candidate.uuid in kept_uuids(candidates, policy)]
    assert superfluous(remaining, policy) == []


def test_of_several_checkpoints_with_the_same_steps_the_newest_is_kept() -> None:
    same = [Candidate("aaa", 1, 10, 0.5, 7), Candidate("bbb", 1, 10, 0.5, 7)]
    for policy in (Policy(0, 0, 1), Policy(0, 1, 0), Policy(1, 0, 0)):
        assert superfluous(same, policy) == ["aaa"]
