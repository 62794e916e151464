"""Parsing of durations, which is the same in the configuration and in tasks."""

import pytest

from determined.config.launch import LaunchSection
from determined_launch.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("2d", 172800),
        ("0.5m", 30),
        ("1H", 3600),
    ],
)
def test_durations_with_and_without_units_are_parsed(text, seconds):
    assert parse_duration(text) == seconds
    assert LaunchSection.model_validate({"hang_timeout": text}).hang_timeout == seconds


@pytest.mark.parametrize("text", ["", "ten", "10x", "5 5", "1h30", "-1", "1e3", "٣", "m", "1" + "0" * 400])
def test_texts_that_are_no_durations_are_refused(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)
