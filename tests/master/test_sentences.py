"""Sentences for events: every event has one, whatever its payload."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined_master.events.sentences import attempt, sentence


@pytest.mark.parametrize(
    ("kind", "actor", "target", "payload", "text"),
    [
        (
            "created",
            "ann",
            "experiment 5",
            {"name": "n", "forked_from": 3},
            "ann created experiment 5 (n, forked from 3)",
        ),
        ("moved", "ann", "experiment 5", {"from": "ACTIVE", "to": "PAUSED"}, "ann paused experiment 5"),
        ("moved", "ann", "experiment 5", {"to": "STOPPING_KILLED"}, "ann killed experiment 5"),
        ("moved", "system", "experiment 5", {"to": "COMPLETED"}, "experiment 5 completed"),
        (
            "moved",
            "system",
            "trial 7",
            {"to": "ERROR", "reason": "out_of_restarts"},
            "trial 7 failed (out of restarts)",
        ),
        ("moved", "system", "trial 7", {"to": "COMPLETED", "reason": "completed"}, "trial 7 completed"),
        ("changed", "ann", "experiment 5", {"fields": ["labels", "name"]}, "ann changed labels, name of experiment 5"),
        ("created", "ann", "task c", {"kind": "COMMAND", "description": "d"}, "ann launched command c (d)"),
        ("moved", "ann", "task c", {"to": "STOPPING"}, "ann killed task c"),
        ("moved", "system", "task c", {"to": "ERROR", "reason": "errored"}, "task c failed (failed)"),
        ("changed", "ann", "task c", {"fields": ["priority"]}, "ann changed priority of task c"),
        ("placed", "system", "allocation c-c.2", {"parts": []}, "attempt 2 of task c-c was placed on "),
        ("archived", "ann", "experiment 5", {}, "ann archived experiment 5"),
        ("connected", "system", "agent a", {}, "agent a connected"),
        ("ordered", "system", "agent a", {"pool": "p"}, "pool p starts agent a"),
        ("not_started", "system", "agent a", {"pool": "p", "reason": "r"}, "agent a of pool p did not start: r"),
        ("ended", "system", "agent a", {"pool": "p"}, "agent a of pool p has ended"),
        ("slot_2_disabled", "ann", "agent a", {}, "ann disabled slot 2 of agent a"),
        (
            "slot_2_unhealthy",
            "system",
            "agent a",
            {"reason": "it is lost"},
            "slot 2 of agent a is unhealthy: it is lost",
        ),
        ("slot_2_free", "system", "agent a", {}, "slot 2 of agent a is as usual again"),
        ("logged_in", "ann", "user 1", {}, "ann signed in"),
        ("reported", "ann", "checkpoint u", {"trial": 7, "steps": 9}, "trial 7 saved checkpoint u at step 9"),
        ("outputs_kept", "ann", "checkpoint u", {"trial": 7, "files": 9}, "trial 7 stored its outputs as checkpoint u"),
        (
            "placed",
            "system",
            "allocation 5.u-u.2",
            {"parts": [{"agent": "a", "slots": [0, 1]}]},
            "attempt 2 of a trial of experiment 5 was placed on a (slots 0, 1)",
        ),
        (
            "ended",
            "system",
            "allocation 5.u.2",
            {"reason": "agent_lost", "code": None, "message": "gone\nmore"},
            "attempt 2 of a trial of experiment 5 ended: agent lost: gone",
        ),
    ],
)
def test_each_event_has_the_expected_sentence(kind, actor, target, payload, text):
    target_type, _, target_id = target.partition(" ")
    assert sentence(kind, actor, target_type, target_id, payload) == text


JSON = st.none() | st.integers() | st.text() | st.lists(st.text())


@given(
    st.sampled_from(["experiment", "trial", "task", "allocation", "agent", "user", "checkpoint", "other"]),
    st.sampled_from(["created", "moved", "changed", "requested", "ready", "ended", "reported", "lost", "x_y"]),
    st.text(min_size=1),
    st.dictionaries(st.sampled_from(["to", "from", "reason", "code", "message", "fields", "name", "steps"]), JSON),
)
def test_no_event_is_without_a_sentence(target_type, kind, target_id, payload):
    fields = payload.get("fields")
    payload = payload | ({"fields": [fields]} if fields is not None and not isinstance(fields, list) else {})
    assert sentence(kind, "ann", target_type, target_id, payload)


def test_an_unknown_attempt_id_is_displayed_unchanged():
    assert attempt("odd") == "attempt odd"
