"""Log policies of an attempt: which lines match both forms of a policy, and the effect of a match on a failure."""

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from determined.states import ExitReason, TrialState
from determined_master.logs.policies import AttemptPolicies, policies_of
from determined_master.trials.states import AttemptEnd, decide


def matched(config: list[dict], *lines: str) -> list[tuple[int, str]]:
    return [(index, policy.pattern) for index, policy in AttemptPolicies(policies_of(config)).matches(lines)]


def test_each_policy_matches_once_and_one_line_may_match_several():
    config = [
        {"name": "a", "pattern": "x+"},
        {"name": "off", "pattern": None},
        {"pattern": "y$", "action": "exclude_node"},
    ]
    assert matched(config, "none", "xxy", "x", "y") == [(1, "x+"), (1, "y$")]
    assert [(p.position, p.name, p.action) for p in policies_of(config)] == [(0, "a", None), (2, "", "exclude_node")]


@pytest.mark.parametrize(
    "patterns", [("(?P<n>a)", "(?P<n>b)"), (r"\Qa", "b"), ("a", "(?=refused)", "b"), ("(?i)A", "c|b$")]
)
def test_patterns_that_cannot_be_joined_are_compared_one_by_one(patterns: tuple[str, ...]):
    config = [{"pattern": pattern, "action": "cancel_retries"} for pattern in patterns]
    assert [index for index, _ in matched(config, "B", "b", "a")] == [1, 2]


def test_a_line_that_shows_the_configuration_is_left_out():
    config = [{"pattern": "oom", "action": "cancel_retries"}]
    assert matched(config, "'log_policies': [{'pattern': 'oom'}]", "log_policies: oom", "oom") == [(2, "oom")]


def test_a_pattern_whose_automaton_is_too_large_still_matches():
    """RE2 falls back to a slower search. A set of patterns would not match instead."""
    config = [{"pattern": "(?:a|b)*a(?:a|b){60}c", "action": "cancel_retries"}]
    noise = "ab" * 5000
    assert matched(config, noise, noise + "a" * 61 + "c") == [(1, config[0]["pattern"])]


def test_the_time_that_other_programs_take_of_a_busy_machine_does_not_count(monkeypatch: pytest.MonkeyPatch):
    for clock in ("perf_counter", "monotonic", "time"):
        monkeypatch.setattr(time, clock, itertools.count(0.0, 10.0).__next__)
    config = [{"pattern": pattern, "action": "cancel_retries"} for pattern in ("a", "b")]
    assert matched(config, "none", "a", "none", "b") == [(1, "a"), (3, "b")]


words = st.text("abc", max_size=4)


@settings(deadline=None)  # compiling patterns takes long on a busy machine
@given(st.lists(words.filter(bool), max_size=4), st.lists(words, max_size=6))
def test_the_first_line_that_contains_a_plain_pattern_matches(patterns: list[str], lines: list[str]):
    config = [{"pattern": pattern, "action": "cancel_retries"} for pattern in patterns]
    expected = sorted(
        (next(index for index, line in enumerate(lines) if pattern in line), pattern)
        for pattern in patterns
        if any(pattern in line for line in lines)
    )
    assert sorted(matched(config, *lines)) == expected


ERRORED = ExitReason.ERRORED


@pytest.mark.parametrize(
    ("end", "state", "reason"),
    [
        (
            AttemptEnd(TrialState.ACTIVE, ERRORED, 0, 5, cancels_retries=True),
            TrialState.ERROR,
            ExitReason.RETRIES_CANCELED,
        ),
        (AttemptEnd(TrialState.ACTIVE, ERRORED, 0, 5, has_agent_left=False), TrialState.ERROR, ExitReason.IMPOSSIBLE),
        (
            AttemptEnd(TrialState.ACTIVE, ERRORED, 5, 5, has_agent_left=False),
            TrialState.ERROR,
            ExitReason.OUT_OF_RESTARTS,
        ),
        (AttemptEnd(TrialState.ACTIVE, ExitReason.AGENT_LOST, 0, 5, cancels_retries=True), None, None),
        (AttemptEnd(TrialState.ACTIVE, ExitReason.PREEMPTED, 0, 5, cancels_retries=True), None, None),
        (
            AttemptEnd(TrialState.ACTIVE, ExitReason.COMPLETED, 0, 5, cancels_retries=True),
            TrialState.COMPLETED,
            ExitReason.COMPLETED,
        ),
    ],
)
def test_only_a_failure_of_the_trial_itself_is_decided_by_policies(end, state, reason):
    outcome = decide(end)
    assert (outcome.state, outcome.reason) == (state, reason)
