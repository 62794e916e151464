"""The feed of changes: the change for each topic, the time of each batch, and streams that continue."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined_master import notifications
from determined_master.api import change_feed
from determined_master.api.change_feed import (
    FIGURES,
    FIGURES_SOON,
    MAX_GATHERED,
    SOON,
    Batch,
    ChangeFeed,
    Debouncer,
    ReplayBuffer,
    change_of,
)
from determined_master.trials.task_name import experiment_of, task_name


@pytest.mark.parametrize(
    ("topic", "change"),
    [
        (notifications.experiment(5), ("experiment", "5")),
        (notifications.metrics(5), ("metrics", "5")),
        (notifications.deleted(5), ("deleted", "5")),
        (notifications.logs("5.a"), ("logs", "5.a")),
        (notifications.task("5.a"), ("experiment", "5")),
        (notifications.task("shell.a"), None),
        (notifications.CLUSTER, ("cluster", "")),
        (notifications.EVENTS, ("events", "")),
        (notifications.COLUMNS, ("columns", "")),
        (notifications.SCHEDULE, None),
        (notifications.agent("a"), None),
        (notifications.allocation("5.a.1"), None),
        (notifications.SESSIONS, None),
        (notifications.FEED, None),
    ],
)
def test_a_topic_is_translated_into_a_change(topic, change):
    assert change_of(topic) == change


@given(st.integers(1), st.uuids().map(str))
def test_a_task_names_its_experiment(number, request_id):
    assert experiment_of(task_name(number, request_id)) == number


@given(st.text() | st.from_regex(r"\A\d{1,2}\.") | st.from_regex(r"\A[0-9]{1,3}\."))
def test_any_allocation_name_gives_an_experiment_or_none(name):
    number = re.match(r"([0-9]+)\.", name)
    assert experiment_of(name) == (int(number[1]) if number else None)


def test_a_batch_has_each_change_once_and_states_first():
    gathering = Debouncer()
    assert gathering.due() is None
    gathering.add([("experiment", "1"), ("metrics", "1"), ("experiment", "1")])
    assert gathering.due() == float("-inf")
    assert gathering.take(10.0) == (("experiment", "1"), ("metrics", "1"))
    assert gathering.due() is None
    gathering.add([("metrics", "1")])
    assert gathering.due() == 10.0 + FIGURES_SOON
    gathering.add([("cluster", "")])
    assert gathering.due() == 10.0 + SOON


def test_a_state_change_does_not_wait_for_earlier_metric_changes():
    gathering = Debouncer()
    gathering.add([("experiment", "1")])
    gathering.take(10.0)
    gathering.add([("metrics", "1")])
    gathering.take(10.25)
    gathering.add([("experiment", "1"), ("metrics", "1")])
    assert gathering.due() < 10.25


@given(
    st.lists(st.tuples(st.sampled_from(["metrics", "logs", "experiment", "cluster"]), st.floats(0, 0.3)), max_size=60)
)
def test_batches_of_states_and_metrics_keep_their_intervals(arrivals):
    """Plays arbitrary arrivals and sends the batches at the times of the feed's timer."""
    gathering, added, now = Debouncer(), 0.0, 0.0
    next_state = next_figures = 0.0
    for arrived, pause in [*arrivals, ("metrics", 10.0)]:
        now += pause
        due = gathering.due()
        if due is not None and due <= now:
            sent_at = max(due, added)
            is_state = any(kind not in FIGURES for kind, _ in gathering.take(sent_at))
            assert sent_at >= (next_state if is_state else next_figures)
            next_figures = sent_at + FIGURES_SOON
            next_state = sent_at + SOON if is_state else next_state
        added = now
        gathering.add([(arrived, "1")])


@given(st.lists(st.integers(1, 3), max_size=40), st.integers(-2, 45), st.integers(1, 10), st.integers(1, 12))
def test_a_continued_stream_gets_all_missed_batches_or_a_refusal(sizes, number, most_batches, most_changes):
    ring = ReplayBuffer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change_feed, "MAX_BATCHES", most_batches)
        patch.setattr(change_feed, "MAX_CHANGES", most_changes)
        for size in sizes:
            ring.add(1, tuple(("logs", str(i)) for i in range(size)))
    batches = ring.since(number)
    if batches is not None:
        assert [batch.number for batch in batches] == list(range(number + 1, len(sizes) + 1))
    elif 0 <= number <= len(sizes):
        assert len(sizes) - number > min(most_batches, 1), "only what has fallen out is missing"
    kept = next(batches for first in range(len(sizes) + 1) if (batches := ring.since(first)) is not None)
    assert sum(len(batch.changes) for batch in kept) <= max(most_changes, 3)


def test_an_event_is_formatted_as_server_sent_event():
    text = Batch(3, 17, [("logs", "5.a")]).event.decode()
    name, kind, data, *end = text.split("\n")
    assert (name, kind, end) == ("id: 3-17", "event: change", ["", ""])
    assert json.loads(data.removeprefix("data: ")) == {"changes": [{"kind": "logs", "id": "5.a"}]}


@pytest.mark.parametrize(
    ("event_id", "placed"),
    [
        ("7-2", (2, True)),
        ("7-0", (0, True)),
        ("7-3", (3, True)),
        ("7-4", (3, False)),
        ("6-2", (3, False)),
        ("", (3, False)),
        ("7-", (3, False)),
        ("7--1", (3, False)),
        ("7-²", (3, False)),
        ("7-" + "9" * 5000, (3, False)),
    ],
)
def test_a_stream_continues_after_the_last_event_id(event_id, placed):
    created = ChangeFeed(lambda: 7, lambda topics: None, lambda: True)
    for number in range(3):
        created.ring.add(7, [("logs", str(number))])
    assert created.place(event_id) == placed


async def test_changes_without_a_follower_wait_for_the_next_stream():
    created = ChangeFeed(lambda: 7, lambda topics: None, lambda: False)
    created.on_topics({"metrics:1"})
    created.on_topics({"metrics:1", "metrics:2"})
    assert (created.is_quiet, created.ring.newest) == (True, 0)
    assert created.place("7-0") == (0, True)
    (batch,) = created.ring.since(0)
    assert sorted(batch.changes) == [("metrics", "1"), ("metrics", "2")]
    assert created.newest() == created.ring.newest == 1
    created.on_topics({f"metrics:{number}" for number in range(MAX_GATHERED - 1)})
    assert created.is_quiet
    created.on_topics({"metrics:last"})
    assert not created.is_quiet
