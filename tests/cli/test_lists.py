"""List flags (columns, order, filters, pages), and tables that fit a terminal."""

import io
import json
import math
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from determined_cli.output import render, row_selection

from .conftest import Det, FakeMaster, Request

ROWS = [
    {"id": 3, "name": "gamma", "state": "STATE_ERROR", "progress": 0.5, "labels": ["a", "b"]},
    {"id": 2, "name": "beta", "state": "STATE_COMPLETED", "progress": 1.0, "labels": []},
    {"id": 1, "name": "alpha", "state": "STATE_ERROR", "progress": None, "labels": ["b"]},
]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def master(fake: FakeMaster) -> FakeMaster:
    def page(request: Request) -> Any:
        offset, limit = int(request.query["offset"][0]), int(request.query["limit"][0])
        return {"experiments": ROWS[offset : offset + limit], "pagination": {"total": len(ROWS)}}

    def search(request: Request) -> Any:
        offset, limit = request.json["offset"], request.json["limit"]
        rows = [{"experiment": row} for row in ROWS[offset : offset + limit]]
        return {"experiments": rows, "pagination": {"total": len(ROWS)}}

    fake.answers["GET /api/v1/experiments"] = page
    fake.answers["POST /api/v1/experiments-search"] = search
    fake.answers["GET /api/v1/me"] = {"user": {"username": "ann", "id": 1}}
    return fake


def ids(det: Det, *words: str) -> list[int]:
    return [row["id"] for row in json.loads(det("e", "list", "--json", *words).out)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), [3, 2, 1]),
        (("--limit", "2"), [3, 2]),
        (("--limit", "1", "--offset", "1"), [2]),
        (("--limit", "1", "--pages", "all"), [3, 2, 1]),
        (("--limit", "1", "--pages", "one", "--offset", "2"), [1]),
        (("--sort", "name", "--limit", "1", "--offset", "1"), [2]),
        (("--sort", "name"), [3, 2, 1]),  # the master's order
    ],
)
def test_list_flags_select_a_part_of_the_experiments(
    master: FakeMaster, det: Det, words: tuple[str, ...], expected: list[int]
) -> None:
    assert ids(det, *words) == expected


def search_request(master: FakeMaster, det: Det, *words: str) -> tuple[list[Any], dict[str, Any]]:
    """Lists experiments. Returns the conditions of the search request, and its other fields."""
    assert det("e", "list", "--json", *words).code == 0
    (request,) = master.requests_to("POST /api/v1/experiments-search")
    assert master.requests_to("GET /api/v1/experiments") == []
    filtered = json.loads(request.json["filter"])
    children = filtered["filterGroup"]["children"]
    conditions = [(child["columnName"], child["operator"], child["value"]) for child in children]
    return conditions, {**request.json, "filter": filtered["showArchived"]}


def test_experiments_are_filtered_and_sorted_by_the_master(master: FakeMaster, det: Det) -> None:
    words = ("--filter", "State != ERROR", "--filter", "name~AMM", "--filter", "progress>=50%", "--filter", "end_time=")
    words += ("--filter", "labels=b", "--sort", "start_time:desc", "--limit", "2", "--offset", "1")
    conditions, rest = search_request(master, det, *words)
    assert conditions == [
        ("state", "!=", "ERROR"),
        ("name", "contains", "AMM"),
        ("progress", ">=", 0.5),
        ("endTime", "isEmpty", None),
        ("tags", "=", "b"),
        ("user", "=", "ann"),
        ("archived", "=", False),
    ]
    assert rest == {"filter": False, "sort": "startTime=desc", "offset": 1, "limit": 2}


def test_all_with_a_filter_includes_other_users_and_archived_experiments(master: FakeMaster, det: Det) -> None:
    conditions, rest = search_request(master, det, "--all", "--filter", "archived=true", "--filter", "end_time!=")
    assert conditions == [("archived", "=", "true"), ("endTime", "notEmpty", None)]
    assert rest == {"filter": True, "offset": 0, "limit": 200}


TRIALS = [
    {"id": 1, "state": "STATE_ERROR", "searcherMetricValue": None, "restarts": 0},
    {"id": 2, "state": "STATE_COMPLETED", "searcherMetricValue": 1.0, "restarts": 1},
    {"id": 3, "state": "STATE_ERROR", "searcherMetricValue": 0.5, "restarts": 0},
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--sort", "state"), [2, 1, 3]),
        (("--sort", "searcher_metric_value:desc"), [2, 3, 1]),
        (("--filter", "state=error"), [1, 3]),
        (("--filter", "State != ERROR"), [2]),
        (("--filter", "trial id>=2", "--filter", "state~RRO"), [3]),
        (("--filter", "id<2"), [1]),
        (("--filter", "restarts=1"), [2]),
    ],
)
def test_lists_without_a_search_on_the_master_are_filtered_and_sorted_locally(
    fake: FakeMaster, det: Det, words: tuple[str, ...], expected: list[int]
) -> None:
    fake.answers["GET /api/v1/experiments/7/trials"] = {"trials": TRIALS, "pagination": {"total": len(TRIALS)}}
    assert [row["id"] for row in json.loads(det("e", "list-trials", "7", "--json", *words).out)] == expected


def test_a_limited_list_notes_that_it_is_a_part(master: FakeMaster, det: Det) -> None:
    assert det("e", "list", "--limit", "2").err == "showing the newest 2; omit --limit to show all\n"
    assert det("e", "list", "--limit", "2", "--sort", "name").err == "showing 2 of 3; omit --limit to show all\n"
    assert det("e", "list", "--limit", "3", "--sort", "name").err == ""
    assert det("e", "list", "--limit", "4").err == ""


def test_columns_are_chosen_by_key_or_header(master: FakeMaster, det: Det) -> None:
    assert det("e", "list", "--csv", "--columns", "Name,id").out.splitlines()[:2] == ["Name,ID", "gamma,3"]
    assert json.loads(det("e", "list", "--json", "--columns", "name").out)[0] == {"name": "gamma"}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--columns", "id,nothing"), 'no column "nothing"; valid: id, username'),
        (("--sort", "nothing"), 'no column "nothing"'),
        (("--sort", "id:down"), "use COLUMN, COLUMN:asc or COLUMN:desc"),
        (("--filter", "nothing=1"), 'no column "nothing"'),
        (("--filter", "state"), "use COLUMN=VALUE"),
        (("--filter", "id~1"), "~ (contains) needs a column of text: labels, name, resource_pool, state, username"),
    ],
)
def test_an_invalid_list_flag_names_the_valid_values(
    master: FakeMaster, det: Det, words: tuple[str, ...], text: str
) -> None:
    outcome = det("e", "list", *words)
    assert outcome.code == 1
    assert text in outcome.err


COLUMNS = (("ID", "id"), ("Name", "name"), ("Started", "start"), ("Metrics", "metrics"))
STARTED = (datetime.now(UTC) - timedelta(days=330, hours=3)).isoformat()
"""A start whose column width does not depend on the day of the test."""
WIDE = {"id": 1, "name": "n" * 60, "start": STARTED, "metrics": {"loss": 0.1}}


def test_no_line_of_a_table_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "60")
    render.show("table", COLUMNS, [WIDE])
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert "…" in lines[2]
    assert "| 330d 3h ago |" in lines[2]
    assert STARTED[:10] not in lines[2]


def test_columns_that_do_not_fit_the_terminal_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "30")
    render.show("table", COLUMNS, [WIDE])
    assert max(map(len, screen.getvalue().splitlines())) <= 30
    assert "too narrow for start, metrics" in capsys.readouterr().err


def test_a_table_in_a_pipe_has_whole_cells_and_exact_times(capsys: pytest.CaptureFixture[str]) -> None:
    render.show("table", COLUMNS, [WIDE])
    line = capsys.readouterr().out.splitlines()[2]
    assert "n" * 60 in line
    assert STARTED in line


def test_agent_list_prints_the_command_that_adds_an_agent_if_there_is_none_or_on_a_terminal(
    fake: FakeMaster, det: Det, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = f"add an agent: det-agent --master {fake.url} --token-file agent-token --tasks-as-me"
    monkeypatch.setenv("XDG_DATA_HOME", "nowhere")
    fake.answers["GET /api/v1/agents"] = {"agents": []}
    assert command in det("agent", "list").err
    assert det("agent", "list", "--json").err == ""
    fake.answers["GET /api/v1/agents"] = {"agents": [{"id": "box"}]}
    assert det("agent", "list").err == ""
    monkeypatch.setattr("sys.stdout", Screen())
    assert command in det("agent", "list").err


def test_agent_list_prints_the_warnings_of_agents(fake: FakeMaster, det: Det) -> None:
    fake.answers["GET /api/v1/agents"] = {"agents": [{"id": "box", "warning": "the clock of agent box is 3 h behind"}]}
    assert det("agent", "list").err == "warning: the clock of agent box is 3 h behind\n"


def test_agent_list_says_when_and_why_an_agent_leaves(fake: FakeMaster, det: Det) -> None:
    at = datetime.now(UTC) + timedelta(minutes=4)
    agent = {"id": "pilot-1", "leavesAt": at.isoformat(), "leavesWhy": "time limit of Slurm job 550", "leaving": True}
    fake.answers["GET /api/v1/agents"] = {"agents": [agent, {"id": "box", "leavesAt": None}]}
    said = f"agent pilot-1 leaves in 4 min ({at:%H:%M} UTC): time limit of Slurm job 550, nothing new is placed on it\n"
    assert det("agent", "list").err == said
    assert det("agent", "list", "--json").err == ""


def test_an_empty_list_names_the_flag_that_shows_all_users(fake: FakeMaster, det: Det) -> None:
    fake.answers["GET /api/v1/experiments"] = {"experiments": [], "pagination": {"total": 0}}
    fake.answers["POST /api/v1/experiments-search"] = {"experiments": [], "pagination": {"total": 0}}
    fake.answers["GET /api/v1/me"] = {"user": {"username": "ann", "id": 1}}
    assert "you have no experiments; `det experiment list -a` shows those of all users" in det("e", "list").err
    assert "no experiment of yours matches" in det("e", "list", "--filter", "state=ERROR").err
    assert det("e", "list", "--all").err == det("e", "list", "--json").err == ""


def test_only_failures_of_the_last_hour_are_printed_below_a_list(fake: FakeMaster, det: Det) -> None:
    now = datetime.now(UTC)
    rows = [
        {"id": number, "state": "STATE_ERROR", "failure": f"cause {number}", "endTime": (now - ago).isoformat()}
        for number, ago in ((1, timedelta(hours=2)), (2, timedelta(minutes=2)))
    ]
    fake.answers["GET /api/v1/experiments"] = {"experiments": rows, "pagination": {"total": 2}}
    fake.answers["GET /api/v1/me"] = {"user": {"username": "ann", "id": 1}}
    assert det("e", "list").err == "experiment 2 failed: cause 2\n"


@pytest.mark.parametrize(("order", "expected"), [("asc", [2, 0, 1]), ("desc", [0, 2, 1])])
def test_nan_is_sorted_last(order: str, expected: list[int]) -> None:
    rows: list[dict[str, Any]] = [{"id": number, "value": value} for number, value in enumerate((3.0, math.nan, 1.0))]
    args = Namespace(columns=None, sort=f"value:{order}", filter=[], limit=None, offset=0)
    _, found = row_selection.select(args, [("ID", "id"), ("Value", "value")], rows)
    assert [row["id"] for row in found] == expected
