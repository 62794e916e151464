"""Commands on all experiments that a filter finds: their selection and their confirmation."""

import io
import json
from typing import Any

import pytest

from .conftest import Det, FakeMaster, Request

STATES = {3: "RUNNING", 4: "PAUSED", 5: "COMPLETED", 6: "QUEUED"}


@pytest.fixture
def master(fake: FakeMaster) -> FakeMaster:
    def search(request: Request) -> Any:
        offset = request.json["offset"]
        rows = [{"experiment": {"id": number, "state": f"STATE_{state}"}} for number, state in STATES.items()]
        return {"experiments": rows[offset:], "pagination": {"total": len(rows)}}

    fake.answers["POST /api/v1/experiments-search"] = search
    fake.answers["GET /api/v1/me"] = {"user": {"username": "ann", "id": 1}}
    for number in STATES:
        for verb in ("pause", "activate", "cancel", "kill", "archive"):
            fake.answers[f"POST /api/v1/experiments/{number}/{verb}"] = {}
        fake.answers[f"DELETE /api/v1/experiments/{number}"] = {}
        fake.answers[f"PUT /api/v1/experiments/{number}/labels/sft"] = {"labels": ["sft"]}
    return fake


def changed_ids(master: FakeMaster, verb: str) -> list[int]:
    return [number for number in STATES if master.requests_to(f"POST /api/v1/experiments/{number}/{verb}")]


@pytest.mark.parametrize(
    ("verb", "expected"),
    [("pause", [3, 6]), ("activate", [4]), ("cancel", [3, 4, 6]), ("kill", [3, 4, 6]), ("archive", [5])],
)
def test_a_verb_with_a_filter_changes_the_experiments_to_which_it_applies(
    master: FakeMaster, det: Det, verb: str, expected: list[int]
) -> None:
    outcome = det("e", verb, "--filter", "name ~ resnet", "--yes")
    assert outcome.code == 0
    assert changed_ids(master, verb) == expected
    assert f"{4 - len(expected)} of the 4 found" in outcome.err
    (request,) = master.requests_to("POST /api/v1/experiments-search")
    fields = json.loads(request.json["filter"])["filterGroup"]["children"]
    assert [(condition["columnName"], condition["value"]) for condition in fields] == [
        ("name", "resnet"),
        ("user", "ann"),
        ("archived", False),
    ]


def test_all_selects_the_users_own_experiments_unless_a_filter_names_another_user(master: FakeMaster, det: Det) -> None:
    assert det("e", "kill", "--all", "-y").code == 0
    assert det("e", "kill", "--filter", "username = kim", "-y").code == 0
    users = [
        [
            condition["value"]
            for condition in json.loads(request.json["filter"])["filterGroup"]["children"]
            if condition["columnName"] == "user"
        ]
        for request in master.requests_to("POST /api/v1/experiments-search")
    ]
    assert users == [["ann"], ["kim"]]


@pytest.mark.parametrize(("answer", "expected"), [("y\n", [3, 6]), ("\n", [])])
def test_the_question_before_a_bulk_change_names_the_experiments(
    master: FakeMaster, det: Det, monkeypatch: pytest.MonkeyPatch, answer: str, expected: list[int]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    outcome = det("e", "pause", "--all")
    assert "Pause 2 experiments (3, 6)? [y/N]" in outcome.err
    assert changed_ids(master, "pause") == expected
    assert outcome.code == (0 if expected else 1)


def test_a_bulk_change_is_refused_without_confirmation_and_with_ids_and_a_filter(master: FakeMaster, det: Det) -> None:
    assert (
        "killing 3 experiments cannot be undone; without a terminal, confirm with --yes" in det("e", "kill", "-a").err
    )
    assert "give ids, or --filter or --all, and not both" in det("e", "kill", "3", "-a", "-y").err
    assert "give ids of experiments, --filter CONDITION, or --all" in det("e", "kill").err
    assert changed_ids(master, "kill") == []


def test_label_add_with_a_filter_labels_every_found_experiment(master: FakeMaster, det: Det) -> None:
    assert det("e", "label", "add", "sft", "--filter", "state = running", "-y").code == 0
    assert all(master.requests_to(f"PUT /api/v1/experiments/{number}/labels/sft") for number in STATES)


def test_delete_with_a_filter_and_yes_deletes_the_found_experiment(master: FakeMaster, det: Det) -> None:
    assert det("e", "delete", "--filter", "state = completed", "-y").err.endswith("deleting experiment 5\n")
