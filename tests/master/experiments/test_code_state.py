"""Secrets in the state of the code are masked before it is stored."""

import pytest

from determined_master.experiments.code_state import MAX_SECRETS, CodeState, prepare, text_of

CONFIG = {
    "data": {"secrets": {"key": "hunter-two-hunter"}},
    "environment": {"environment_variables": {"cpu": ["API_TOKEN=tok-123456", "MODE=fast"], "cuda": []}},
}


def diff_of(diff: str) -> str:
    return text_of(prepare(CodeState(diff=diff), CONFIG).diff)


def test_a_diff_without_secrets_stays_as_it_is() -> None:
    diff = "+key = word\n-token: str = next(words)\n+  key: value\n note = 'a:b@c'\n"
    assert diff_of(diff) == diff


def test_values_that_the_configuration_masks_are_masked_wherever_they_are() -> None:
    state = CodeState(
        "abcd", "tok-123456", "ssh://hunter-two-hunter/a", "+x = 'tok-123456'\n", False, ("hunter-two-hunter",)
    )
    stored = prepare(state, CONFIG)
    assert stored.state == CodeState("abcd", "********", "ssh://********/a", "", False, ("********",))
    assert text_of(stored.diff) == "+x = '********'\n"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("-    - OLD_TOKEN=abc", "-    - OLD_TOKEN=********"),
        ("+    - 'my.api_key=abc'", "+    - 'my.api_key=********"),
        ("-  secret_key: abc", "-  secret_key: ********"),
        (' {"a": 1}', ' {"a": 1}'),
        ('+  "password": "abc",', '+  "password": ********'),
        ("+export DB_PASSWORD=abc", "+export DB_PASSWORD=********"),
        ("-WANDB_API_KEY = 'abc'", "-WANDB_API_KEY = ********"),
        ("+url = 'https://ann:abc@example.org'", "+url = 'https://ann:********@example.org'"),
        ("--- a/secret_key: x", "--- a/secret_key: x"),
    ],
)
def test_a_line_of_a_secret_that_no_configuration_has_any_more_is_masked(line: str, shown: str) -> None:
    assert diff_of(f"{line}\n") == f"{shown}\n"


def test_a_diff_beside_more_secrets_than_are_compared_is_not_stored() -> None:
    config = {"data": {"secrets": {str(number): f"secret{number:06}" for number in range(MAX_SECRETS + 1)}}}
    stored = prepare(CodeState("abcd", diff="+secret000001\n"), config)
    assert (stored.state.commit, stored.state.is_cut, text_of(stored.diff)) == ("abcd", True, "")
