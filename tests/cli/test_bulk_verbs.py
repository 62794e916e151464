"""Commands on all experiments that a filter finds: which ones, and that the user is asked with their number."""

import io
import json
from typing import Any

import pytest

from .conftest import Det, FakeMaster, Request

STATES = {3: "RUNNING", 4: "PAUSED", 5: "COMPLETED", 6: "QUEUED"}


@pytest.fixture
def master(fake: FakeMaster) -> FakeMaster:
    def found(request: Request) -> Any:
        offset = request.json["offset"]
        rows = [{"experiment": {"id": number, "state": f"STATE_{state}"}} for number, state in STATES.items()]
        return {"experiments": rows[offset:], "pagination": {"total": len(rows)}}

    fake.answers["POST /api/v1/experiments-search"] = found
    fake.answers["GET /api/v1/me"] = {"user": {"username": "ann", "id": 1}}
    for number in STATES:
        for verb in ("pause", "activate", "cancel", "kill", "archive"):
            fake.answers[f"POST /api/v1/experiments/{number}/{verb}"] = {}
        fake.answers[f"DELETE /api/v1/experiments/{number}"] = {}
        fake.answers[f"PUT /api/v1/experiments/{number}/labels/sft"] = {"labels": ["sft"]}
    return fake


def changed(master: FakeMaster, verb: str) -> list[int]:
    return [number for number in STATES if master.asked(f"POST /api/v1/experiments/{number}/{verb}")]


@pytest.mark.parametrize(
    ("verb", "expected"),
    [("pause", [3, 6]), ("activate", [4]), ("cancel", [3, 4, 6]), ("kill", [3, 4, 6]), ("archive", [5])],
)
def test_a_verb_changes_those_of_the_found_experiments_to_which_it_applies(
    master: FakeMaster, det: Det, verb: str, expected: list[int]
) -> None:
    outcome = det("e", verb, "--filter", "name ~ resnet", "--yes")
    assert outcome.code == 0
    assert changed(master, verb) == expected
    assert f"{4 - len(expected)} of the 4 found" in outcome.err
    (request,) = master.asked("POST /api/v1/experiments-search")
    fields = json.loads(request.json["filter"])["filterGroup"]["children"]
    assert [(each["columnName"], each["value"]) for each in fields] == [
        ("name", "resnet"),
        ("user", "ann"),
        ("archived", False),
    ]


def test_all_are_the_users_own_and_a_filter_by_user_finds_those_of_others(master: FakeMaster, det: Det) -> None:
    assert det("e", "kill", "--all", "-y").code == 0
    assert det("e", "kill", "--filter", "username = kim", "-y").code == 0
    users = [
        [
            each["value"]
            for each in json.loads(request.json["filter"])["filterGroup"]["children"]
            if each["columnName"] == "user"
        ]
        for request in master.asked("POST /api/v1/experiments-search")
    ]
    assert users == [["ann"], ["kim"]]


@pytest.mark.parametrize(("answer", "expected"), [("y\n", [3, 6]), ("\n", [])])
def test_the_user_is_asked_with_the_number_of_experiments(
    master: FakeMaster, det: Det, monkeypatch: pytest.MonkeyPatch, answer: str, expected: list[int]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    outcome = det("e", "pause", "--all")
    assert "Pause 2 experiments (3, 6)? [y/N]" in outcome.err
    assert changed(master, "pause") == expected
    assert outcome.code == (0 if expected else 1)


def test_nothing_is_changed_without_a_confirmation_or_with_ids_and_a_filter(master: FakeMaster, det: Det) -> None:
    assert (
        "killing 3 experiments cannot be undone; without a terminal, confirm with --yes" in det("e", "kill", "-a").err
    )
    assert "give ids, or --filter or --all, and not both" in det("e", "kill", "3", "-a", "-y").err
    assert "give ids of experiments, --filter CONDITION, or --all" in det("e", "kill").err
    assert changed(master, "kill") == []


def test_labels_are_added_to_what_a_filter_finds(master: FakeMaster, det: Det) -> None:
    assert det("e", "label", "add", "sft", "--filter", "state = running", "-y").code == 0
    assert all(master.asked(f"PUT /api/v1/experiments/{number}/labels/sft") for number in STATES)


def test_deleting_what_a_filter_finds_asks_once(master: FakeMaster, det: Det) -> None:
    assert det("e", "delete", "--filter", "state = completed", "-y").err.endswith("deleting experiment 5\n")
